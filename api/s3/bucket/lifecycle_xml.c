/* One function reads each element of a rule: its id, its scope (a prefix or a filter) and each
 * action. Then check_actions judges the rule as a whole. A rule remembers how its scope was
 * written, so that it is printed in the same form. */
#include "api/s3/bucket/lifecycle_xml.h"

#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/random.h"

enum { MADE_ID_BYTES = 16, NEWER_MAX = 100, DAY_MS = 24 * 60 * 60 * 1000 };

static int read_rule(const struct xml_node *node, struct arena *arena, struct lifecycle_rule *out,
	struct error *err);
static int read_id(const struct xml_node *rule, struct arena *arena, struct lifecycle_rule *out,
	struct error *err);
static int read_scope(const struct xml_node *rule, struct arena *arena, struct lifecycle_rule *out,
	struct error *err);
static int read_filter(const struct xml_node *node, struct arena *arena, struct lifecycle_rule *out,
	struct error *err);
static int read_tags(const struct xml_node *filter, struct arena *arena, struct lifecycle_rule *out,
	struct error *err);
static int read_size(const struct xml_node *filter, const char *name, bool *out_has, uint64_t *out,
	struct error *err);
static int read_expiration(const struct xml_node *action, struct arena *arena,
	struct lifecycle_rule *out, struct error *err);
static int read_count(
	const struct xml_node *action, const char *name, uint32_t *out, struct error *err);
static int read_date(struct arena *arena, struct span text, int64_t *out_ms, struct error *err);
static bool read_flag(struct span text, bool *out);
static int read_noncurrent(
	const struct xml_node *action, struct lifecycle_rule *out, struct error *err);
static int read_abort(const struct xml_node *action, struct lifecycle_rule *out, struct error *err);
static int check_actions(const struct lifecycle_rule *rule, struct error *err);
static bool repeats_id(const struct lifecycle_rule *rules, size_t last);
static void print_rule(const struct lifecycle_rule *rule, struct xml_writer *xml);
static void print_scope(const struct lifecycle_rule *rule, struct xml_writer *xml);
static void print_conditions(const struct lifecycle_rule *rule, struct xml_writer *xml);
static void print_expiration(const struct lifecycle_rule *rule, struct xml_writer *xml);

int lifecycle_xml_parse(
	struct span xml, struct arena *arena, struct lifecycle *out, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, "LifecycleConfiguration", arena, &root, err) != 0 ||
		xml_tree_check(root, "Rule", NULL, err) != 0)
		return -1;
	const size_t count = xml_tree_count(root, "Rule");
	if (count == 0 || count > LIFECYCLE_RULES_MAX)
		return error_set(err, ERROR_MALFORMED_XML,
			"A LifecycleConfiguration must have 1 to %d rules.", LIFECYCLE_RULES_MAX);
	struct lifecycle_rule *const rules = arena_take_array(arena, count, sizeof(*rules));
	size_t i = 0;
	if (rules == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The rules do not fit the memory of a request.");
	for (const struct xml_node *rule = xml_tree_child(root, "Rule"); rule != NULL;
		rule = xml_tree_again(rule), i++) {
		if (read_rule(rule, arena, &rules[i], err) != 0)
			return -1;
		if (repeats_id(rules, i))
			return error_set(err, ERROR_INVALID,
				"Rule ID must be unique. Found same ID for more than one rule");
	}
	ASSERT(i == count);
	*out = (struct lifecycle){rules, count};
	return 0;
}

void lifecycle_xml_print(const struct lifecycle *lifecycle, struct buffer *out)
{
	struct xml_writer xml;
	xml_writer_begin(&xml, out, "LifecycleConfiguration", true);
	for (size_t i = 0; i < lifecycle->count; i++)
		print_rule(&lifecycle->rules[i], &xml);
	xml_writer_end(&xml);
}

static int read_rule(const struct xml_node *node, struct arena *arena, struct lifecycle_rule *out,
	struct error *err)
{
	static const char once[] =
		"ID|Status|Prefix|Filter|Expiration|NoncurrentVersionExpiration|AbortIncompleteMultipartUpload";
	const struct span status = span_trim(xml_tree_text(node, "Status"));
	if (xml_tree_child(node, "Transition") != NULL ||
		xml_tree_child(node, "NoncurrentVersionTransition") != NULL)
		return error_set(err, ERROR_UNSUPPORTED,
			"Transitions to other storage classes are not implemented.");
	if (xml_tree_check(node, once, once, err) != 0)
		return -1;
	out->enabled = span_equal_text(status, "Enabled");
	if (!out->enabled && !span_equal_text(status, "Disabled"))
		return error_set(err, ERROR_MALFORMED_XML,
			"The Status of a Rule must be Enabled or Disabled.");
	if (read_id(node, arena, out, err) != 0 || read_scope(node, arena, out, err) != 0 ||
		read_expiration(xml_tree_child(node, "Expiration"), arena, out, err) != 0 ||
		read_noncurrent(xml_tree_child(node, "NoncurrentVersionExpiration"), out, err) !=
			0 ||
		read_abort(xml_tree_child(node, "AbortIncompleteMultipartUpload"), out, err) != 0)
		return -1;
	return check_actions(out, err);
}

static int read_id(const struct xml_node *rule, struct arena *arena, struct lifecycle_rule *out,
	struct error *err)
{
	uint8_t made[MADE_ID_BYTES];
	char text[2 * MADE_ID_BYTES + 1];
	out->id = xml_tree_text(rule, "ID");
	if (out->id.len > LIFECYCLE_ID_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"ID length should not exceed allowed limit of %d", LIFECYCLE_ID_MAX_BYTES);
	if (out->id.len > 0)
		return 0;
	random_bytes(made, sizeof(made));
	encode_hex(span_of(made, sizeof(made)), text);
	out->id = arena_copy(arena, span_text(text));
	return 0;
}

static int read_scope(const struct xml_node *rule, struct arena *arena, struct lifecycle_rule *out,
	struct error *err)
{
	const struct xml_node *const filter = xml_tree_child(rule, "Filter");
	const struct xml_node *const prefix = xml_tree_child(rule, "Prefix");
	if ((filter == NULL) == (prefix == NULL))
		return error_set(
			err, ERROR_MALFORMED_XML, "A Rule must have either a Filter or a Prefix.");
	if (filter != NULL)
		return read_filter(filter, arena, out, err);
	out->form = LIFECYCLE_PREFIX;
	out->has_prefix = true;
	out->prefix = prefix->text;
	return 0;
}

static int read_filter(const struct xml_node *node, struct arena *arena, struct lifecycle_rule *out,
	struct error *err)
{
	static const char once[] = "Prefix|ObjectSizeGreaterThan|ObjectSizeLessThan|And";
	const struct xml_node *const and = xml_tree_child(node, "And");
	const struct xml_node *const from = and != NULL ? and : node;
	out->form = and != NULL ? LIFECYCLE_FILTER_AND : LIFECYCLE_FILTER;
	if (xml_tree_check(node, "Prefix|Tag|ObjectSizeGreaterThan|ObjectSizeLessThan|And", once,
		    err) != 0)
		return -1;
	if (node->child != NULL && node->child->next != NULL)
		return error_set(err, ERROR_MALFORMED_XML,
			"A Filter must have one condition, or And with several.");
	if (and != NULL &&
		xml_tree_check(
			and, "Prefix|Tag|ObjectSizeGreaterThan|ObjectSizeLessThan", once, err) != 0)
		return -1;
	out->has_prefix = xml_tree_child(from, "Prefix") != NULL;
	out->prefix = xml_tree_text(from, "Prefix");
	if (read_tags(from, arena, out, err) != 0 ||
		read_size(from, "ObjectSizeGreaterThan", &out->has_size_over, &out->size_over,
			err) != 0 ||
		read_size(from, "ObjectSizeLessThan", &out->has_size_under, &out->size_under,
			err) != 0)
		return -1;
	if (out->has_size_over && out->has_size_under && out->size_over >= out->size_under)
		return error_set(err, ERROR_INVALID_REQUEST,
			"'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.");
	return 0;
}

static int read_tags(const struct xml_node *filter, struct arena *arena, struct lifecycle_rule *out,
	struct error *err)
{
	const size_t count = xml_tree_count(filter, "Tag");
	struct tag *const tags = arena_take_array(arena, count + 1, sizeof(*tags));
	size_t taken = 0;
	if (tags == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The rules do not fit the memory of a request.");
	for (const struct xml_node *tag = xml_tree_child(filter, "Tag"); tag != NULL;
		tag = xml_tree_again(tag)) {
		ASSERT(taken < count);
		if (xml_tree_check(tag, "Key|Value", "Key|Value", err) != 0)
			return -1;
		tags[taken++] =
			(struct tag){xml_tree_text(tag, "Key"), xml_tree_text(tag, "Value")};
	}
	out->tags = tags;
	out->tag_count = count;
	return tag_set_check(tags, count, LIFECYCLE_TAGS_MAX, err);
}

static int read_size(const struct xml_node *filter, const char *name, bool *out_has, uint64_t *out,
	struct error *err)
{
	*out_has = xml_tree_child(filter, name) != NULL;
	if (!*out_has ||
		(span_parse_u64(span_trim(xml_tree_text(filter, name)), out) && *out <= INT64_MAX))
		return 0;
	return error_set(err, ERROR_INVALID, "'%s' must be a number of bytes.", name);
}

static int read_expiration(const struct xml_node *action, struct arena *arena,
	struct lifecycle_rule *out, struct error *err)
{
	static const char children[] = "Days|Date|ExpiredObjectDeleteMarker";
	if (action == NULL)
		return 0;
	if (xml_tree_check(action, children, children, err) != 0)
		return -1;
	if (action->child == NULL || action->child->next != NULL)
		return error_set(err, ERROR_MALFORMED_XML,
			"An Expiration must have one of Days, Date and ExpiredObjectDeleteMarker.");
	if (xml_tree_child(action, "Days") != NULL)
		return read_count(action, "Days", &out->expire_days, err);
	if (xml_tree_child(action, "Date") != NULL) {
		out->has_expire_date = true;
		return read_date(
			arena, span_trim(xml_tree_text(action, "Date")), &out->expire_date_ms, err);
	}
	return read_flag(span_trim(xml_tree_text(action, "ExpiredObjectDeleteMarker")),
		       &out->expires_markers)
		? 0
		: error_set(err, ERROR_MALFORMED_XML,
			  "ExpiredObjectDeleteMarker must be true or false.");
}

/* A number of days or versions, at least 1. */
static int read_count(
	const struct xml_node *action, const char *name, uint32_t *out, struct error *err)
{
	uint64_t count = 0;
	const struct span text = span_trim(xml_tree_text(action, name));
	if (!span_parse_u64(text, &count) || count == 0 || count > INT32_MAX)
		return error_set(err, ERROR_INVALID,
			"'%s' for %.*s action must be a positive integer", name,
			(int)action->name.len, (const char *)action->name.data);
	*out = (uint32_t)count;
	return 0;
}

static int read_date(struct arena *arena, struct span text, int64_t *out_ms, struct error *err)
{
	const bool is_day = text.len == 10;
	const struct span whole = is_day ? span_text(arena_format(arena, "%.*sT00:00:00Z",
						   (int)text.len, (const char *)text.data))
					 : text;
	if (!clock_parse_http(whole, out_ms))
		return error_set(err, ERROR_MALFORMED_XML,
			"The Date of an Expiration must be an ISO 8601 date.");
	return *out_ms % DAY_MS == 0
		? 0
		: error_set(err, ERROR_INVALID, "'Date' must be at midnight GMT");
}

static bool read_flag(struct span text, bool *out)
{
	*out = span_equal_nocase(text, "true");
	return *out || span_equal_nocase(text, "false");
}

static int read_noncurrent(
	const struct xml_node *action, struct lifecycle_rule *out, struct error *err)
{
	static const char children[] = "NoncurrentDays|NewerNoncurrentVersions";
	if (action == NULL)
		return 0;
	if (xml_tree_check(action, children, children, err) != 0 ||
		read_count(action, "NoncurrentDays", &out->noncurrent_days, err) != 0)
		return -1;
	if (xml_tree_child(action, "NewerNoncurrentVersions") == NULL)
		return 0;
	if (read_count(action, "NewerNoncurrentVersions", &out->noncurrent_newer, err) != 0)
		return -1;
	return out->noncurrent_newer <= NEWER_MAX
		? 0
		: error_set(err, ERROR_INVALID,
			  "'NewerNoncurrentVersions' must be between 1 and %d", NEWER_MAX);
}

static int read_abort(const struct xml_node *action, struct lifecycle_rule *out, struct error *err)
{
	if (action == NULL)
		return 0;
	if (xml_tree_check(action, "DaysAfterInitiation", "DaysAfterInitiation", err) != 0)
		return -1;
	return read_count(action, "DaysAfterInitiation", &out->abort_days, err);
}

/* Refuses actions that the filter does not allow, and a rule without actions. */
static int check_actions(const struct lifecycle_rule *rule, struct error *err)
{
	const bool filters_objects =
		rule->tag_count > 0 || rule->has_size_over || rule->has_size_under;
	if (rule->expires_markers && filters_objects)
		return error_set(err, ERROR_INVALID_REQUEST,
			"ExpiredObjectDeleteMarker cannot be specified with Tags or object sizes.");
	if (rule->abort_days > 0 && filters_objects)
		return error_set(err, ERROR_INVALID_REQUEST,
			"AbortIncompleteMultipartUpload cannot be specified with Tags or object sizes.");
	if (rule->expire_days == 0 && !rule->has_expire_date && !rule->expires_markers &&
		rule->noncurrent_days == 0 && rule->abort_days == 0)
		return error_set(err, ERROR_INVALID_REQUEST,
			"At least one action needs to be specified in a rule");
	return 0;
}

/* Whether the last rule has the id of one before it. */
static bool repeats_id(const struct lifecycle_rule *rules, size_t last)
{
	for (size_t i = 0; i < last; i++)
		if (span_equal(rules[i].id, rules[last].id))
			return true;
	return false;
}

static void print_rule(const struct lifecycle_rule *rule, struct xml_writer *xml)
{
	xml_writer_open(xml, "Rule");
	xml_writer_text(xml, "ID", rule->id);
	xml_writer_text(xml, "Status", span_text(rule->enabled ? "Enabled" : "Disabled"));
	print_scope(rule, xml);
	print_expiration(rule, xml);
	if (rule->noncurrent_days > 0) {
		xml_writer_open(xml, "NoncurrentVersionExpiration");
		xml_writer_u64(xml, "NoncurrentDays", rule->noncurrent_days);
		if (rule->noncurrent_newer > 0)
			xml_writer_u64(xml, "NewerNoncurrentVersions", rule->noncurrent_newer);
		xml_writer_close(xml);
	}
	if (rule->abort_days > 0) {
		xml_writer_open(xml, "AbortIncompleteMultipartUpload");
		xml_writer_u64(xml, "DaysAfterInitiation", rule->abort_days);
		xml_writer_close(xml);
	}
	xml_writer_close(xml);
}

static void print_scope(const struct lifecycle_rule *rule, struct xml_writer *xml)
{
	if (rule->form == LIFECYCLE_PREFIX) {
		xml_writer_text(xml, "Prefix", rule->prefix);
		return;
	}
	xml_writer_open(xml, "Filter");
	if (rule->form == LIFECYCLE_FILTER_AND)
		xml_writer_open(xml, "And");
	print_conditions(rule, xml);
	if (rule->form == LIFECYCLE_FILTER_AND)
		xml_writer_close(xml);
	xml_writer_close(xml);
}

static void print_conditions(const struct lifecycle_rule *rule, struct xml_writer *xml)
{
	if (rule->has_prefix)
		xml_writer_text(xml, "Prefix", rule->prefix);
	for (size_t i = 0; i < rule->tag_count; i++) {
		xml_writer_open(xml, "Tag");
		xml_writer_text(xml, "Key", rule->tags[i].key);
		xml_writer_text(xml, "Value", rule->tags[i].value);
		xml_writer_close(xml);
	}
	if (rule->has_size_over)
		xml_writer_u64(xml, "ObjectSizeGreaterThan", rule->size_over);
	if (rule->has_size_under)
		xml_writer_u64(xml, "ObjectSizeLessThan", rule->size_under);
}

static void print_expiration(const struct lifecycle_rule *rule, struct xml_writer *xml)
{
	if (rule->expire_days == 0 && !rule->has_expire_date && !rule->expires_markers)
		return;
	xml_writer_open(xml, "Expiration");
	if (rule->expire_days > 0)
		xml_writer_u64(xml, "Days", rule->expire_days);
	if (rule->has_expire_date)
		xml_writer_time(xml, "Date", rule->expire_date_ms);
	if (rule->expires_markers)
		xml_writer_bool(xml, "ExpiredObjectDeleteMarker", true);
	xml_writer_close(xml);
}
