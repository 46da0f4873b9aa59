/* Grants as a person wrote them, held against the buckets that there are: what most likely was not
 * meant is told, one spelling is put right. */
#ifndef API_ADMIN_GRANT_ADVICE_H
#define API_ADMIN_GRANT_ADVICE_H

#include "api/auth/keyring.h"

/* "NAMESPACE/BUCKET/PREFIX", as the Hub names buckets, becomes the bucket's name where NAMESPACE is
 * the key's or the default one and no bucket of that name exists: `key->grants` is then another
 * array. `out_lines` are sentences, in the arena. What the catalog cannot tell is passed over.
 * Blocking. */
void grant_advice_settle(struct store *store, const char *default_namespace,
	struct keyring_new_key *key, struct arena *arena, struct span **out_lines,
	size_t *out_count);

#endif
