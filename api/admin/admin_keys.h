/* The keys of the server over HTTP, only for root: GET and POST /-/keys, DELETE /-/keys/{id}.
 * docs/protocol/admin.md. `deltabucketd keys` uses the same routes over DIR/control.sock. The work
 * blocks, so it runs on a helper, which wakes the exchange. */
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

/* The reply bodies, which the command line uses too:
 * {"key_id","secret","token","namespace","grants","warnings"} and {"keys":[...]}. */
struct admin_made_key {
	struct keyring_new_key key; /* with the grants as stored */
	struct keyring_made_key made;
	struct span *warnings; /* sentences about grants that are probably mistakes */
	size_t warning_count;
};
void admin_keys_print_made(const struct admin_made_key *made, struct buffer *out);
/* Settles the grants of made->key (grant_advice.h), makes the key and sets the other fields, in the
 * arena. Blocks. */
int admin_keys_make(struct store *store, struct keyring *keyring, const char *default_namespace,
	struct admin_made_key *made, struct arena *arena, struct error *err);
void admin_keys_print_list(const struct key_record *keys, size_t count, struct buffer *out);
/* Parses the body of POST /-/keys: {"name"?, "namespace"?, "grants"?:
 * ["BUCKET[/PREFIX]=read,..."]}. Texts in the arena. Fails with invalid for other bodies, with
 * too_large or no_memory. */
int admin_keys_parse(struct span json, const char *default_namespace, struct arena *arena,
	struct keyring_new_key *out, struct error *err);

#endif
