/* Each access rule becomes a question: does the caller have these permissions on this bucket and
 * key? judge() answers it in this order: root may do everything; then the grants or the account of
 * the caller's key; then, unless the key has grants of its own, the grants of the bucket; last the
 * ACL of one object version. Faces for Hub clients hide the existence of buckets from callers that
 * may not know of them. */
#include "api/auth/authorise.h"

#include "api/auth/keyring.h"
#include "api/auth/shared_url.h"
#include "api/auth/xet_token.h"
#include "api/exchange/route.h"
#include "storage/objects/object_read.h"
#include "storage/versions/object.h"

/* The permission that each access rule needs, and the key that it is needed for. `shared`: grants
 * of the bucket count (storage/buckets/bucket_grant.h); otherwise only the owner and keys with
 * grants have access. */
enum key_rule { KEY_NONE, KEY_PARAMETER, KEY_PREFIX_QUERY, KEY_RUN, KEY_ANY };
static const struct access_rule {
	unsigned permission;
	enum key_rule key;
	bool shared;
} access_rules[] = {
	[ACCESS_BUCKET_KNOWN] = {0, KEY_ANY, true},
	[ACCESS_BUCKET_CHANGES] = {PERMISSION_WRITE | PERMISSION_DELETE, KEY_ANY, true},
	[ACCESS_BUCKET_LIST] = {PERMISSION_LIST, KEY_PREFIX_QUERY, true},
	[ACCESS_BUCKET_SCAN] = {PERMISSION_LIST, KEY_PREFIX_QUERY, true},
	[ACCESS_BUCKET_RUNS] = {PERMISSION_LIST, KEY_NONE, true},
	[ACCESS_BUCKET_SETTINGS] = {PERMISSION_LIST, KEY_NONE, false},
	[ACCESS_BUCKET_ADMIN] = {PERMISSION_ADMIN, KEY_NONE, false},
	[ACCESS_OBJECT_READ] = {PERMISSION_READ, KEY_PARAMETER, true},
	[ACCESS_OBJECT_WRITE] = {PERMISSION_WRITE, KEY_PARAMETER, true},
	[ACCESS_OBJECT_DELETE] = {PERMISSION_DELETE, KEY_PARAMETER, true},
	[ACCESS_OBJECT_TAGS_READ] = {PERMISSION_READ, KEY_PARAMETER, false},
	[ACCESS_OBJECT_TAGS_WRITE] = {PERMISSION_WRITE, KEY_PARAMETER, false},
	[ACCESS_OBJECT_ADMIN] = {PERMISSION_ADMIN, KEY_PARAMETER, false},
	[ACCESS_RUN_READ] = {PERMISSION_READ, KEY_RUN, true},
	[ACCESS_RUN_FLEET] = {PERMISSION_READ, KEY_RUN, false},
	[ACCESS_RUN_OBJECT] = {PERMISSION_READ, KEY_RUN, true},
	[ACCESS_RUN_WRITE] = {PERMISSION_WRITE, KEY_RUN, false},
};

struct question {
	struct bucket_ref *bucket; /* gets the id of the judged bucket */
	struct span key;
	unsigned permission;
	bool anywhere;   /* any of the permissions on any key is enough; 0: any permission at all */
	bool shared;     /* grants of the bucket count */
	bool object_acl; /* the object's own ACL counts too */
};

static int judge(struct exchange *exchange, const struct question *question, struct error *err);
static int refuse(struct exchange *exchange, const struct question *question, struct error *err);
static bool may_know(struct exchange *exchange, const struct question *question);
static int refuse_known(
	const struct principal *principal, const struct question *question, struct error *err);
static const char *verb_of(unsigned permission);
static bool key_allows(
	const struct principal *principal, const struct question *question, struct span owner);
static bool has_any_grant(
	const struct principal *principal, struct span bucket, unsigned permissions);
static int bucket_allows(struct exchange *exchange, const struct question *question,
	bool *out_allows, struct error *err);
static int object_allows(struct exchange *exchange, const struct question *question,
	bool *out_allows, struct error *err);
static int judge_transfer(struct exchange *exchange, bool writes, struct error *err);
static int judge_shared(struct exchange *exchange, struct error *err);
static int judge_route(
	struct exchange *exchange, const struct access_rule *rule, struct error *err);
static struct span rule_key(struct exchange *exchange, enum key_rule rule);
static bool names_versions(struct exchange *exchange);
static bool may_create(const struct principal *principal, struct span bucket);

int authorise_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err)
{
	const struct question question = {
		.bucket = bucket, .key = key, .permission = permission, .shared = true};
	return judge(exchange, &question, err);
}

int authorise_owned_key(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err)
{
	const struct question question = {.bucket = bucket, .key = key, .permission = permission};
	return judge(exchange, &question, err);
}

bool authorise_knows(struct exchange *exchange, struct bucket_ref bucket)
{
	const struct question question = {.bucket = &bucket, .anywhere = true, .shared = true};
	struct error ignored = {0};
	return judge(exchange, &question, &ignored) == 0;
}

int authorise(struct exchange *exchange, struct error *err)
{
	ASSERT(exchange->route != NULL);
	const enum access access = exchange->route->access;
	const struct principal *const principal = exchange->principal;
	if (access == ACCESS_ANYONE)
		return 0;
	if (access == ACCESS_XET_READ || access == ACCESS_XET_WRITE)
		return judge_transfer(exchange, access == ACCESS_XET_WRITE, err);
	ASSERT((size_t)access < sizeof(access_rules) / sizeof(access_rules[0]));
	const bool needs_key = access <= ACCESS_CREATE_BUCKET || access == ACCESS_BUCKET_SCAN;
	if (needs_key && principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "This request needs credentials.");
	if (access == ACCESS_RUN_OBJECT && shared_url_is_present(exchange))
		return judge_shared(exchange, err);
	if (access > ACCESS_CREATE_BUCKET)
		return judge_route(exchange, &access_rules[access], err);
	if (access == ACCESS_SIGNED_IN || principal->is_root)
		return 0;
	if (access == ACCESS_METRICS && principal_may_read_metrics(principal))
		return 0;
	if (access == ACCESS_METRICS)
		return error_set(err, ERROR_DENIED,
			"Only the root key and keys with the grant metrics may do this.");
	if (access == ACCESS_ROOT)
		return error_set(err, ERROR_DENIED, "Only the root key may do this.");
	if (!may_create(principal, exchange->parameters[0]))
		return error_set(err, ERROR_DENIED,
			"The grants of this key do not allow it to make this bucket.");
	return 0;
}

bool authorise_is_refusal(enum error_kind kind)
{
	return kind == ERROR_DENIED || kind == ERROR_NO_CREDENTIALS || kind == ERROR_NO_BUCKET;
}

int authorise_permits(struct exchange *exchange, struct bucket_ref *bucket, struct span key,
	unsigned permission, struct error *err)
{
	struct error problem = {0};
	if (authorise_key(exchange, bucket, key, permission, &problem) == 0)
		return 1;
	if (authorise_is_refusal(problem.kind))
		return 0;
	*err = problem;
	return -1;
}

static int judge(struct exchange *exchange, const struct question *question, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	struct bucket bucket = {0};
	struct error missing = {0};
	bool allows = false;
	ASSERT(question->bucket != NULL);
	if (principal != NULL && principal->is_root)
		return 0;
	if (principal == NULL && !question->shared)
		return refuse(exchange, question, err);
	const bool exists = bucket_find(exchange->context->store, *question->bucket,
				    exchange->arena, &bucket, &missing) == 0;
	if (!exists && principal == NULL && exchange->face->hides &&
		missing.kind == ERROR_NO_BUCKET)
		return refuse(exchange, question, err);
	if (!exists && (principal == NULL || missing.kind != ERROR_NO_BUCKET)) {
		*err = missing;
		return -1;
	}
	if (exists)
		question->bucket->id = bucket.id;
	else
		bucket.owner = (struct span){NULL, 0};
	const bool own_allows = key_allows(principal, question, bucket.owner);
	/* Reported now, because another account could make the bucket while the body arrives. */
	if (own_allows && !exists)
		*err = missing;
	if (own_allows)
		return exists ? 0 : -1;
	/* A key with grants may only do what they name. */
	const bool may_share =
		exists && question->shared && (principal == NULL || principal->grant_count == 0);
	if (may_share && bucket_allows(exchange, question, &allows, err) != 0)
		return -1;
	return allows ? 0 : refuse(exchange, question, err);
}

/* On a face that hides, a caller with a key gets the same words for a bucket that it may not see as
 * for a bucket that does not exist. A caller without a key is asked for credentials in both
 * cases. */
static int refuse(struct exchange *exchange, const struct question *question, struct error *err)
{
	const struct span bucket = question->bucket->name;
	if (exchange->face->hides && exchange->principal != NULL && !may_know(exchange, question))
		return error_set(err, ERROR_NO_BUCKET, "The bucket '%.*s' does not exist.",
			(int)(bucket.len < 128 ? bucket.len : 128), (const char *)bucket.data);
	return refuse_known(exchange->principal, question, err);
}

static bool may_know(struct exchange *exchange, const struct question *question)
{
	return (!question->anywhere || question->permission != 0) &&
		authorise_knows(exchange, *question->bucket);
}

static int refuse_known(
	const struct principal *principal, const struct question *question, struct error *err)
{
	const struct span bucket = question->bucket->name;
	const struct span key = question->key;
	if (principal == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS, "This request needs credentials.");
	const char *const verb = verb_of(question->permission);
	if (key.len == 0)
		return error_set(err, ERROR_DENIED, "The key %.*s may not %s %s bucket %.*s.",
			(int)principal->key_id.len, (const char *)principal->key_id.data, verb,
			question->anywhere ? "anything in" : "all of",
			(int)(bucket.len < 63 ? bucket.len : 63), (const char *)bucket.data);
	return error_set(err, ERROR_DENIED, "The key %.*s may not %s %.*s in bucket %.*s.",
		(int)principal->key_id.len, (const char *)principal->key_id.data, verb,
		(int)(key.len < 200 ? key.len : 200), (const char *)key.data,
		(int)(bucket.len < 63 ? bucket.len : 63), (const char *)bucket.data);
}

/* The verb for the missing permission, in the words of grants. */
static const char *verb_of(unsigned permission)
{
	static const struct {
		unsigned permission;
		const char *verb;
	} verbs[] = {{PERMISSION_ADMIN, "administer"},
		{PERMISSION_WRITE | PERMISSION_DELETE, "change"}, {PERMISSION_DELETE, "delete"},
		{PERMISSION_WRITE, "write"}, {PERMISSION_READ, "read"}, {PERMISSION_LIST, "list"}};
	size_t at = 0;
	while (at < sizeof(verbs) / sizeof(verbs[0]) &&
		(permission & verbs[at].permission) != verbs[at].permission)
		at++;
	return at < sizeof(verbs) / sizeof(verbs[0]) ? verbs[at].verb : "use";
}

/* Judges by the key's own grants or its account. In these `write` includes deleting, and `read`
 * includes older versions. */
static bool key_allows(
	const struct principal *principal, const struct question *question, struct span owner)
{
	unsigned needed = question->permission & ~(unsigned)PERMISSION_VERSIONS;
	if ((needed & PERMISSION_DELETE) != 0)
		needed = (needed & ~(unsigned)PERMISSION_DELETE) | PERMISSION_WRITE;
	if (question->anywhere && principal != NULL && principal->grant_count > 0)
		return has_any_grant(principal, question->bucket->name, needed);
	return principal_allows(principal, question->bucket->name, owner, question->key, needed);
}

static bool has_any_grant(
	const struct principal *principal, struct span bucket, unsigned permissions)
{
	for (size_t i = 0; i < principal->grant_count; i++) {
		const struct grant *const grant = &principal->grants[i];
		if (span_equal(grant->bucket, bucket) &&
			(permissions == 0 || (grant->permissions & permissions) != 0))
			return true;
	}
	return false;
}

/* Asks the grants of the bucket, with one indexed read, then the ACL of the object. */
static int bucket_allows(struct exchange *exchange, const struct question *question,
	bool *out_allows, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	const struct bucket_question asked = {
		.bucket = question->bucket->id,
		.account = principal != NULL ? principal->namespace : (struct span){NULL, 0},
		.key = question->key,
		.permissions = question->permission,
		.anywhere = question->anywhere,
	};
	if (bucket_grant_allows(exchange->context->store, &asked, out_allows, err) != 0)
		return -1;
	return *out_allows || !question->object_acl
		? 0
		: object_allows(exchange, question, out_allows, err);
}

/* Whether the object's own ACL lets the caller read. Judges one version, because another version of
 * the key may be private. */
static int object_allows(struct exchange *exchange, const struct question *question,
	bool *out_allows, struct error *err)
{
	const struct principal *const principal = exchange->principal;
	const struct span account =
		principal != NULL ? principal->namespace : (struct span){NULL, 0};
	struct object_ref ref = {.bucket = *question->bucket, .key = question->key};
	struct error missing = {0};
	struct object object;
	struct span text;
	bool honoured = false;
	if ((question->permission & PERMISSION_VERSIONS) != 0 &&
		exchange_query(exchange, "versionId", &text) &&
		!version_ref_parse(text, &ref.version))
		return 0;
	if (object_find(exchange->context->store, &ref, exchange->arena, &object, &missing) != 0 ||
		!bucket_grant_acl_reads(object.acl, account))
		return 0; /* an absent object is not public */
	if (bucket_grant_honours_object_acl(
		    exchange->context->store, ref.bucket.id, &honoured, err) != 0)
		return -1;
	if (honoured)
		exchange->judged_version = object.sequence;
	*out_allows = honoured;
	return 0;
}

/* The token names the bucket and the right. Whether its key still has access to the bucket is
 * judged again for each request. */
static int judge_transfer(struct exchange *exchange, bool writes, struct error *err)
{
	const struct xet_token *const token = exchange->transfer;
	if (token == NULL)
		return error_set(err, ERROR_NO_CREDENTIALS,
			"This request needs a Xet token, which the bucket's xet-read-token or xet-write-token gives.");
	if (writes && !token->is_write)
		return error_set(err, ERROR_DENIED, "This Xet token allows only reading.");
	struct bucket_ref bucket = {token->bucket, token->bucket_id};
	const struct question question = {.bucket = &bucket, .anywhere = true, .shared = true};
	exchange->bucket_id = token->bucket_id;
	return judge(exchange, &question, err);
}

/* Either the URL or the caller's key is enough: a worker whose URL has expired in a long download
 * goes on with its key. */
static int judge_shared(struct exchange *exchange, struct error *err)
{
	struct error refusal = {0};
	if (shared_url_judge(exchange, &refusal) == 0)
		return 0;
	if (judge_route(exchange, &access_rules[ACCESS_RUN_OBJECT], err) == 0)
		return 0;
	if (authorise_is_refusal(err->kind))
		*err = refusal;
	return -1;
}

static int judge_route(struct exchange *exchange, const struct access_rule *rule, struct error *err)
{
	struct bucket_ref bucket = bucket_named(exchange->parameters[0]);
	const struct question question = {
		.bucket = &bucket,
		.key = rule_key(exchange, rule->key),
		.permission = rule->permission |
			(rule->key != KEY_ANY && names_versions(exchange)
					? (unsigned)PERMISSION_VERSIONS
					: 0U),
		.anywhere = rule->key == KEY_ANY,
		.shared = rule->shared,
		.object_acl = rule->key == KEY_PARAMETER && rule->permission == PERMISSION_READ,
	};
	exchange->judged_version = 0; /* a second judgement may have another reason */
	const int outcome = judge(exchange, &question, err);
	exchange->bucket_id = bucket.id;
	return outcome;
}

static struct span rule_key(struct exchange *exchange, enum key_rule rule)
{
	struct span key = {NULL, 0};
	ASSERT(exchange->parameter_count >= (rule == KEY_PARAMETER || rule == KEY_RUN ? 2 : 1));
	if (rule == KEY_PARAMETER)
		key = exchange->parameters[1];
	if (rule == KEY_PREFIX_QUERY)
		exchange_query(exchange, "prefix", &key);
	const struct span run = exchange->parameters[1];
	if (rule == KEY_RUN)
		key = span_text(arena_format(
			exchange->arena, "%.*s/", (int)run.len, (const char *)run.data));
	return key;
}

/* Whether the request names older versions, which only the S3 face serves. Other faces serve the
 * current version whatever the query says, so that one is judged. */
static bool names_versions(struct exchange *exchange)
{
	struct span value;
	return exchange->face == &face_s3 &&
		(exchange_query(exchange, "versionId", &value) ||
			exchange_query(exchange, "versions", &value));
}

static bool may_create(const struct principal *principal, struct span bucket)
{
	static const struct span nothing = {NULL, 0};
	return principal_allows(principal, bucket, nothing, nothing, PERMISSION_ADMIN);
}
