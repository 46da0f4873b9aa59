#include "api/objects/conditional.h"

#include "base/clock.h"

static struct span unquote(struct span tag);
static bool changed_since(struct span date, int64_t modified_ms);
static int64_t whole_second(int64_t ms);
static bool unchanged_since(struct span date, int64_t modified_ms, int64_t now_ms);

void conditional_read(struct exchange *exchange, struct conditional *out)
{
	out->if_match = exchange_header(exchange, "if-match");
	out->if_unmodified_since = exchange_header(exchange, "if-unmodified-since");
	out->if_none_match = exchange_header(exchange, "if-none-match");
	out->if_modified_since = exchange_header(exchange, "if-modified-since");
}

bool conditional_etag_listed(struct span list, const char *etag)
{
	struct span rest = list;
	struct span piece;
	while (span_split(&rest, ',', &piece)) {
		struct span tag = span_trim(piece);
		if (span_equal_text(tag, "*"))
			return true;
		if (span_starts(tag, span_text("W/")))
			tag = span_slice(tag, 2, tag.len - 2);
		if (tag.len > 0 && span_equal_text(unquote(tag), etag))
			return true;
	}
	return false;
}

enum conditional_result conditional_judge(const struct conditional *conditional, const char *etag,
	int64_t modified_ms, int64_t now_ms)
{
	ASSERT(etag != NULL);
	if (conditional->if_match.len > 0) {
		if (!conditional_etag_listed(conditional->if_match, etag))
			return CONDITIONAL_FAILED;
	} else if (conditional->if_unmodified_since.len > 0 &&
		changed_since(conditional->if_unmodified_since, modified_ms)) {
		return CONDITIONAL_FAILED;
	}
	if (conditional->if_none_match.len > 0)
		return conditional_etag_listed(conditional->if_none_match, etag)
			? CONDITIONAL_NOT_MODIFIED
			: CONDITIONAL_GO_ON;
	if (conditional->if_modified_since.len > 0 &&
		unchanged_since(conditional->if_modified_since, modified_ms, now_ms))
		return CONDITIONAL_NOT_MODIFIED;
	return CONDITIONAL_GO_ON;
}

bool conditional_range_holds(struct span if_range, const char *etag, int64_t modified_ms)
{
	const struct span value = span_trim(if_range);
	if (value.len == 0)
		return true;
	int64_t date_ms;
	if (clock_parse_http(value, &date_ms))
		return whole_second(date_ms) == whole_second(modified_ms);
	return span_equal_text(unquote(value), etag);
}

static struct span unquote(struct span tag)
{
	if (tag.len >= 2 && tag.data[0] == '"' && tag.data[tag.len - 1] == '"')
		tag = span_slice(tag, 1, tag.len - 2);
	return tag;
}

static bool changed_since(struct span date, int64_t modified_ms)
{
	int64_t since_ms;
	return clock_parse_http(date, &since_ms) &&
		whole_second(modified_ms) > whole_second(since_ms);
}

static int64_t whole_second(int64_t ms)
{
	return ms - ms % 1000;
}

static bool unchanged_since(struct span date, int64_t modified_ms, int64_t now_ms)
{
	int64_t since_ms;
	return clock_parse_http(date, &since_ms) && since_ms <= now_ms &&
		whole_second(modified_ms) <= whole_second(since_ms);
}
