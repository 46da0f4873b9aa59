/* The root key at start: defined by the environment, found in the store, or made. */
#ifndef SERVER_ROOT_KEY_H
#define SERVER_ROOT_KEY_H

#include "server/start_notice.h"

/* Whether the environment's parts of the root key can be ones: invalid names the variable that
 * holds what no key may have, or a secret or token that can be guessed, and never shows it. Empty
 * variables are unset. */
int root_key_check(char *const *environment, struct error *err);
/* DELTABUCKET_ROOT_KEY_ID, DELTABUCKET_ROOT_SECRET and DELTABUCKET_ROOT_TOKEN in `environment`
 * define the root key anew at every start; what they leave out is made at random. Without any of
 * them a store that has no root key gets one. `out_notice` receives what was made at random, for
 * the operator's eyes, once, with lines to paste for clients of `place` (NULL: without); empty when
 * nothing was. */
int root_key_prepare(struct keyring *keyring, const char *namespace, char *const *environment,
	const struct start_place *place, struct buffer *out_notice, struct error *err);

#endif
