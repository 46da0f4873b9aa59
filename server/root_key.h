/* The root key at the start: defined by the environment, found in the store, or made. */
#ifndef SERVER_ROOT_KEY_H
#define SERVER_ROOT_KEY_H

#include "server/start_notice.h"

/* Checks the variables of the root key. Fails with invalid for a text that no key may have, and for
 * a secret or token that is easy to guess. The message names the variable and never shows its
 * value. Empty variables count as unset. */
int root_key_check(char *const *environment, struct error *err);
/* DELTABUCKET_ROOT_KEY_ID, DELTABUCKET_ROOT_SECRET and DELTABUCKET_ROOT_TOKEN in `environment`
 * define the root key again at each start; parts that are not set are made at random. If none is
 * set, a store without a root key gets one. Random parts are added to `out_notice`, to be shown
 * once to the operator, with lines to paste for clients of `place` (NULL: without). */
int root_key_prepare(struct keyring *keyring, const char *namespace, char *const *environment,
	const struct start_place *place, struct buffer *out_notice, struct error *err);

#endif
