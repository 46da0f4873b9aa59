/* Accounts, keys and grants. A key has an id and a secret (SigV4), and a bearer token. The caller
 * (api/auth/keyring) seals secrets with the master key. Tokens are stored as SHA-256. */
#ifndef STORAGE_BUCKETS_ACCOUNT_H
#define STORAGE_BUCKETS_ACCOUNT_H

#include "base/arena.h"
#include "storage/core/store.h"

enum permission {
	PERMISSION_READ = 1,
	PERMISSION_WRITE = 2,
	PERMISSION_LIST = 4,
	PERMISSION_ADMIN = 8
};

struct grant {
	struct span bucket;
	struct span prefix; /* empty: the whole bucket */
	unsigned permissions;
};
struct key_record {
	struct span id;
	struct span name;
	struct span namespace; /* the account */
	struct span sealed_secret;
	struct span token_hash; /* 32 bytes */
	bool is_root;
	bool is_damaged; /* not what was stored: it opens nothing, and may be revoked */
	bool is_revoked; /* by its id in `revoked_keys`; such a key is not listed */
	int64_t created_ms;
	int64_t used_ms; /* the last use, set by the keyring; 0: none is known */
	const struct grant *grants; /* none: the key acts for its whole account */
	size_t grant_count;
};

/* Lists all keys, for loading the keyring at start and after a change. A key that cannot be read is
 * listed as damaged, with the id damaged-N if its own is lost. It does not hide the others. */
int account_list_keys(struct store *store, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err);
/* Adds a key, and its account when that is new. exists when the id is taken. A root key replaces
 * the root key before. Blocks (command line, control socket, start). */
int account_add_key(struct store *store, const struct key_record *key, struct error *err);
/* Blocks, too. not_found; denied for the root key. */
int account_revoke_key(struct store *store, struct span id, struct error *err);
/* Whether a key or a bucket was ever made in the namespace. */
int account_exists(struct store *store, struct span namespace, bool *out_exists, struct error *err);

#endif
