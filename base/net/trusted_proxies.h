/* Proxies whose X-Forwarded-For is trusted. A proxy adds the address of its client to the end of
 * that header. The entries before came from that client and may be forged. So the list is read from
 * its end: addresses of trusted proxies are skipped, and the first other address is the client's.
 * Immutable once made; any thread. */
#ifndef BASE_NET_TRUSTED_PROXIES_H
#define BASE_NET_TRUSTED_PROXIES_H

#include "base/net/client_address.h"

struct trusted_proxies;

/* `texts` have the form of client_network_parse. NULL with the error set. To be freed with
 * trusted_proxies_free. */
struct trusted_proxies *trusted_proxies_new(char *const *texts, size_t count, struct error *err);
void trusted_proxies_free(struct trusted_proxies *proxies); /* NULL is fine */
/* Whether the list contains the address. A NULL list contains none. */
bool trusted_proxies_have(
	const struct trusted_proxies *proxies, const struct client_address *address);

/* The client of a request. `peer` is the other end of the connection. `forwarded` has the values of
 * all X-Forwarded-For headers in order, separated by commas. A malformed entry ends the search at
 * the proxy that wrote it. */
struct client_address trusted_proxies_client(const struct trusted_proxies *proxies,
	const struct client_address *peer, struct span forwarded);

#endif
