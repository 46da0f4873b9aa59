/* The readers of parameters set the reply themselves when a parameter is malformed, so that a
 * handler only returns *out_next. */
#include "api/steps/steps_request.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/exchange/page_query.h"
#include "api/objects/conditional.h"
#include "api/steps/step_url.h"
#include "api/steps/steps_error.h"
#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "storage/buckets/account.h"

/* Replies are larger than the stored messages, because they add URLs. */
enum { RUN_BODY_MAX_BYTES = 64 * 1024, STEP_BODY_MAX_BYTES = 2 * STEP_MESSAGE_MAX_BYTES };

struct run_ref steps_request_run(const struct exchange *exchange)
{
	ASSERT(exchange->parameter_count >= 2);
	return (struct run_ref){
		.bucket = exchange_bucket(exchange), .name = exchange->parameters[1]};
}

const char *steps_request_name(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	const char *const name = arena_format(exchange->arena, "%.*s/%.*s",
		(int)run.bucket.name.len, (const char *)run.bucket.name.data, (int)run.name.len,
		(const char *)run.name.data);
	return name != NULL ? name : "";
}

bool steps_request_step(struct exchange *exchange, uint64_t *out_step, enum next *out_next)
{
	ASSERT(exchange->parameter_count >= 3);
	if (span_parse_u64(exchange->parameters[2], out_step) && *out_step < UINT64_MAX)
		return true;
	*out_next =
		steps_error_invalid(exchange, "step", "must be the number of a step, in digits");
	return false;
}

bool steps_request_number(struct exchange *exchange, const char *name, bool *out_has,
	uint64_t *out_value, enum next *out_next)
{
	struct span text;
	*out_has = exchange_query(exchange, name, &text);
	if (!*out_has || span_parse_u64(text, out_value))
		return true;
	*out_next = steps_error_invalid(exchange, name, "must be a number, in digits");
	return false;
}

bool steps_request_limit(struct exchange *exchange, uint64_t fallback, uint64_t most,
	uint64_t *out_limit, enum next *out_next)
{
	struct error err = {0};
	if (page_query_limit(exchange, fallback, most, out_limit, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

enum next steps_request_resume_empty(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_reply_empty(exchange, 204);
}

enum next steps_request_reply_json(struct exchange *exchange, int status, struct buffer *body)
{
	return exchange_reply_buffer(exchange, status, "application/json", body);
}

enum next steps_request_reply_step(
	struct exchange *exchange, int status, struct step_message *step, bool with_tensors)
{
	struct buffer body;
	struct error err = {0};
	if (step_url_complete_step(exchange, step, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, STEP_BODY_MAX_BYTES);
	step_message_print(step, steps_request_name(exchange), with_tensors, &body);
	char etag[33];
	const struct digest128 digest = xxh3_128(buffer_span(&body));
	encode_hex(span_of(digest.bytes, sizeof(digest.bytes)), etag);

	exchange_add_header(exchange, "ETag", arena_format(exchange->arena, "\"%s\"", etag));
	/* A manifest may gain a form, so clients must ask again each time. The ETag makes that
	 * cheap. */
	exchange_add_header(exchange, "Cache-Control", "private, no-cache");
	if (status == 200 &&
		conditional_etag_listed(exchange_header(exchange, "if-none-match"), etag)) {
		exchange->reply.length = body.len;
		exchange->reply.length_known = true;
		buffer_release(&body);
		return exchange_reply_empty(exchange, 304);
	}
	return steps_request_reply_json(exchange, status, &body);
}

void steps_request_hide_webhook(struct exchange *exchange, struct run_message *run)
{
	struct error ignored = {0};
	struct bucket_ref bucket = exchange_bucket(exchange);
	const char *const key = arena_format(
		exchange->arena, "%.*s/", (int)run->run.len, (const char *)run->run.data);
	if (run->settings.webhook[0] == '\0')
		return;
	if (key == NULL ||
		authorise_owned_key(
			exchange, &bucket, span_text(key), PERMISSION_WRITE, &ignored) != 0)
		memset(run->settings.webhook, 0, sizeof(run->settings.webhook));
}

enum next steps_request_reply_run(struct exchange *exchange, const struct run_message *run)
{
	struct buffer body;
	buffer_init(&body, RUN_BODY_MAX_BYTES);
	run_message_print(run, &body);
	exchange_add_header(exchange, "Cache-Control", "no-store");
	return steps_request_reply_json(exchange, 200, &body);
}
