/* Internet addresses of clients, and networks of them, as text and as bytes. An IPv4 address is
 * stored as its mapped IPv6 address (RFC 4291, 2.5.5.2), so that an address has one form for every
 * socket. Any thread. */
#ifndef BASE_NET_CLIENT_ADDRESS_H
#define BASE_NET_CLIENT_ADDRESS_H

#include "base/error.h"
#include "base/span.h"

enum { CLIENT_ADDRESS_BYTES = 16, CLIENT_ADDRESS_TEXT_BYTES = 46 };

struct sockaddr;

struct client_address {
	bool is_unix; /* the client came through a Unix socket and has no address */
	uint8_t bytes[CLIENT_ADDRESS_BYTES];
};

/* NULL, and every family but IPv4 and IPv6, stand for a Unix socket. */
struct client_address client_address_of(const struct sockaddr *address);
/* Accepts "192.0.2.1", "2001:db8::1", "[2001:db8::1]", and with a port "192.0.2.1:80" and
 * "[2001:db8::1]:80". */
bool client_address_parse(struct span text, struct client_address *out);
/* Writes the address without brackets and port; "unix" for a Unix socket. */
void client_address_format(
	const struct client_address *address, char out[CLIENT_ADDRESS_TEXT_BYTES]);
/* The same number for all addresses of one client: an IPv6 network of 64 bits counts as one
 * client. */
uint64_t client_address_hash(const struct client_address *address);

struct client_network {
	struct client_address address;
	unsigned bits; /* leading bits, of 128, that name the network */
};

/* Accepts "10.0.0.0/8", "2001:db8::/32", an address alone, or "unix" for all that comes through
 * Unix sockets. invalid for anything else. */
int client_network_parse(const char *text, struct client_network *out, struct error *err);
bool client_network_has(const struct client_network *network, const struct client_address *address);

#endif
