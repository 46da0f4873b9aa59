#include "storage/runs/webhook_url.h"

#include <string.h>

static bool is_plain(struct span text);
static bool matches(const struct webhook_url *url, const char *pattern);
static struct span host_of(struct span authority);

int webhook_url_parse(struct span text, struct webhook_url *out, struct error *err)
{
	static const char *const schemes[] = {"https://", "http://"};
	*out = (struct webhook_url){0};
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		const size_t before = strlen(schemes[i]);
		if (!span_starts(text, span_text(schemes[i])) || !is_plain(text))
			continue;
		const struct span rest = span_slice(text, before, text.len);
		size_t end = 0;
		while (end < rest.len && rest.data[end] != '/' && rest.data[end] != '?')
			end++;
		out->authority = span_slice(rest, 0, end);
		out->endpoint = span_slice(text, 0, before + end);
		out->target = span_slice(rest, end, rest.len);
	}
	const bool has_query_alone = out->target.len > 0 && out->target.data[0] == '?';
	if (out->authority.len > 0 && out->authority.data[0] != ':' &&
		span_find(out->authority, '@') < 0 && !has_query_alone)
		return 0;
	return error_set(err, ERROR_INVALID,
		"A webhook must be a URL like https://host/path, without user, fragment and spaces.");
}

bool webhook_url_allowed(const struct webhook_url *url, const char *const *patterns, size_t count)
{
	ASSERT(url->authority.len > 0);
	for (size_t i = 0; i < count; i++)
		if (matches(url, patterns[i]))
			return true;
	return false;
}

static bool is_plain(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f || text.data[i] == '#' ||
			text.data[i] == '\\')
			return false;
	return true;
}

static bool matches(const struct webhook_url *url, const char *pattern)
{
	const struct span host = host_of(url->authority);
	const size_t len = strlen(pattern);
	if (strcmp(pattern, "*") == 0 || span_equal_nocase(url->authority, pattern) ||
		span_equal_nocase(host, pattern))
		return true;
	return pattern[0] == '.' && host.len > len &&
		span_equal_nocase(span_slice(host, host.len - len, host.len), pattern);
}

static struct span host_of(struct span authority)
{
	for (size_t i = authority.len; i > 0 && authority.data[i - 1] != ']'; i--)
		if (authority.data[i - 1] == ':')
			return span_slice(authority, 0, i - 1);
	return authority;
}
