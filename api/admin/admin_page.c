#include "api/admin/admin_page.h"

#include "base/format/json_node.h"

static int read_number(
	struct exchange *exchange, const char *name, uint64_t *inout_number, struct error *err);

int admin_page_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, struct error *err)
{
	ASSERT(fallback > 0 && fallback <= most);
	*out_limit = fallback;
	if (read_number(exchange, "limit", out_limit, err) != 0)
		return -1;
	if (*out_limit == 0)
		return error_set(err, ERROR_INVALID, "The parameter limit must be at least 1.");
	if (*out_limit > most)
		*out_limit = most;
	return 0;
}

int admin_page_after(struct exchange *exchange, uint64_t *out_after, struct error *err)
{
	*out_after = 0;
	return read_number(exchange, "after", out_after, err);
}

void admin_page_print_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	if (ms == 0) {
		json_writer_null(json, name);
		return;
	}
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}

/* Leaves the number as it is when the parameter is absent. */
static int read_number(
	struct exchange *exchange, const char *name, uint64_t *inout_number, struct error *err)
{
	struct span text;
	if (!exchange_query(exchange, name, &text))
		return 0;
	if (span_parse_u64(text, inout_number) && *inout_number <= INT64_MAX)
		return 0;
	return error_set(
		err, ERROR_INVALID, "The parameter %s must be a number of digits alone.", name);
}
