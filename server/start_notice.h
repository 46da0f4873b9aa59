/* The notice for the operator at the first start: the root key, and lines to paste for clients. */
#ifndef SERVER_START_NOTICE_H
#define SERVER_START_NOTICE_H

#include "api/auth/keyring.h"
#include "server/configuration.h"

/* The address of the server for clients. Texts are borrowed; NULL: unknown, or none. */
struct start_place {
	char *endpoint; /* https://HOST:PORT for clients on this machine */
	char *others;   /* the same for other machines */
	const char *ca_path;
	const char *ca_pem;
	const char *region;
	/* The data folder, when the root key may not be shown; the notice then says how to make
	 * another key in it. NULL: the key is shown. */
	const char *hidden_in;
};
/* The endpoint of the first TCP address for clients on this machine. `ports` has the bound port of
 * each address. The caller frees it. NULL when there are only Unix sockets. */
char *start_notice_endpoint(const struct configuration *configuration, const unsigned *ports);
/* The same for other machines, with HOST if no name is configured. NULL when only this machine can
 * connect. */
char *start_notice_others(const struct configuration *configuration, const unsigned *ports);

/* Parts that are set in `wanted` came from the environment and are not shown. */
void start_notice_print(const struct start_place *place, const struct keyring_new_key *wanted,
	const struct keyring_made_key *made, struct buffer *out);

#endif
