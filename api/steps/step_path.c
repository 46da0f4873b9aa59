#include "api/steps/step_path.h"

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

enum { BODY_MAX_BYTES = 32 * 1024 * 1024 };

static bool read_digest(struct exchange *const exchange, struct run_path_params *const params, enum next *const out_next)
{
	struct span text;
	params->has_digest = exchange_query(exchange, "digest", &text);
	if (!params->has_digest)
		return true;
	if (params->has_have && digest128_parse(text, &params->digest))
		return true;
	*out_next = steps_error_invalid(exchange, "digest", "must be xxh3-128: and 32 hex digits, and goes with have");
	return false;
}

static bool read_want(struct exchange *const exchange, struct run_path_params *const params, enum next *const out_next)
{
	struct span text;
	params->want_latest = !exchange_query(exchange, "want", &text) || span_equal_text(text, "latest");
	if (params->want_latest || span_parse_u64(text, &params->want))
		return true;
	*out_next = steps_error_invalid(exchange, "want", "must be \"latest\" or a step's number");
	return false;
}

enum next step_path_begin(struct exchange *const exchange)
{
	struct run_path_params params = {.bucket = steps_request_bucket(exchange), .run = steps_request_run(exchange)};
	struct path_message path;
	struct error err = {0};
	uint64_t anchor = UINT64_MAX;
	enum next next;
	if (!steps_request_number(exchange, "have", &params.has_have, &params.have, &next) || !read_digest(exchange, &params, &next)
		|| !read_want(exchange, &params, &next))
		return next;
	if (run_find_path(exchange->context->store, &params, exchange->arena, &path, &anchor, &err) != 0)
		return steps_error_fail(exchange, &err, anchor);
	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	path_message_print(&path, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
