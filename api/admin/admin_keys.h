/* The keys of the server over HTTP, for root alone: GET and POST /-/keys, DELETE /-/keys/{id}.
 * docs/protocol/admin.md. The same routes serve `deltabucketd keys` over DIR/control.sock. Key
 * changes block, so they run on a helper and wake the exchange. */
#ifndef API_ADMIN_ADMIN_KEYS_H
#define API_ADMIN_ADMIN_KEYS_H

#include "api/auth/keyring.h"
#include "api/exchange/exchange.h"

enum next admin_keys_list_begin(struct exchange *exchange);
enum next admin_keys_list_resume(struct exchange *exchange);
enum next admin_keys_add_begin(struct exchange *exchange);
enum next admin_keys_add_finish(struct exchange *exchange);
enum next admin_keys_add_resume(struct exchange *exchange);
enum next admin_keys_revoke_begin(struct exchange *exchange);
enum next admin_keys_revoke_resume(struct exchange *exchange);

/* The bodies, shared with the command line:
 * {"key_id","secret","token","namespace","grants","warnings"} and {"keys":[...]}. */
struct admin_made_key {
	struct keyring_new_key key; /* as it was made */
	struct keyring_made_key made;
	struct span *warnings; /* sentences: what most likely was not meant */
	size_t warning_count;
};
void admin_keys_print_made(const struct admin_made_key *made, struct buffer *out);
/* Settles the grants of made->key (grant_advice.h) and makes the key. All else in the arena.
 * Blocking. */
int admin_keys_make(struct store *store, struct keyring *keyring, const char *default_namespace,
	struct admin_made_key *made, struct arena *arena, struct error *err);
void admin_keys_print_list(const struct key_record *keys, size_t count, struct buffer *out);
/* Body of POST /-/keys: {"name"?, "namespace"?, "grants"?: ["BUCKET[/PREFIX]=read,..."]}; texts in
 * the arena. invalid when it is anything else. */
int admin_keys_parse(struct span json, const char *default_namespace, struct arena *arena,
	struct keyring_new_key *out, struct error *err);

#endif
