/* What the operator sees once, at the first start: the root key, and lines to paste for clients. */
#ifndef SERVER_START_NOTICE_H
#define SERVER_START_NOTICE_H

#include "api/auth/keyring.h"
#include "server/configuration.h"

/* Where clients find the server. Borrowed; NULL: not known, or none. */
struct start_place {
	char *endpoint; /* https://HOST:PORT, as this machine's clients reach it */
	char *others;   /* as other machines do */
	const char *ca_path;
	const char *ca_pem;
	const char *region;
};
/* The endpoint by which this machine's clients reach the first TCP address, `ports` being what each
 * was bound to: heap, the caller's; NULL where there are unix sockets alone. */
char *start_notice_endpoint(const struct configuration *configuration, const unsigned *ports);
/* The same for other machines, with HOST where no name is configured; NULL where it listens on this
 * machine alone. */
char *start_notice_others(const struct configuration *configuration, const unsigned *ports);

/* `wanted` is what was asked for: parts that it names were given by the environment and are not
 * shown. */
void start_notice_print(const struct start_place *place, const struct keyring_new_key *wanted,
	const struct keyring_made_key *made, struct buffer *out);

#endif
