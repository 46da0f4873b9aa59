/* Proxies that are believed when they say for whom they ask. A proxy adds the address that it was
 * asked from to the end of X-Forwarded-For; what stands before that came from its own client, which
 * may be anything. So the list is read from its end: addresses of trusted proxies are passed over,
 * and the first other one is the client's. Immutable once made; any thread. */
#ifndef SERVER_TRUSTED_PROXIES_H
#define SERVER_TRUSTED_PROXIES_H

#include "base/net/client_address.h"

struct trusted_proxies;

/* `texts`: as client_network_parse takes them. NULL with the error set. Free with
 * trusted_proxies_free. */
struct trusted_proxies *trusted_proxies_new(char *const *texts, size_t count, struct error *err);
void trusted_proxies_free(struct trusted_proxies *proxies); /* NULL is fine */
/* NULL has none. */
bool trusted_proxies_have(
	const struct trusted_proxies *proxies, const struct client_address *address);

/* Who asks, when `peer` is at the other end of the connection and `forwarded` is what all
 * X-Forwarded-For headers say, in their order, commas between them. Where an entry is malformed the
 * search ends at the proxy that wrote it. */
struct client_address trusted_proxies_client(const struct trusted_proxies *proxies,
	const struct client_address *peer, struct span forwarded);

#endif
