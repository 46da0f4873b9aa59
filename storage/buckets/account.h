/* Accounts, keys and grants. A key has an id and secret (SigV4) and a bearer token; secrets are
 * sealed with the master key by the caller (api/auth/keyring), tokens are kept as SHA-256. */
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
	bool is_revoked; /* by its name; such a key is not listed */
	int64_t created_ms;
	const struct grant *grants; /* none: acts for its whole account */
	size_t grant_count;
};

/* All keys; for loading the keyring at start and after a change. What cannot be read is listed as
 * damaged, under the name damaged-N when it has lost its own, and keeps nobody from the rest. */
int account_list_keys(struct store *store, struct arena *arena, struct key_record **out_keys,
	size_t *out_count, struct error *err);
/* Blocking (command line, control socket, start). Adds the account when it is new. exists when the
 * id is taken. `key->is_root` replaces a root key. */
int account_add_key(struct store *store, const struct key_record *key, struct error *err);
/* not_found; the root key: denied. */
int account_revoke_key(struct store *store, struct span id, struct error *err);
/* Whether a key or a bucket was ever made in this namespace. */
int account_exists(struct store *store, struct span namespace, bool *out_exists, struct error *err);

#endif
