/* Each condition judges one field and marks it as covered. At the end every field must be covered,
 * so that a form cannot have more than its policy allows. Ranges of the file's size are only
 * collected here, because the file has not come yet. */
#include "api/s3/post/post_policy.h"

#include "base/clock.h"
#include "base/encode.h"
#include "base/format/json_node.h"

enum { POLICY_MAX_BYTES = 20 * 1024, SHOWN_BYTES = 100 };

struct judgement {
	const struct post_form *form;
	struct span bucket;
	struct post_policy *policy;
	bool is_covered[POST_FORM_FIELDS_MAX]; /* a condition names the field */
	bool is_bucket_covered;
};

static bool decode(struct span text, uint8_t *out, size_t *out_len);
static int malformed(struct error *err, const char *fault);
static int check_expiration(const struct json_node *root, int64_t now_ms, struct error *err);
static int judge(
	struct judgement *judgement, const struct json_node *conditions, struct error *err);
static int judge_list(
	struct judgement *judgement, const struct json_node *condition, struct error *err);
static int take_range(
	struct judgement *judgement, const struct json_node *condition, struct error *err);
static bool read_number(const struct json_node *node, uint64_t *out);
static int judge_equal(
	struct judgement *judgement, struct span field, struct span wanted, struct error *err);
static bool find_value(struct judgement *judgement, struct span field, struct span *out);
static int deny(struct error *err, const char *operator, struct span field, struct span value);
static int judge_start(
	struct judgement *judgement, struct span field, struct span wanted, struct error *err);
static int judge_object(
	struct judgement *judgement, const struct json_node *condition, struct error *err);
static int check_coverage(const struct judgement *judgement, struct error *err);
static bool is_exempt(struct span name);
static bool repeats_bucket(const struct judgement *judgement, const struct post_field *field);

int post_policy_check(struct span text, const struct post_form *form, struct span bucket,
	int64_t now_ms, struct post_policy *out, struct error *err)
{
	uint8_t json[POLICY_MAX_BYTES];
	size_t len = 0;
	struct judgement judgement = {.form = form, .bucket = bucket, .policy = out};
	struct error cause = {0};
	*out = (struct post_policy){0, UINT64_MAX};
	if (!decode(text, json, &len))
		return malformed(err, "it is not base64");
	struct json_node *const root = json_node_parse(span_of(json, len), "the policy", &cause);
	if (root == NULL) {
		*err = cause;
		err->kind = ERROR_INVALID;
		return error_wrap(err, "Invalid Policy");
	}
	int outcome = json_node_is_object(root) ? check_expiration(root, now_ms, err)
						: malformed(err, "it is not a JSON object");
	if (outcome == 0)
		outcome = judge(&judgement, json_node_member(root, "conditions"), err);
	json_node_free(root);
	return outcome;
}

/* Ignores line breaks and spaces, because old clients break their base64 into lines. */
static bool decode(struct span text, uint8_t *out, size_t *out_len)
{
	struct buffer joined;
	buffer_init(&joined, text.len + 1);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] != '\r' && text.data[i] != '\n' && text.data[i] != ' ')
			buffer_add_byte(&joined, text.data[i]);
	const bool good = joined.len > 0 &&
		decode_base64(buffer_span(&joined), out, POLICY_MAX_BYTES, out_len);
	buffer_release(&joined);
	return good;
}

static int malformed(struct error *err, const char *fault)
{
	return error_set(err, ERROR_INVALID, "Invalid Policy: %s.", fault);
}

static int check_expiration(const struct json_node *root, int64_t now_ms, struct error *err)
{
	struct span text;
	int64_t end_ms;
	if (!json_node_text(json_node_member(root, "expiration"), &text))
		return malformed(err, "it has no expiration");
	if (text.len == 0 || text.data[0] < '0' || text.data[0] > '9' ||
		text.data[text.len - 1] != 'Z' || !clock_parse_http(text, &end_ms))
		return malformed(
			err, "its expiration does not have the form 2007-12-01T12:00:00.000Z");
	return now_ms <= end_ms
		? 0
		: error_set(err, ERROR_DENIED, "Invalid according to Policy: Policy expired.");
}

static int judge(struct judgement *judgement, const struct json_node *conditions, struct error *err)
{
	if (!json_node_is_array(conditions) || json_node_count(conditions) == 0)
		return malformed(err, "it has no list of conditions");
	for (size_t i = 0; i < json_node_count(conditions); i++) {
		const struct json_node *const condition = json_node_at(conditions, i);
		if (!json_node_is_array(condition) && !json_node_is_object(condition))
			return malformed(err, "a condition is neither a list nor an object");
		const int outcome = json_node_is_array(condition)
			? judge_list(judgement, condition, err)
			: judge_object(judgement, condition, err);
		if (outcome != 0)
			return -1;
	}
	return check_coverage(judgement, err);
}

static int judge_list(
	struct judgement *judgement, const struct json_node *condition, struct error *err)
{
	struct span operator;
	struct span field;
	struct span value;
	if (!json_node_text(json_node_at(condition, 0), &operator))
		return malformed(err, "a condition does not begin with an operator");
	if (span_equal_nocase(operator, "content-length-range"))
		return take_range(judgement, condition, err);
	const bool is_equal = span_equal_nocase(operator, "eq");
	if (!is_equal && !span_equal_nocase(operator, "starts-with"))
		return malformed(err, "a condition has an unknown operator");
	if (json_node_count(condition) != 3 ||
		!json_node_text(json_node_at(condition, 1), &field) || field.len < 2 ||
		field.data[0] != '$' || !json_node_text(json_node_at(condition, 2), &value))
		return malformed(
			err, "a condition does not have the form [operator, \"$field\", value]");
	field = span_slice(field, 1, field.len);
	return is_equal ? judge_equal(judgement, field, value, err)
			: judge_start(judgement, field, value, err);
}

/* Narrows the bounds: when there are several ranges, all must hold. */
static int take_range(
	struct judgement *judgement, const struct json_node *condition, struct error *err)
{
	struct post_policy *const policy = judgement->policy;
	uint64_t least;
	uint64_t most;
	if (json_node_count(condition) != 3 || !read_number(json_node_at(condition, 1), &least) ||
		!read_number(json_node_at(condition, 2), &most) || least > most)
		return malformed(
			err, "content-length-range must have two numbers, the smaller one first");
	policy->least_bytes = least > policy->least_bytes ? least : policy->least_bytes;
	policy->most_bytes = most < policy->most_bytes ? most : policy->most_bytes;
	return 0;
}

static bool read_number(const struct json_node *node, uint64_t *out)
{
	struct span text;
	return json_node_u64(node, out) ||
		(json_node_text(node, &text) && span_parse_u64(text, out));
}

static int judge_equal(
	struct judgement *judgement, struct span field, struct span wanted, struct error *err)
{
	struct span value;
	return find_value(judgement, field, &value) && span_equal(value, wanted)
		? 0
		: deny(err, "eq", field, wanted);
}

/* Finds a field's value and marks the field as covered. */
static bool find_value(struct judgement *judgement, struct span field, struct span *out)
{
	if (span_equal_nocase(field, "bucket")) {
		judgement->is_bucket_covered = true;
		*out = judgement->bucket;
		return true;
	}
	ASSERT(judgement->form->count <= POST_FORM_FIELDS_MAX);
	for (size_t i = 0; i < judgement->form->count; i++)
		if (span_same_nocase(judgement->form->fields[i].name, field)) {
			judgement->is_covered[i] = true;
			*out = judgement->form->fields[i].value;
			return true;
		}
	*out = span_text("");
	return false;
}

static int deny(struct error *err, const char *operator, struct span field, struct span value)
{
	return error_set(err, ERROR_DENIED,
		"Invalid according to Policy: Policy Condition failed: [\"%s\", \"$%.*s\", \"%.*s\"]",
		operator, (int)(field.len < SHOWN_BYTES ? field.len : SHOWN_BYTES),
		(const char *)field.data, (int)(value.len < SHOWN_BYTES ? value.len : SHOWN_BYTES),
		(const char *)value.data);
}

static int judge_start(
	struct judgement *judgement, struct span field, struct span wanted, struct error *err)
{
	struct span value;
	find_value(judgement, field, &value);
	return span_starts(value, wanted) ? 0 : deny(err, "starts-with", field, wanted);
}

static int judge_object(
	struct judgement *judgement, const struct json_node *condition, struct error *err)
{
	void *cursor = NULL;
	struct span field;
	const struct json_node *value;
	struct span wanted;
	if (json_node_count(condition) == 0)
		return malformed(err, "a condition is empty");
	while (json_node_each(condition, &cursor, &field, &value)) {
		if (!json_node_text(value, &wanted))
			return malformed(err, "the value of a condition is not a text");
		if (judge_equal(judgement, field, wanted, err) != 0)
			return -1;
	}
	return 0;
}

static int check_coverage(const struct judgement *judgement, struct error *err)
{
	const struct post_form *const form = judgement->form;
	if (!judgement->is_bucket_covered)
		return error_set(err, ERROR_DENIED,
			"Invalid according to Policy: no condition names the bucket.");
	for (size_t i = 0; i < form->count; i++) {
		const struct span name = form->fields[i].name;
		if (!judgement->is_covered[i] && !is_exempt(name) &&
			!repeats_bucket(judgement, &form->fields[i]))
			return error_set(err, ERROR_DENIED,
				"Invalid according to Policy: Extra input fields: %.*s.",
				(int)(name.len < SHOWN_BYTES ? name.len : SHOWN_BYTES),
				(const char *)name.data);
	}
	return 0;
}

/* The policy itself and the fields of its signature need no condition. */
static bool is_exempt(struct span name)
{
	static const char *const names[] = {"policy", "signature", "awsaccesskeyid",
		"x-amz-signature", "x-amz-algorithm", "x-amz-credential", "x-amz-date"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_equal_nocase(name, names[i]))
			return true;
	return span_equal_nocase(span_slice(name, 0, 9), "x-ignore-");
}

/* Some clients send the bucket as a field too, which adds nothing to the path. */
static bool repeats_bucket(const struct judgement *judgement, const struct post_field *field)
{
	return span_equal_nocase(field->name, "bucket") &&
		span_equal(field->value, judgement->bucket);
}
