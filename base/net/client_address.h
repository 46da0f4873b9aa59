/* Internet addresses of clients, and networks of them, as text and as bytes. IPv4 lies in IPv6's
 * room for it (RFC 4291, 2.5.5.2), so one address has one form whichever socket it came through.
 * Any thread. */
#ifndef BASE_NET_CLIENT_ADDRESS_H
#define BASE_NET_CLIENT_ADDRESS_H

#include "base/error.h"
#include "base/span.h"

enum { CLIENT_ADDRESS_BYTES = 16, CLIENT_ADDRESS_TEXT_BYTES = 46 };

struct sockaddr;

struct client_address {
	bool is_unix; /* at a Unix socket: there is none */
	uint8_t bytes[CLIENT_ADDRESS_BYTES];
};

/* NULL, and what is neither IPv4 nor IPv6, stand for a Unix socket. */
struct client_address client_address_of(const struct sockaddr *address);
/* "192.0.2.1", "2001:db8::1", "[2001:db8::1]", and with a port behind them "192.0.2.1:80",
 * "[2001:db8::1]:80". */
bool client_address_parse(struct span text, struct client_address *out);
/* Without brackets or port; "unix" for a Unix socket. */
void client_address_format(
	const struct client_address *address, char out[CLIENT_ADDRESS_TEXT_BYTES]);
/* The same for all addresses of one client: an IPv6 network of 64 bits counts as one. */
uint64_t client_address_hash(const struct client_address *address);

struct client_network {
	struct client_address address;
	unsigned bits; /* of the 128, that belong to the network */
};

/* "10.0.0.0/8", "2001:db8::/32", an address alone, or "unix": all that comes through Unix
 * sockets. */
int client_network_parse(const char *text, struct client_network *out, struct error *err);
bool client_network_has(const struct client_network *network, const struct client_address *address);

#endif
