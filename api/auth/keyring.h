/* Keys and their grants, unsealed, in memory. Every request looks its key up here; each change of
 * the keys reloads them. Internally locked; any thread. */
#ifndef API_AUTH_KEYRING_H
#define API_AUTH_KEYRING_H

#include "api/exchange/principal.h"
#include "base/thread/helpers.h"

struct keyring;
/* Loads the keys. Fails with corrupt when the master key opens none of them. */
struct keyring *keyring_open(struct store *store, const uint8_t master_key[32], struct error *err);
void keyring_close(struct keyring *keyring); /* NULL is fine */
int keyring_reload(struct keyring *keyring, struct error *err);

/* A copy in the arena, or NULL when the token is unknown. Takes constant time in its secret
 * parts. */
const struct principal *keyring_find_token(
	struct keyring *keyring, struct span token, struct arena *arena);
/* Finds a key by its id, with its secret, for SigV2 signatures. The caller must wipe the secret. */
const struct principal *keyring_find_id(
	struct keyring *keyring, struct span key_id, struct arena *arena, struct span *out_secret);
/* The same without the secret, for what was permitted to that key before. */
const struct principal *keyring_find_caller(
	struct keyring *keyring, struct span key_id, struct arena *arena);
/* The name of a key, and the id of the root key, in the arena; empty when there is none. */
struct span keyring_find_name(struct keyring *keyring, struct span key_id, struct arena *arena);
struct span keyring_find_root(struct keyring *keyring, struct arena *arena);
/* The same as keyring_find_id, with the SigV4 signing key (signing_key.h) of a day (yyyymmdd) and
 * region instead of the secret. Signing keys are cached until the next reload. The caller must wipe
 * its copy. */
const struct principal *keyring_find_signing_key(struct keyring *keyring, struct span key_id,
	struct span date, struct span region, struct arena *arena, uint8_t out_key[32]);

/* The key was used now. Cheap. */
void keyring_note_use(struct keyring *keyring, struct span key_id);
/* Writes down the uses that were noted since the last time. A failure is logged. Blocks. */
void keyring_write_uses(struct keyring *keyring);

struct keyring_new_key {
	const char *name; /* may be NULL */
	const char *namespace;
	const struct grant *grants;
	size_t grant_count;
	bool is_root;
	/* set for a root key from the environment; NULL: made at random */
	const char *id;
	const char *secret;
	const char *token;
};
struct keyring_made_key { /* texts in the arena, to be shown once */
	const char *id;
	const char *secret;
	const char *token;
	const char *namespace;
};
/* Seals and stores the key, and reloads the keyring. Blocks, so never call it on a reactor. *out is
 * set also when a well-formed key could not be stored. */
int keyring_add(struct keyring *keyring, const struct keyring_new_key *params, struct arena *arena,
	struct keyring_made_key *out, struct error *err);
/* Sets a root key that the damaged catalog could not store. It is valid while the keyring is open,
 * and replaces stored root keys. At most once, before other threads use the keyring. */
int keyring_set_unstored_root(
	struct keyring *keyring, const struct keyring_made_key *root, struct error *err);
int keyring_revoke(struct keyring *keyring, struct span key_id, struct error *err);

/* Checks whether a key may have these texts; NULL for a text that will be made at random. Fails
 * with invalid. The message names the part and its rule, never its value, and has no full stop,
 * because it follows the name of a variable. */
int keyring_check_texts(const char *id, const char *secret, const char *token, struct error *err);
/* A namespace has 1 to 63 of a-z 0-9 . _ -, without "--", and does not begin or end with '-'. */
bool keyring_is_namespace(struct span text);

/* Changes of keys block, so the admin face runs them on this lane of the store's helpers, one at a
 * time. Lives as long as the keyring. */
struct helper_lane *keyring_lane(struct keyring *keyring);

/* All keys without their secrets, in the arena. A key that could not be loaded is listed as
 * damaged. Blocks. */
int keyring_list(struct keyring *keyring, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err);

#endif
