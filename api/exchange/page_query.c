#include "api/exchange/page_query.h"

int page_query_number(
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

int page_query_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, struct error *err)
{
	ASSERT(fallback > 0 && fallback <= most);
	*out_limit = fallback;
	if (page_query_number(exchange, "limit", out_limit, err) != 0)
		return -1;
	if (*out_limit == 0)
		return error_set(err, ERROR_INVALID, "The parameter limit must be at least 1.");
	if (*out_limit > most)
		*out_limit = most;
	return 0;
}
