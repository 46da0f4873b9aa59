/* Compares grants that a person wrote with the existing buckets: corrects one spelling, and warns
 * about grants that are probably mistakes. */
#ifndef API_ADMIN_GRANT_ADVICE_H
#define API_ADMIN_GRANT_ADVICE_H

#include "api/auth/keyring.h"

/* Replaces key->grants by a corrected copy: a grant for "NAMESPACE/BUCKET/PREFIX", as the Hub names
 * buckets, becomes one for the bucket if NAMESPACE is the key's or the default one and no bucket
 * has the name NAMESPACE. *out_lines are sentences, in the arena. Failures of the catalog are
 * ignored. Blocks. */
void grant_advice_settle(struct store *store, const char *default_namespace,
	struct keyring_new_key *key, struct arena *arena, struct span **out_lines,
	size_t *out_count);

#endif
