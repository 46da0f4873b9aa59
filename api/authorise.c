#include "api/authorise.h"

#include "api/keyring.h"
#include "api/router.h"
#include "storage/bucket.h"

/* What each access rule asks of the principal: a permission on bucket and key. */
enum key_rule { KEY_NONE, KEY_PARAMETER, KEY_PREFIX_QUERY, KEY_RUN };
static const struct access_rule {
	unsigned permission;
	enum key_rule key;
} access_rules[] = {
	[ACCESS_BUCKET_LIST] = {PERMISSION_LIST, KEY_PREFIX_QUERY},
	[ACCESS_BUCKET_RUNS] = {PERMISSION_LIST, KEY_NONE},
	[ACCESS_BUCKET_ADMIN] = {PERMISSION_ADMIN, KEY_NONE},
	[ACCESS_OBJECT_READ] = {PERMISSION_READ, KEY_PARAMETER},
	[ACCESS_OBJECT_WRITE] = {PERMISSION_WRITE, KEY_PARAMETER},
	[ACCESS_RUN_READ] = {PERMISSION_READ, KEY_RUN},
	[ACCESS_RUN_WRITE] = {PERMISSION_WRITE, KEY_RUN},
};

static struct span rule_key(struct exchange *exchange, enum key_rule rule)
{
	struct span key = {NULL, 0};
	if (rule == KEY_PARAMETER)
		key = exchange->parameters[1];
	if (rule == KEY_PREFIX_QUERY)
		exchange_query(exchange, "prefix", &key);
	const struct span run = exchange->parameters[1];
	if (rule == KEY_RUN)
		key = span_text(arena_format(exchange->arena, "%.*s/", (int)run.len, (const char *)run.data));
	return key;
}

int authorise_key(struct exchange *exchange, struct span name, struct span key, unsigned permission, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	struct bucket bucket = {0};
	struct error missing = {0};
	if (principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "this request needs credentials");
	if (principal->is_root)
		return 0;
	if (bucket_find(exchange->context->store, name, exchange->arena, &bucket, &missing) != 0) {
		if (missing.kind != ERROR_NO_BUCKET) {
			*err = missing;
			return -1;
		}
		bucket.owner = (struct span){NULL, 0};
	}
	if (principal_allows(principal, name, bucket.owner, key, permission))
		return 0;
	return error_set(err, ERROR_DENIED, "the key %.*s may not do this in bucket %.*s", (int)principal->key_id.len,
		(const char *)principal->key_id.data, (int)(name.len < 63 ? name.len : 63), (const char *)name.data);
}

static bool may_create(const struct principal *principal, struct span bucket)
{
	static const struct span nothing = {NULL, 0};
	return principal_allows(principal, bucket, nothing, nothing, PERMISSION_ADMIN);
}

int authorise(struct exchange *exchange, struct error *err)
{
	const enum access access = exchange->route->access;
	const struct principal *const principal = exchange->principal;
	if (access == ACCESS_ANYONE)
		return 0;
	if (principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "this request needs credentials");
	if (access == ACCESS_SIGNED_IN || principal->is_root)
		return 0;
	if (access == ACCESS_ROOT)
		return error_set(err, ERROR_DENIED, "only the root key may do this");
	if (access != ACCESS_CREATE_BUCKET) {
		const struct access_rule *const rule = &access_rules[access];
		return authorise_key(exchange, exchange->parameters[0], rule_key(exchange, rule->key), rule->permission, err);
	}
	if (!may_create(principal, exchange->parameters[0]))
		return error_set(err, ERROR_DENIED, "the grants of this key do not let it make this bucket");
	return 0;
}
