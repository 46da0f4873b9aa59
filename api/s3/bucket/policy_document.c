/* A statement is the product of its principals, resources and actions. Actions differ in whether
 * they reach older versions, so those of one resource make up to two grants: joined into one, they
 * would give more than was said (storage/buckets/bucket_grant.h). */
#include "api/s3/bucket/policy_document.h"

#include "base/format/json_node.h"

enum { NAMED_MAX = 64 };

struct action {
	const char *name;
	unsigned permissions; /* 0: goes without saying with the others */
	bool on_bucket;
};
static const struct action actions[] = {
	{"s3:GetObject", PERMISSION_READ, false},
	{"s3:GetObjectVersion", PERMISSION_READ | PERMISSION_VERSIONS, false},
	{"s3:PutObject", PERMISSION_WRITE, false},
	{"s3:DeleteObject", PERMISSION_DELETE, false},
	{"s3:DeleteObjectVersion", PERMISSION_DELETE | PERMISSION_VERSIONS, false},
	{"s3:AbortMultipartUpload", 0, false},
	{"s3:ListMultipartUploadParts", 0, false},
	{"s3:ListBucket", PERMISSION_LIST, true},
	{"s3:ListBucketVersions", PERMISSION_LIST | PERMISSION_VERSIONS, true},
	{"s3:ListBucketMultipartUploads", 0, true},
	{"s3:GetBucketLocation", 0, true},
};

struct asked { /* of a statement's actions, for the bucket and for keys */
	bool any;
	unsigned plain;    /* permissions without PERMISSION_VERSIONS */
	unsigned versions; /* with it */
};
struct statement {
	struct span accounts[NAMED_MAX]; /* empty: everyone */
	size_t account_count;
	struct asked on_bucket;
	struct asked on_keys;
};
struct reader {
	struct span bucket;
	struct arena *arena;
	struct bucket_grant *grants;
	size_t count;
};

static int malformed(struct error *err, const char *what);
static int take_document(struct reader *reader, const struct json_node *root, struct error *err);
static int check_members(
	const struct json_node *object, const char *known, const char *refused, struct error *err);
static int beyond(struct error *err, const char *what, struct span value);
static int take_statement(struct reader *reader, const struct json_node *node, struct error *err);
static int take_principal(
	const struct json_node *principal, struct statement *statement, struct error *err);
static int take_account(struct span text, struct statement *statement, struct error *err);
static bool strip(struct span *text, const char *prefix);
static int take_accounts(
	const struct json_node *list, struct statement *statement, struct error *err);
static size_t text_count(const struct json_node *node);
static bool text_at(const struct json_node *node, size_t index, struct span *out);
static int take_actions(
	const struct json_node *list, struct statement *statement, struct error *err);
static int take_action(struct span pattern, struct statement *statement, struct error *err);
static bool action_matches(struct span pattern, const char *name);
static int take_resources(struct reader *reader, const struct statement *statement,
	const struct json_node *list, struct error *err);
static int take_resource(struct reader *reader, const struct statement *statement, struct span text,
	bool *out_bucket, bool *out_keys, struct error *err);
static int take_keys(struct reader *reader, const struct statement *statement, struct span pattern,
	struct error *err);
static int add_grants(struct reader *reader, const struct statement *statement,
	const struct asked *asked, struct span prefix, struct error *err);
static int add_grant(struct reader *reader, struct span account, struct span prefix,
	unsigned permissions, struct error *err);

int policy_document_parse(struct span json, struct span bucket, struct arena *arena,
	struct bucket_grant **out, size_t *out_count, struct error *err)
{
	struct reader reader = {.bucket = bucket,
		.arena = arena,
		.grants = arena_take_array(arena, BUCKET_GRANTS_MAX, sizeof(*reader.grants))};
	if (reader.grants == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The policy does not fit the memory of a request.");
	if (json.len > POLICY_DOCUMENT_MAX_BYTES)
		return malformed(err, "Policies are at most 20480 bytes");
	struct json_node *const root = json_node_parse(json, "the policy", err);
	if (root == NULL)
		return -1;
	int result = take_document(&reader, root, err);
	json_node_free(root);
	if (result == 0 && reader.count == 0)
		result = error_set(err, ERROR_UNSUPPORTED,
			"The actions of this policy give nothing by themselves here.");
	if (result == 0 && arena_overflowed(arena))
		result = error_set(
			err, ERROR_NO_MEMORY, "The policy does not fit the memory of a request.");
	*out = reader.grants;
	*out_count = reader.count;
	return result;
}

bool policy_document_is_public(const struct bucket_grant *grants, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bucket_grant_is_public(&grants[i]))
			return true;
	return false;
}

static int malformed(struct error *err, const char *what)
{
	return error_set(err, ERROR_INVALID, "%s", what);
}

static int take_document(struct reader *reader, const struct json_node *root, struct error *err)
{
	struct span version;
	const struct json_node *const statements = json_node_member(root, "Statement");
	if (!json_node_is_object(root))
		return malformed(err, "Policies must be valid JSON and the first byte must be '{'");
	if (check_members(root, "Version|Id|Statement", "", err) != 0)
		return -1;
	if (json_node_member(root, "Version") != NULL &&
		(!json_node_text(json_node_member(root, "Version"), &version) ||
			(!span_equal_text(version, "2012-10-17") &&
				!span_equal_text(version, "2008-10-17"))))
		return malformed(err, "The policy must contain a valid version string");
	if (json_node_is_object(statements))
		return take_statement(reader, statements, err);
	if (!json_node_is_array(statements) || json_node_count(statements) == 0)
		return malformed(err, "Missing required field Statement");
	for (size_t i = 0; i < json_node_count(statements); i++)
		if (take_statement(reader, json_node_at(statements, i), err) != 0)
			return -1;
	return 0;
}

static int check_members(
	const struct json_node *object, const char *known, const char *refused, struct error *err)
{
	struct span name;
	const struct json_node *value;
	void *cursor = NULL;
	while (json_node_each(object, &cursor, &name, &value)) {
		struct span names = span_text(refused);
		struct span one;
		while (span_split(&names, '|', &one))
			if (span_equal(name, one))
				return beyond(
					err, "This element of a policy is not implemented", name);
		bool found = false;
		names = span_text(known);
		while (!found && span_split(&names, '|', &one))
			found = span_equal(name, one);
		if (!found)
			return malformed(err, "The policy holds an element that no policy has");
	}
	return 0;
}

static int beyond(struct error *err, const char *what, struct span value)
{
	return error_set(err, ERROR_UNSUPPORTED, "%s: %.*s", what,
		(int)(value.len < 100 ? value.len : 100), (const char *)value.data);
}

static int take_statement(struct reader *reader, const struct json_node *node, struct error *err)
{
	struct statement statement = {.account_count = 0};
	struct span effect;
	if (!json_node_is_object(node))
		return malformed(err, "A Statement is an object");
	if (check_members(node, "Sid|Effect|Principal|Action|Resource",
		    "Condition|NotAction|NotPrincipal|NotResource", err) != 0)
		return -1;
	if (!json_node_text(json_node_member(node, "Effect"), &effect))
		return malformed(err, "Missing required field Effect");
	if (span_equal_text(effect, "Deny"))
		return beyond(err,
			"Only Allow statements are implemented; what nothing allows is denied. Effect",
			effect);
	if (!span_equal_text(effect, "Allow"))
		return malformed(err, "Invalid effect");
	if (take_principal(json_node_member(node, "Principal"), &statement, err) != 0 ||
		take_actions(json_node_member(node, "Action"), &statement, err) != 0)
		return -1;
	return take_resources(reader, &statement, json_node_member(node, "Resource"), err);
}

static int take_principal(
	const struct json_node *principal, struct statement *statement, struct error *err)
{
	struct span text;
	struct span name;
	const struct json_node *value;
	void *cursor = NULL;
	if (json_node_text(principal, &text))
		return span_equal_text(text, "*") ? take_account(text, statement, err)
						  : malformed(err, "Invalid principal in policy");
	if (!json_node_is_object(principal) || json_node_count(principal) == 0)
		return malformed(err, "A statement has a Principal: \"*\" or {\"AWS\": ...}");
	while (json_node_each(principal, &cursor, &name, &value)) {
		if (!span_equal_text(name, "AWS") && !span_equal_text(name, "CanonicalUser"))
			return beyond(err, "Principals other than AWS accounts are not implemented",
				name);
		if (take_accounts(value, statement, err) != 0)
			return -1;
	}
	return 0;
}

/* "*", a namespace, or arn:aws:iam::NAMESPACE:root. */
static int take_account(struct span text, struct statement *statement, struct error *err)
{
	static const struct span everyone = {NULL, 0};
	const struct span whole = text;
	if (statement->account_count == NAMED_MAX)
		return beyond(err,
			"The policy names too many principals in one statement, among them", text);
	if (span_equal_text(text, "*")) {
		statement->accounts[statement->account_count++] = everyone;
		return 0;
	}
	if (strip(&text, "arn:aws:iam::")) {
		if (!span_ends_text(text, ":root"))
			return beyond(err,
				"Principals are whole accounts here, arn:aws:iam::NAMESPACE:root, not",
				whole);
		text = span_slice(text, 0, text.len - 5);
	}
	if (text.len == 0 || span_find(text, ':') >= 0 || span_find(text, '*') >= 0 ||
		span_find(text, '/') >= 0 || span_find(text, 0) >= 0)
		return malformed(err, "Invalid principal in policy");
	statement->accounts[statement->account_count++] = text;
	return 0;
}

static bool strip(struct span *text, const char *prefix)
{
	const struct span wanted = span_text(prefix);
	if (!span_starts(*text, wanted))
		return false;
	*text = span_slice(*text, wanted.len, text->len);
	return true;
}

static int take_accounts(
	const struct json_node *list, struct statement *statement, struct error *err)
{
	const size_t count = text_count(list);
	struct span text;
	if (count == 0)
		return malformed(err, "Invalid principal in policy");
	for (size_t i = 0; i < count; i++) {
		if (!text_at(list, i, &text))
			return malformed(err, "Invalid principal in policy");
		if (take_account(text, statement, err) != 0)
			return -1;
	}
	return 0;
}

/* One text, or a list of them. */
static size_t text_count(const struct json_node *node)
{
	return json_node_is_text(node) ? 1 : json_node_is_array(node) ? json_node_count(node) : 0;
}

static bool text_at(const struct json_node *node, size_t index, struct span *out)
{
	return json_node_text(json_node_is_text(node) ? node : json_node_at(node, index), out);
}

static int take_actions(
	const struct json_node *list, struct statement *statement, struct error *err)
{
	const size_t count = text_count(list);
	struct span text;
	if (count == 0)
		return malformed(err, "Missing required field Action");
	for (size_t i = 0; i < count; i++) {
		if (!text_at(list, i, &text))
			return malformed(err, "Policy has invalid action");
		if (take_action(text, statement, err) != 0)
			return -1;
	}
	return 0;
}

static int take_action(struct span pattern, struct statement *statement, struct error *err)
{
	bool known = false;
	if (pattern.len == 0 ||
		(!span_equal_text(pattern, "*") &&
			(pattern.len < 3 || !span_equal_nocase(span_slice(pattern, 0, 3), "s3:"))))
		return malformed(err, "Policy has invalid action");
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (!action_matches(pattern, actions[i].name))
			continue;
		struct asked *const asked =
			actions[i].on_bucket ? &statement->on_bucket : &statement->on_keys;
		asked->any = known = true;
		if ((actions[i].permissions & PERMISSION_VERSIONS) != 0)
			asked->versions |= actions[i].permissions;
		else
			asked->plain |= actions[i].permissions;
	}
	return known
		? 0
		: beyond(err, "This action cannot be granted by a bucket policy here", pattern);
}

/* Names in any case; a last '*' stands for any end. */
static bool action_matches(struct span pattern, const char *name)
{
	const bool open = span_ends_text(pattern, "*");
	const struct span head = span_slice(pattern, 0, pattern.len - (open ? 1 : 0));
	const struct span whole = span_text(name);
	char cut[64];
	if (head.len > whole.len || (!open && head.len != whole.len) || head.len >= sizeof(cut))
		return false;
	for (size_t i = 0; i < head.len; i++)
		cut[i] = name[i];
	cut[head.len] = '\0';
	return span_equal_nocase(head, cut);
}

static int take_resources(struct reader *reader, const struct statement *statement,
	const struct json_node *list, struct error *err)
{
	const size_t count = text_count(list);
	bool on_bucket = false;
	bool on_keys = false;
	struct span text;
	if (count == 0)
		return malformed(err, "Missing required field Resource");
	for (size_t i = 0; i < count; i++) {
		if (!text_at(list, i, &text))
			return malformed(err, "Policy has invalid resource");
		if (take_resource(reader, statement, text, &on_bucket, &on_keys, err) != 0)
			return -1;
	}
	if ((statement->on_bucket.any && !on_bucket && !statement->on_keys.any) ||
		(statement->on_keys.any && !on_keys && !statement->on_bucket.any))
		return malformed(err, "Action does not apply to any resource(s) in statement");
	return 0;
}

static int take_resource(struct reader *reader, const struct statement *statement, struct span text,
	bool *out_bucket, bool *out_keys, struct error *err)
{
	static const struct span whole = {NULL, 0};
	struct span rest = text;
	const bool all = span_equal_text(text, "*") || span_equal_text(text, "arn:aws:s3:::*");
	if (!all && (!strip(&rest, "arn:aws:s3:::") || !span_starts(rest, reader->bucket)))
		return malformed(err, "Policy has invalid resource");
	rest = span_slice(rest, reader->bucket.len, rest.len);
	if (!all && rest.len > 0 && rest.data[0] != '/')
		return malformed(err, "Policy has invalid resource");
	if (!all && rest.len > 0) {
		*out_keys = true;
		return take_keys(reader, statement, span_slice(rest, 1, rest.len), err);
	}
	*out_bucket = true;
	*out_keys = *out_keys || all;
	if (all && add_grants(reader, statement, &statement->on_keys, whole, err) != 0)
		return -1;
	return add_grants(reader, statement, &statement->on_bucket, whole, err);
}

/* What stands behind "bucket/": a prefix and '*'. */
static int take_keys(struct reader *reader, const struct statement *statement, struct span pattern,
	struct error *err)
{
	const struct span prefix = span_slice(pattern, 0, pattern.len - (pattern.len > 0 ? 1 : 0));
	if (!span_ends_text(pattern, "*") || span_find(prefix, '*') >= 0 ||
		span_find(prefix, '?') >= 0 || span_find(prefix, '$') >= 0 ||
		span_find(prefix, 0) >= 0)
		return beyond(err,
			"Resources are the bucket, or keys by a prefix that ends in '*', not",
			pattern);
	return add_grants(reader, statement, &statement->on_keys, prefix, err);
}

static int add_grants(struct reader *reader, const struct statement *statement,
	const struct asked *asked, struct span prefix, struct error *err)
{
	const bool plain_is_less = (asked->plain & ~asked->versions) == 0;
	for (size_t i = 0; i < statement->account_count; i++)
		if (add_grant(reader, statement->accounts[i], prefix, asked->versions, err) != 0 ||
			(!plain_is_less &&
				add_grant(reader, statement->accounts[i], prefix, asked->plain,
					err) != 0))
			return -1;
	return 0;
}

static int add_grant(struct reader *reader, struct span account, struct span prefix,
	unsigned permissions, struct error *err)
{
	if (permissions == 0)
		return 0;
	if (reader->count == BUCKET_GRANTS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "The policy makes over %d grants.",
			BUCKET_GRANTS_MAX);
	reader->grants[reader->count++] = (struct bucket_grant){
		arena_copy(reader->arena, account), arena_copy(reader->arena, prefix), permissions};
	return 0;
}
