/* A member is absent when the rule does not have it. The catalog may be damaged, so every value is
 * checked when it is read. */
#include "storage/buckets/lifecycle_document.h"

#include "base/format/json_node.h"

static void print_rule(const struct lifecycle_rule *rule, struct json_writer *json);
static void print_number(struct json_writer *json, const char *name, bool present, uint64_t value);
static bool read_rules(const struct json_node *list, struct arena *arena, struct lifecycle *out);
static bool read_rule(
	const struct json_node *node, struct arena *arena, struct lifecycle_rule *out);
static bool read_text(const struct json_node *node, struct arena *arena, struct span *out);
static bool read_filter(
	const struct json_node *node, struct arena *arena, struct lifecycle_rule *out);
static bool read_tags(
	const struct json_node *list, struct arena *arena, struct lifecycle_rule *out);
static bool read_number(
	const struct json_node *node, const char *name, bool *out_present, uint64_t *out);
static bool read_days(const struct json_node *node, const char *name, uint32_t *out);

void lifecycle_document_print(const struct lifecycle *lifecycle, struct buffer *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "rules");
	for (size_t i = 0; i < lifecycle->count; i++)
		print_rule(&lifecycle->rules[i], &json);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
}

int lifecycle_document_parse(
	struct span json, struct arena *arena, struct lifecycle *out, struct error *err)
{
	*out = (struct lifecycle){NULL, 0};
	if (json.len == 0)
		return 0;
	struct json_node *const root = json_node_parse(json, "the lifecycle of a bucket", err);
	const bool good = root != NULL && read_rules(json_node_member(root, "rules"), arena, out);
	json_node_free(root);
	if (!good)
		return error_set(
			err, ERROR_CORRUPT, "The stored lifecycle of a bucket is malformed.");
	return arena_overflowed(arena)
		? error_set(err, ERROR_NO_MEMORY,
			  "Memory ran out while reading the lifecycle of a bucket.")
		: 0;
}

static void print_rule(const struct lifecycle_rule *rule, struct json_writer *json)
{
	json_writer_object(json, NULL);
	json_writer_text(json, "id", rule->id);
	json_writer_bool(json, "enabled", rule->enabled);
	json_writer_u64(json, "form", rule->form);
	if (rule->has_prefix)
		json_writer_text(json, "prefix", rule->prefix);
	json_writer_array(json, "tags");
	for (size_t i = 0; i < rule->tag_count; i++) {
		json_writer_text(json, NULL, rule->tags[i].key);
		json_writer_text(json, NULL, rule->tags[i].value);
	}
	json_writer_end(json, ']');
	print_number(json, "size_over", rule->has_size_over, rule->size_over);
	print_number(json, "size_under", rule->has_size_under, rule->size_under);
	print_number(json, "expire_days", rule->expire_days > 0, rule->expire_days);
	if (rule->has_expire_date)
		json_writer_i64(json, "expire_date_ms", rule->expire_date_ms);
	json_writer_bool(json, "expires_markers", rule->expires_markers);
	print_number(json, "noncurrent_days", rule->noncurrent_days > 0, rule->noncurrent_days);
	print_number(json, "noncurrent_newer", rule->noncurrent_newer > 0, rule->noncurrent_newer);
	print_number(json, "abort_days", rule->abort_days > 0, rule->abort_days);
	json_writer_end(json, '}');
}

static void print_number(struct json_writer *json, const char *name, bool present, uint64_t value)
{
	if (present)
		json_writer_u64(json, name, value);
}

static bool read_rules(const struct json_node *list, struct arena *arena, struct lifecycle *out)
{
	const size_t count = json_node_count(list);
	struct lifecycle_rule *const rules = arena_take_array(arena, count + 1, sizeof(*rules));
	for (size_t i = 0; rules != NULL && i < count; i++)
		if (!read_rule(json_node_at(list, i), arena, &rules[i]))
			return false;
	*out = (struct lifecycle){rules, rules != NULL ? count : 0};
	return json_node_is_array(list);
}

static bool read_rule(const struct json_node *node, struct arena *arena, struct lifecycle_rule *out)
{
	const struct json_node *const date = json_node_member(node, "expire_date_ms");
	out->has_expire_date = date != NULL;
	return read_text(json_node_member(node, "id"), arena, &out->id) &&
		json_node_bool(json_node_member(node, "enabled"), &out->enabled) &&
		read_filter(node, arena, out) &&
		read_days(node, "expire_days", &out->expire_days) &&
		(date == NULL || json_node_i64(date, &out->expire_date_ms)) &&
		json_node_bool(json_node_member(node, "expires_markers"), &out->expires_markers) &&
		read_days(node, "noncurrent_days", &out->noncurrent_days) &&
		read_days(node, "noncurrent_newer", &out->noncurrent_newer) &&
		read_days(node, "abort_days", &out->abort_days);
}

static bool read_text(const struct json_node *node, struct arena *arena, struct span *out)
{
	struct span text;
	if (!json_node_text(node, &text))
		return false;
	*out = arena_copy(arena, text);
	return true;
}

static bool read_filter(
	const struct json_node *node, struct arena *arena, struct lifecycle_rule *out)
{
	const struct json_node *const prefix = json_node_member(node, "prefix");
	uint64_t form;
	out->has_prefix = prefix != NULL;
	if (!json_node_u64(json_node_member(node, "form"), &form) || form > LIFECYCLE_FILTER_AND)
		return false;
	out->form = (enum lifecycle_form)form;
	return (prefix == NULL || read_text(prefix, arena, &out->prefix)) &&
		read_tags(json_node_member(node, "tags"), arena, out) &&
		read_number(node, "size_over", &out->has_size_over, &out->size_over) &&
		read_number(node, "size_under", &out->has_size_under, &out->size_under);
}

static bool read_tags(const struct json_node *list, struct arena *arena, struct lifecycle_rule *out)
{
	const size_t count = json_node_count(list) / 2;
	struct tag *const tags = arena_take_array(arena, count + 1, sizeof(*tags));
	for (size_t i = 0; tags != NULL && i < count; i++)
		if (!read_text(json_node_at(list, 2 * i), arena, &tags[i].key) ||
			!read_text(json_node_at(list, 2 * i + 1), arena, &tags[i].value))
			return false;
	out->tags = tags;
	out->tag_count = tags != NULL ? count : 0;
	return json_node_is_array(list) && json_node_count(list) % 2 == 0;
}

/* Reads a number that may be absent. */
static bool read_number(
	const struct json_node *node, const char *name, bool *out_present, uint64_t *out)
{
	const struct json_node *const member = json_node_member(node, name);
	*out = 0;
	*out_present = member != NULL;
	return member == NULL || json_node_u64(member, out);
}

static bool read_days(const struct json_node *node, const char *name, uint32_t *out)
{
	uint64_t value;
	bool present;
	if (!read_number(node, name, &present, &value) || value > INT32_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}
