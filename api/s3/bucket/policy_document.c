/* A statement becomes the product of its principals, resources and actions: a grant for each
 * principal and resource, with the permissions of all actions. Actions differ in whether they reach
 * older versions, so one principal and resource may need two grants; one grant with the permissions
 * of both would allow more than the policy does (storage/buckets/bucket_grant.h). */
#include "api/s3/bucket/policy_document.h"

#include "base/format/json_node.h"

enum { ACCOUNTS_MAX = 64 };

struct action {
	const char *name;
	unsigned permissions; /* 0: the other actions include it */
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

struct permissions {       /* what the actions of a statement give */
	bool any;          /* an action applies, perhaps one without permissions of its own */
	unsigned plain;    /* of actions without PERMISSION_VERSIONS */
	unsigned versions; /* of actions with it */
};
struct statement {
	struct span accounts[ACCOUNTS_MAX]; /* empty: everyone */
	size_t account_count;
	struct permissions on_bucket;
	struct permissions on_keys;
};
struct reader {
	struct span bucket;
	struct arena *arena;
	struct bucket_grant *grants;
	size_t count;
};

static int malformed(struct error *err, const char *message);
static int take_document(struct reader *reader, const struct json_node *root, struct error *err);
static int check_members(
	const struct json_node *object, const char *known, const char *refused, struct error *err);
static int unsupported(struct error *err, const char *message, struct span value);
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
	const struct permissions *given, struct span prefix, struct error *err);
static int add_grant(struct reader *reader, struct span account, struct span prefix,
	unsigned permissions, struct error *err);

int policy_document_parse(struct span json, struct span bucket, struct arena *arena,
	struct bucket_grant **out, size_t *out_count, struct error *err)
{
	ASSERT(bucket.len > 0);
	struct reader reader = {.bucket = bucket,
		.arena = arena,
		.grants = arena_take_array(arena, BUCKET_GRANTS_MAX, sizeof(*reader.grants))};
	if (reader.grants == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The policy does not fit the memory of a request.");
	if (json.len > POLICY_DOCUMENT_MAX_BYTES)
		return malformed(err, "A policy must have at most 20480 bytes.");
	struct json_node *const root = json_node_parse(json, "the policy", err);
	if (root == NULL)
		return -1;
	int result = take_document(&reader, root, err);
	json_node_free(root);
	if (result == 0 && reader.count == 0)
		result = error_set(err, ERROR_UNSUPPORTED,
			"The actions of this policy allow nothing by themselves on this server.");
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

static int malformed(struct error *err, const char *message)
{
	return error_set(err, ERROR_INVALID, "%s", message);
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
				return unsupported(
					err, "This element of a policy is not implemented", name);
		bool found = false;
		names = span_text(known);
		while (!found && span_split(&names, '|', &one))
			found = span_equal(name, one);
		if (!found)
			return malformed(err, "The policy has an unknown element.");
	}
	return 0;
}

/* The message ends with the value at fault. */
static int unsupported(struct error *err, const char *message, struct span value)
{
	return error_set(err, ERROR_UNSUPPORTED, "%s: '%.*s'.", message,
		(int)(value.len < 100 ? value.len : 100), (const char *)value.data);
}

static int take_statement(struct reader *reader, const struct json_node *node, struct error *err)
{
	struct statement statement = {.account_count = 0};
	struct span effect;
	if (!json_node_is_object(node))
		return malformed(err, "A Statement must be a JSON object.");
	if (check_members(node, "Sid|Effect|Principal|Action|Resource",
		    "Condition|NotAction|NotPrincipal|NotResource", err) != 0)
		return -1;
	if (!json_node_text(json_node_member(node, "Effect"), &effect))
		return malformed(err, "Missing required field Effect");
	if (span_equal_text(effect, "Deny"))
		return unsupported(err,
			"The Effect must be Allow, because all that no statement allows is denied; it is",
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
		return malformed(
			err, "A statement must have a Principal: \"*\" or {\"AWS\": ...}.");
	while (json_node_each(principal, &cursor, &name, &value)) {
		if (!span_equal_text(name, "AWS") && !span_equal_text(name, "CanonicalUser"))
			return unsupported(err,
				"Principals other than AWS accounts are not implemented", name);
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
	ASSERT(statement->account_count <= ACCOUNTS_MAX);
	if (statement->account_count == ACCOUNTS_MAX)
		return unsupported(err,
			"A statement must have at most 64 principals; this policy has more, among them",
			text);
	if (span_equal_text(text, "*")) {
		statement->accounts[statement->account_count++] = everyone;
		return 0;
	}
	if (strip(&text, "arn:aws:iam::")) {
		if (!span_ends_text(text, ":root"))
			return unsupported(err,
				"A principal must be a whole account, arn:aws:iam::NAMESPACE:root, not",
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

/* Principals, actions and resources are one text or a list of texts. */
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
		struct permissions *const given =
			actions[i].on_bucket ? &statement->on_bucket : &statement->on_keys;
		given->any = known = true;
		if ((actions[i].permissions & PERMISSION_VERSIONS) != 0)
			given->versions |= actions[i].permissions;
		else
			given->plain |= actions[i].permissions;
	}
	return known ? 0
		     : unsupported(err, "A bucket policy of this server cannot allow the action",
			       pattern);
}

/* Compares in any case; a last '*' of the pattern stands for any end. */
static bool action_matches(struct span pattern, const char *name)
{
	const bool is_open = span_ends_text(pattern, "*");
	const struct span head = span_slice(pattern, 0, pattern.len - (is_open ? 1 : 0));
	const struct span whole = span_text(name);
	return span_same_nocase(head, is_open ? span_slice(whole, 0, head.len) : whole);
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

/* The part of a resource after "bucket/": a prefix and '*'. */
static int take_keys(struct reader *reader, const struct statement *statement, struct span pattern,
	struct error *err)
{
	const struct span prefix = span_slice(pattern, 0, pattern.len - (pattern.len > 0 ? 1 : 0));
	if (!span_ends_text(pattern, "*") || span_find(prefix, '*') >= 0 ||
		span_find(prefix, '?') >= 0 || span_find(prefix, '$') >= 0 ||
		span_find(prefix, 0) >= 0)
		return unsupported(err,
			"A resource must be the bucket, or keys by a prefix that ends in '*', not",
			pattern);
	return add_grants(reader, statement, &statement->on_keys, prefix, err);
}

static int add_grants(struct reader *reader, const struct statement *statement,
	const struct permissions *given, struct span prefix, struct error *err)
{
	const bool is_plain_covered = (given->plain & ~given->versions) == 0;
	ASSERT(statement->account_count > 0);
	for (size_t i = 0; i < statement->account_count; i++)
		if (add_grant(reader, statement->accounts[i], prefix, given->versions, err) != 0 ||
			(!is_plain_covered &&
				add_grant(reader, statement->accounts[i], prefix, given->plain,
					err) != 0))
			return -1;
	return 0;
}

static int add_grant(struct reader *reader, struct span account, struct span prefix,
	unsigned permissions, struct error *err)
{
	if (permissions == 0)
		return 0;
	ASSERT(reader->count <= BUCKET_GRANTS_MAX);
	if (reader->count == BUCKET_GRANTS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "The policy makes over %d grants.",
			BUCKET_GRANTS_MAX);
	reader->grants[reader->count++] = (struct bucket_grant){
		arena_copy(reader->arena, account), arena_copy(reader->arena, prefix), permissions};
	return 0;
}
