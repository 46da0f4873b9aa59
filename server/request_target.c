#include "server/request_target.h"

static const char *const schemes[] = {"http://", "https://"};
enum { SCHEME_COUNT = sizeof(schemes) / sizeof(schemes[0]) };

static size_t measure_scheme(struct span sent);
static struct span take_authority(struct span *rest);
static bool is_authority(struct span text);
static bool is_host_byte(uint8_t byte);
static void split(struct request_target *target, struct span rest);
static struct span without_port(struct span authority);

struct request_target request_target_parse(struct span sent)
{
	struct request_target target = {.authority = span_text("")};
	const size_t scheme = measure_scheme(sent);
	struct span rest = span_slice(sent, scheme, sent.len);
	if (scheme > 0) {
		target.authority = take_authority(&rest);
		if (!is_authority(target.authority))
			target.fault =
				"The URL in the request line must name a host, with or without a port.";
	}
	split(&target, rest);
	if (scheme > 0 && target.path.len == 0)
		target.path = span_text("/");
	if (target.path.len == 0 || target.path.data[0] != '/')
		target.fault =
			"The target in the request line must be a path that begins with '/', or a URL with http:// or https://.";
	return target;
}

bool request_target_is_same_host(struct span a, struct span b)
{
	return span_same_nocase(without_port(a), without_port(b));
}

/* The index at which the authority begins; 0 when this is not an absolute form. */
static size_t measure_scheme(struct span sent)
{
	for (size_t i = 0; i < SCHEME_COUNT; i++) {
		const struct span scheme = span_text(schemes[i]);
		if (span_equal_nocase(span_slice(sent, 0, scheme.len), schemes[i]))
			return scheme.len;
	}
	return 0;
}

static struct span take_authority(struct span *rest)
{
	size_t len = 0;
	while (len < rest->len && rest->data[len] != '/' && rest->data[len] != '?')
		len++;
	const struct span authority = span_slice(*rest, 0, len);
	*rest = span_slice(*rest, len, rest->len);
	return authority;
}

static bool is_authority(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_host_byte(text.data[i]))
			return false;
	return text.len > 0 && text.data[0] != ':';
}

static bool is_host_byte(uint8_t byte)
{
	const uint8_t lower = byte | 0x20;
	return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= ':') || byte == '.' ||
		byte == '-' || byte == '_' || byte == '[' || byte == ']';
}

static void split(struct request_target *target, struct span rest)
{
	const ptrdiff_t mark = span_find(rest, '?');
	target->path = mark < 0 ? rest : span_slice(rest, 0, (size_t)mark);
	target->query = mark < 0 ? span_text("") : span_slice(rest, (size_t)mark + 1, rest.len);
}

static struct span without_port(struct span authority)
{
	static const char *const defaults[] = {":80", ":443"};
	for (size_t i = 0; i < 2; i++) {
		const size_t len = span_text(defaults[i]).len;
		if (authority.len > len &&
			span_equal_text(span_slice(authority, authority.len - len, authority.len),
				defaults[i]))
			return span_slice(authority, 0, authority.len - len);
	}
	return authority;
}
