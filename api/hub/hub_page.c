#include "api/hub/hub_page.h"

#include <string.h>

#include "api/exchange/base_url.h"
#include "base/encode.h"

enum { URL_MAX_BYTES = 8000 /* a header has at most 8192 bytes */ };

static void add_raw(struct buffer *out, struct span text);
static bool is_cursor(struct span pair);

int hub_page_limit(struct exchange *exchange, uint64_t usual, uint64_t most, uint64_t *out_limit,
	struct error *err)
{
	struct span text;
	ASSERT(usual >= 1 && usual <= most);
	*out_limit = usual;
	if (!exchange_query(exchange, "limit", &text))
		return 0;
	if (!span_parse_u64(text, out_limit) || *out_limit == 0)
		return error_set(
			err, ERROR_INVALID, "The parameter limit must be a number from 1.");
	if (*out_limit > most)
		*out_limit = most;
	return 0;
}

int hub_page_link(struct exchange *exchange, struct span cursor, struct error *err)
{
	struct buffer url;
	struct span rest = exchange->query;
	struct span pair;
	buffer_init(&url, URL_MAX_BYTES);
	buffer_format(&url, "<%s", base_url(exchange));
	add_raw(&url, exchange->path);
	buffer_add_byte(&url, '?');
	while (span_split(&rest, '&', &pair)) {
		if (pair.len == 0 || is_cursor(pair))
			continue;
		add_raw(&url, pair);
		buffer_add_byte(&url, '&');
	}
	buffer_add_text(&url, "cursor=");
	encode_percent(cursor, false, &url);
	buffer_add_text(&url, ">; rel=\"next\"");
	const char *const link =
		buffer_failed(&url) ? NULL : arena_text(exchange->arena, buffer_span(&url));
	buffer_release(&url);
	if (link == NULL)
		return error_set(err, ERROR_INVALID,
			"The request's URL is too long for a link to the next page.");
	exchange_add_header(exchange, "Link", link);
	return 0;
}

/* Encodes the bytes that a request line may have but a header may not. Leaves '%' as it is, because
 * parts of the text may be percent-encoded already. */
static void add_raw(struct buffer *out, struct span text)
{
	static const char kept[] = "-._~%=+/:@!$*()";
	for (size_t i = 0; i < text.len; i++) {
		const uint8_t byte = text.data[i];
		const bool is_plain = (byte >= 'a' && byte <= 'z') ||
			(byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
		if (is_plain || (byte != 0 && strchr(kept, byte) != NULL))
			buffer_add_byte(out, byte);
		else
			encode_percent(span_of(&byte, 1), false, out);
	}
}

static bool is_cursor(struct span pair)
{
	return span_equal_text(pair, "cursor") || span_starts(pair, span_text("cursor="));
}
