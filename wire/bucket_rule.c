/* The naming rules as one table. Rules behind bad_length may rely on a name that is not empty. */
#include "wire/bucket_rule.h"

#include <string.h>

#include "base/error.h"

static bool bad_length(struct span name);
static bool bad_bytes(struct span name);
static bool is_alphanumeric(uint8_t byte);
static bool bad_ends(struct span name);
static bool bad_neighbours(struct span name);
static bool looks_like_ipv4(struct span name);
static bool reserved_affix(struct span name);

static const struct {
	bool (*broken)(struct span name);
	const char *rule;
} rules[] = {
	{bucket_rule_is_reserved, "is reserved"},
	{bad_length, "must have 3 to 63 bytes"},
	{bad_bytes, "may hold only a-z, 0-9, '.' and '-'"},
	{bad_ends, "must begin and end with a letter or digit"},
	{bad_neighbours, "must not hold '..', '.-' or '-.'"},
	{looks_like_ipv4, "must not look like an IPv4 address"},
	{reserved_affix, "has a reserved prefix or suffix"},
};

bool bucket_rule_is_reserved(struct span name)
{
	static const char *const words[] = {
		"api", "buckets", "console", "health", "hot_load", "v1", "v2", "xet"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (span_equal_text(name, words[i]))
			return true;
	return false;
}

const char *bucket_rule_broken(struct span name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].broken(name))
			return rules[i].rule;
	return NULL;
}

static bool bad_length(struct span name)
{
	return name.len < 3 || name.len > 63;
}

static bool bad_bytes(struct span name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!is_alphanumeric(name.data[i]) && name.data[i] != '.' && name.data[i] != '-')
			return true;
	return false;
}

static bool is_alphanumeric(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static bool bad_ends(struct span name)
{
	ASSERT(name.len > 0);
	return !is_alphanumeric(name.data[0]) || !is_alphanumeric(name.data[name.len - 1]);
}

static bool bad_neighbours(struct span name)
{
	for (size_t i = 1; i < name.len; i++)
		if ((name.data[i - 1] == '.' && (name.data[i] == '.' || name.data[i] == '-')) ||
			(name.data[i - 1] == '-' && name.data[i] == '.'))
			return true;
	return false;
}

static bool looks_like_ipv4(struct span name)
{
	struct span rest = name;
	struct span piece;
	unsigned pieces = 0;
	while (span_split(&rest, '.', &piece)) {
		uint64_t value;
		if (piece.len > 3 || !span_parse_u64(piece, &value))
			return false;
		pieces++;
	}
	return pieces == 4;
}

static bool reserved_affix(struct span name)
{
	static const char *const prefixes[] = {"xn--", "sthree-"};
	static const char *const suffixes[] = {"-s3alias", "--ol-s3", "--x-s3"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (span_starts(name, span_text(prefixes[i])))
			return true;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (span_ends_text(name, suffixes[i]))
			return true;
	return false;
}
