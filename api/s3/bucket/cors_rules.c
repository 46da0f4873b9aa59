/* A rule has lists of origins, methods and headers that it allows. A pattern has at most one '*',
 * so a match compares the head before it and the tail after it. The first rule that allows all of a
 * request counts. Texts that go into reply headers are checked for control characters when they are
 * read. */
#include "api/s3/bucket/cors_rules.h"

#include <stdio.h>
#include <string.h>

#include "api/s3/xml/xml_tree.h"
#include "api/s3/xml/xml_writer.h"

enum { ID_MAX_BYTES = 255 };

static const char *const methods_known[] = {"GET", "PUT", "POST", "DELETE", "HEAD"};

static int read_rule(
	const struct xml_node *node, struct arena *arena, struct cors_rule *out, struct error *err);
static int read_list(const struct xml_node *rule, const char *element, unsigned stars_allowed,
	struct arena *arena, struct cors_list *out, struct error *err);
static int check_item(
	const char *element, struct span text, unsigned stars_allowed, struct error *err);
static bool is_printable(struct span text);
static unsigned count_stars(struct span text);
static bool read_age(struct span text, int64_t *out);
static int check_names(const char *element, const struct cors_list *list, struct error *err);
static void print_list(struct xml_writer *xml, const char *element, const struct cors_list *list);
static void print_age(struct xml_writer *xml, int64_t seconds);
static bool list_matches(const struct cors_list *list, struct span text, bool any_case);
static bool matches(struct span pattern, struct span text, bool any_case);
static bool equal(struct span a, struct span b, bool any_case);
static bool allows_headers(const struct cors_rule *rule, struct span headers);

bool cors_rules_know_method(struct span text)
{
	for (size_t i = 0; i < sizeof(methods_known) / sizeof(methods_known[0]); i++)
		if (span_equal_text(text, methods_known[i]))
			return true;
	return false;
}

bool cors_rules_is_header_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		const uint8_t byte = name.data[i];
		const bool is_alphanumeric = (byte >= 'a' && byte <= 'z') ||
			(byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
		if (!is_alphanumeric && (byte == '\0' || strchr("!#$%&'*+-.^_`|~", byte) == NULL))
			return false;
	}
	return name.len > 0;
}

int cors_rules_parse(
	struct span xml, struct arena *arena, struct cors_rules *out, struct error *err)
{
	struct xml_node *root;
	if (xml_tree_parse(xml, "CORSConfiguration", arena, &root, err) != 0 ||
		xml_tree_check(root, "CORSRule", NULL, err) != 0)
		return -1;
	const size_t count = xml_tree_count(root, "CORSRule");
	if (count == 0 || count > CORS_RULES_MAX)
		return error_set(err, ERROR_MALFORMED_XML,
			"A CORSConfiguration must have 1 to %d rules.", CORS_RULES_MAX);
	struct cors_rule *const rules = arena_take_array(arena, count, sizeof(*rules));
	if (rules == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The CORS rules do not fit the memory of a request.");
	size_t i = 0;
	for (const struct xml_node *rule = xml_tree_child(root, "CORSRule"); rule != NULL;
		rule = xml_tree_again(rule))
		if (read_rule(rule, arena, &rules[i++], err) != 0)
			return -1;
	ASSERT(i == count);
	*out = (struct cors_rules){rules, count};
	return 0;
}

int cors_rules_check(const struct cors_rules *rules, struct error *err)
{
	for (size_t i = 0; i < rules->count; i++)
		if (check_names("AllowedHeader", &rules->rules[i].headers, err) != 0 ||
			check_names("ExposeHeader", &rules->rules[i].exposed, err) != 0)
			return -1;
	return 0;
}

void cors_rules_print(const struct cors_rules *rules, struct buffer *out)
{
	struct xml_writer xml;
	ASSERT(rules->count > 0 && rules->count <= CORS_RULES_MAX);
	xml_writer_begin(&xml, out, "CORSConfiguration", true);
	for (size_t i = 0; i < rules->count; i++) {
		const struct cors_rule *const rule = &rules->rules[i];
		xml_writer_open(&xml, "CORSRule");
		if (rule->id.len > 0)
			xml_writer_text(&xml, "ID", rule->id);
		print_list(&xml, "AllowedOrigin", &rule->origins);
		print_list(&xml, "AllowedMethod", &rule->methods);
		print_list(&xml, "AllowedHeader", &rule->headers);
		print_list(&xml, "ExposeHeader", &rule->exposed);
		if (rule->has_max_age)
			print_age(&xml, rule->max_age_s);
		xml_writer_close(&xml);
	}
	xml_writer_end(&xml);
}

const struct cors_rule *cors_rules_match(
	const struct cors_rules *rules, struct span origin, struct span method, struct span headers)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct cors_rule *const rule = &rules->rules[i];
		if (list_matches(&rule->origins, origin, false) &&
			list_matches(&rule->methods, method, false) &&
			allows_headers(rule, headers))
			return rule;
	}
	return NULL;
}

bool cors_rule_is_open(const struct cors_rule *rule, struct span origin)
{
	for (size_t i = 0; i < rule->origins.count; i++)
		if (matches(rule->origins.items[i], origin, false))
			return span_equal_text(rule->origins.items[i], "*");
	return false;
}

static int read_rule(
	const struct xml_node *node, struct arena *arena, struct cors_rule *out, struct error *err)
{
	const struct span age = span_trim(xml_tree_text(node, "MaxAgeSeconds"));
	if (xml_tree_check(node,
		    "ID|AllowedOrigin|AllowedMethod|AllowedHeader|ExposeHeader|MaxAgeSeconds",
		    "ID|MaxAgeSeconds", err) != 0)
		return -1;
	if (read_list(node, "AllowedOrigin", 1, arena, &out->origins, err) != 0 ||
		read_list(node, "AllowedMethod", 0, arena, &out->methods, err) != 0 ||
		read_list(node, "AllowedHeader", 1, arena, &out->headers, err) != 0 ||
		read_list(node, "ExposeHeader", 0, arena, &out->exposed, err) != 0)
		return -1;
	out->id = xml_tree_text(node, "ID");
	out->has_max_age = xml_tree_child(node, "MaxAgeSeconds") != NULL;
	if (out->origins.count == 0 || out->methods.count == 0)
		return error_set(err, ERROR_MALFORMED_XML,
			"A CORSRule must have an AllowedOrigin and an AllowedMethod.");
	if (out->id.len > ID_MAX_BYTES || !is_printable(out->id))
		return error_set(err, ERROR_INVALID_REQUEST,
			"The ID of a CORSRule must have at most %d bytes and no control characters.",
			ID_MAX_BYTES);
	if (out->has_max_age && !read_age(age, &out->max_age_s))
		return error_set(
			err, ERROR_MALFORMED_XML, "MaxAgeSeconds must be a number of seconds.");
	return 0;
}

static int read_list(const struct xml_node *rule, const char *element, unsigned stars_allowed,
	struct arena *arena, struct cors_list *out, struct error *err)
{
	const size_t count = xml_tree_count(rule, element);
	struct span *const items = arena_take_array(arena, count + 1, sizeof(*items));
	if (items == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The CORS rules do not fit the memory of a request.");
	size_t i = 0;
	for (const struct xml_node *item = xml_tree_child(rule, element); item != NULL;
		item = xml_tree_again(item)) {
		ASSERT(i < count);
		items[i] = span_trim(item->text);
		if (check_item(element, items[i++], stars_allowed, err) != 0)
			return -1;
	}
	*out = (struct cors_list){items, count};
	return 0;
}

static int check_item(
	const char *element, struct span text, unsigned stars_allowed, struct error *err)
{
	const int len = (int)(text.len < 100 ? text.len : 100);
	if (strcmp(element, "AllowedMethod") == 0 && !cors_rules_know_method(text))
		return error_set(err, ERROR_INVALID_REQUEST,
			"Found unsupported HTTP method in CORS config. Unsupported method is %.*s",
			len, (const char *)text.data);
	if (text.len == 0 || !is_printable(text))
		return error_set(err, ERROR_MALFORMED_XML,
			"An %s must not be empty or have control characters.", element);
	if (count_stars(text) > stars_allowed)
		return error_set(err, ERROR_INVALID_REQUEST, "%s \"%.*s\" can not have %s.",
			element, len, (const char *)text.data,
			stars_allowed > 0 ? "more than one wildcard" : "a wildcard");
	return 0;
}

static bool is_printable(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < 0x20 || text.data[i] == 0x7f)
			return false;
	return true;
}

static unsigned count_stars(struct span text)
{
	unsigned count = 0;
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '*';
	return count;
}

static bool read_age(struct span text, int64_t *out)
{
	const bool is_negative = span_starts(text, span_text("-"));
	uint64_t number;
	if (!span_parse_u64(is_negative ? span_slice(text, 1, text.len) : text, &number) ||
		number > INT32_MAX)
		return false;
	*out = is_negative ? -(int64_t)number : (int64_t)number;
	return true;
}

static int check_names(const char *element, const struct cors_list *list, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct span name = list->items[i];
		if (!cors_rules_is_header_name(name))
			return error_set(err, ERROR_INVALID_REQUEST,
				"%s \"%.*s\" contains invalid character.", element,
				(int)(name.len < 100 ? name.len : 100), (const char *)name.data);
	}
	return 0;
}

static void print_list(struct xml_writer *xml, const char *element, const struct cors_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		xml_writer_text(xml, element, list->items[i]);
}

static void print_age(struct xml_writer *xml, int64_t seconds)
{
	char text[24];
	snprintf(text, sizeof(text), "%lld", (long long)seconds);
	xml_writer_text(xml, "MaxAgeSeconds", span_text(text));
}

static bool list_matches(const struct cors_list *list, struct span text, bool any_case)
{
	for (size_t i = 0; i < list->count; i++)
		if (matches(list->items[i], text, any_case))
			return true;
	return false;
}

static bool matches(struct span pattern, struct span text, bool any_case)
{
	const ptrdiff_t star = span_find(pattern, '*');
	if (star < 0)
		return equal(pattern, text, any_case);
	const struct span head = span_slice(pattern, 0, (size_t)star);
	const struct span tail = span_slice(pattern, (size_t)star + 1, pattern.len);
	return text.len >= head.len + tail.len &&
		equal(head, span_slice(text, 0, head.len), any_case) &&
		equal(tail, span_slice(text, text.len - tail.len, tail.len), any_case);
}

static bool equal(struct span a, struct span b, bool any_case)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		const uint8_t left = any_case && a.data[i] >= 'A' && a.data[i] <= 'Z'
			? (uint8_t)(a.data[i] + 32)
			: a.data[i];
		const uint8_t right = any_case && b.data[i] >= 'A' && b.data[i] <= 'Z'
			? (uint8_t)(b.data[i] + 32)
			: b.data[i];
		if (left != right)
			return false;
	}
	return true;
}

static bool allows_headers(const struct cors_rule *rule, struct span headers)
{
	struct span name;
	while (span_split(&headers, ',', &name)) {
		name = span_trim(name);
		if (name.len > 0 && !list_matches(&rule->headers, name, true))
			return false;
	}
	return true;
}
