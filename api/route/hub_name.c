/* A name in the catalog has a namespace if it contains "--" after its first byte: names on the Hub
 * may not contain it, so the first "--" separates namespace and name. The rules for new names are a
 * table; the first broken rule is reported. */
#include "api/route/hub_name.h"

#include <string.h>

#include "storage/buckets/bucket.h"

enum { NAME_MAX_BYTES = 96 };

static bool bad_length(struct span name);
static bool bad_bytes(struct span name);
static bool bad_ends(struct span name);
static bool is_dot_or_dash(uint8_t byte);
static bool bad_neighbours(struct span name);
static int refuse(struct span name, const char *rule, struct error *err);

static const struct {
	bool (*broken)(struct span name);
	const char *rule;
} rules[] = {
	{bad_length, "must have 1 to 96 characters"},
	{bad_bytes, "must have only letters, digits, '_', '.' and '-'"},
	{bad_ends, "must not begin or end with '.' or '-', or end with '.git'"},
	{bad_neighbours, "must not contain '--' or '..'"},
};

struct span hub_name_bucket(
	struct arena *arena, const char *default_namespace, struct span namespace, struct span name)
{
	if (span_equal_text(namespace, "-") || span_equal_text(namespace, default_namespace))
		return name;
	const char *const text = arena_format(arena, "%.*s--%.*s", (int)namespace.len,
		(const char *)namespace.data, (int)name.len, (const char *)name.data);
	return text != NULL ? span_text(text) : (struct span){NULL, 0};
}

struct hub_name hub_name_of(const char *default_namespace, struct span bucket)
{
	const uint8_t *const dashes =
		bucket.len > 0 ? memmem(bucket.data, bucket.len, "--", 2) : NULL;
	if (dashes == NULL || dashes == bucket.data)
		return (struct hub_name){span_text(default_namespace), bucket};
	const size_t at = (size_t)(dashes - bucket.data);
	return (struct hub_name){span_slice(bucket, 0, at), span_slice(bucket, at + 2, bucket.len)};
}

bool hub_name_is_resolve(struct span path)
{
	struct span rest = span_slice(path, 1, path.len);
	struct span segment;
	size_t before = 0; /* count of the segments before "resolve" */
	bool typed = false;
	for (; span_split(&rest, '/', &segment); before++) {
		typed = typed ||
			(before == 0 &&
				(span_equal_text(segment, "datasets") ||
					span_equal_text(segment, "spaces")));
		if (span_equal_text(segment, "resolve"))
			return before == (typed ? 3 : 2) && span_find(rest, '/') > 0;
	}
	return false;
}

int hub_name_check(const char *default_namespace, struct hub_name name, struct error *err)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken(name.name))
			return refuse(name.name, rules[i].rule, err);
	if (span_equal_text(name.namespace, default_namespace) &&
		bucket_name_is_reserved(name.name))
		return refuse(name.name, "is reserved", err);
	return 0;
}

int hub_name_check_bucket(const char *default_namespace, struct span bucket, struct error *err)
{
	return bucket_name_is_possible(bucket)
		? 0
		: hub_name_check(default_namespace, hub_name_of(default_namespace, bucket), err);
}

static bool bad_length(struct span name)
{
	return name.len < 1 || name.len > NAME_MAX_BYTES;
}

static bool bad_bytes(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		const uint8_t byte = name.data[i];
		const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
		if (!is_letter && !(byte >= '0' && byte <= '9') && byte != '_' && byte != '.' &&
			byte != '-')
			return true;
	}
	return false;
}

static bool bad_ends(struct span name)
{
	ASSERT(name.len > 0); /* bad_length was judged first */
	return is_dot_or_dash(name.data[0]) || is_dot_or_dash(name.data[name.len - 1]) ||
		span_ends_text(name, ".git");
}

static bool is_dot_or_dash(uint8_t byte)
{
	return byte == '.' || byte == '-';
}

static bool bad_neighbours(struct span name)
{
	return memmem(name.data, name.len, "--", 2) != NULL ||
		memmem(name.data, name.len, "..", 2) != NULL;
}

static int refuse(struct span name, const char *rule, struct error *err)
{
	return error_set(err, ERROR_BAD_NAME, "The bucket name '%.*s' %s.",
		(int)(name.len > 100 ? 100 : name.len), (const char *)name.data, rule);
}
