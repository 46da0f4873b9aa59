/* Keys and grants held in memory, unsealed: looked up on every request, reloaded after a change.
 * Internally locked; any thread. */
#ifndef API_AUTH_KEYRING_H
#define API_AUTH_KEYRING_H

#include "api/exchange/principal.h"
#include "base/thread/helpers.h"

struct keyring;
/* loads */
struct keyring *keyring_open(struct store *store, const uint8_t master_key[32], struct error *err);
void keyring_close(struct keyring *keyring);
int keyring_reload(struct keyring *keyring, struct error *err);

/* NULL when unknown; constant time in the secret parts. Copies into the arena. */
const struct principal *keyring_find_token(
	struct keyring *keyring, struct span token, struct arena *arena);
/* Also gives the secret, for checking a SigV2 signature. The caller wipes it. */
const struct principal *keyring_find_id(
	struct keyring *keyring, struct span key_id, struct arena *arena, struct span *out_secret);
/* The same with the SigV4 signing key (signing_key.h) of a day (yyyymmdd) and region in place of
 * the secret; they are kept until the next reload. The caller wipes it. */
const struct principal *keyring_find_signing_key(struct keyring *keyring, struct span key_id,
	struct span date, struct span region, struct arena *arena, uint8_t out_key[32]);

struct keyring_new_key {
	const char *name; /* may be NULL */
	const char *namespace;
	const struct grant *grants;
	size_t grant_count;
	bool is_root;
	/* Root key from the environment; NULL: made at random. */
	const char *id;
	const char *secret;
	const char *token;
};
struct keyring_made_key { /* texts in the arena; shown once */
	const char *id;
	const char *secret;
	const char *token;
	const char *namespace;
};
/* Seals, stores, reloads. Blocking: not from a reactor. *out is set too when the key is well-formed
 * and cannot be stored. */
int keyring_add(struct keyring *keyring, const struct keyring_new_key *params, struct arena *arena,
	struct keyring_made_key *out, struct error *err);
/* A root key that the catalog cannot take, because it is damaged, is in force while the keyring is
 * open. Once; before others use the keyring. */
int keyring_hold_root(
	struct keyring *keyring, const struct keyring_made_key *root, struct error *err);
int keyring_revoke(struct keyring *keyring, struct span key_id, struct error *err);

/* Whether a key may have these, NULL for what is still to be made: invalid says which part and what
 * it may be, and never shows it. */
int keyring_check_texts(const char *id, const char *secret, const char *token, struct error *err);
/* What a namespace may be called: 1 to 63 of a-z 0-9 . _ -, no "--", and '-' neither first nor
 * last. */
bool keyring_is_namespace(struct span text);

/* Key changes block; the admin face runs them on this lane of the store's helpers, one at a time.
 * Lives as long as the keyring. */
struct helper_lane *keyring_lane(struct keyring *keyring);

/* All keys without their secrets, in the arena; blocking. */
int keyring_list(struct keyring *keyring, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err);

#endif
