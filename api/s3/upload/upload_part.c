/* As in PutObject, `begin` refuses all that it can before the body is asked for, also a part of an
 * upload that does not exist. With x-amz-copy-source the request is an UploadPartCopy: the steps
 * here call those of upload_part_copy.c. */
#include "api/s3/upload/handlers.h"

#include "api/s3/object/copy_source.h"
#include "api/s3/object/stored_body.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/misplaced.h"
#include "api/s3/upload/upload_request.h"

struct upload_part_state {       /* the exchange's state */
	struct stored_body body; /* first */
	struct upload_put *put;  /* exchange->call is its call */
};

static enum sink_result upload_part_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int open_part(struct exchange *exchange, struct upload_part_state *state,
	struct upload_put_params *params, struct error *err);

enum next upload_part_begin(struct exchange *exchange)
{
	struct upload_put_params params = {.number = 0};
	struct error err = {0};
	struct span number;
	enum next next;
	if (!exchange_query(exchange, "partNumber", &number))
		return misplaced_on_key_begin(exchange);
	if (copy_source_is_given(exchange))
		return upload_part_copy_begin(exchange);
	if (!upload_request_number(exchange, &params.number, &next) ||
		!upload_request_read(exchange, &params.ref, &next))
		return next;
	struct upload_part_state *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* little else is in the arena yet */
	stored_body_init(&state->body, exchange, upload_part_write);
	if (open_part(exchange, state, &params, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->body.sink);
}

enum next upload_part_finish(struct exchange *exchange)
{
	if (copy_source_is_given(exchange))
		return upload_part_copy_finish(exchange);
	const struct upload_part_state *const state = exchange->state;
	ASSERT(state != NULL && state->put != NULL);
	const struct checksum *const expected =
		checksum_headers_expected(exchange, &state->body.checksum);
	if (expected != NULL)
		upload_put_expect(state->put, expected);
	return exchange_await(exchange, exchange->call);
}

enum next upload_part_resume(struct exchange *exchange)
{
	if (copy_source_is_given(exchange))
		return upload_part_copy_resume(exchange);
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return stored_body_reply_failed(exchange, upload_put_bad_checksum, &err);
	const struct uploaded_part part = upload_put_result(exchange->call);
	exchange_add_header(exchange, "ETag", upload_request_quote(exchange, part.etag));
	checksum_headers_add(exchange, &part.checksum, 0);
	return exchange_reply_empty(exchange, 200);
}

static enum sink_result upload_part_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct upload_part_state *const state = (struct upload_part_state *)sink;
	ASSERT(state->put != NULL);
	return upload_put_write(state->put, bytes, err);
}

static int open_part(struct exchange *exchange, struct upload_part_state *state,
	struct upload_put_params *params, struct error *err)
{
	if (stored_body_check_length(exchange, "A part", "size of a part", err) != 0 ||
		checksum_headers_md5(
			exchange, &params->has_content_md5, params->content_md5, err) != 0 ||
		checksum_headers_read(exchange, CHECKSUM_OF_BODY, &state->body.checksum, err) != 0)
		return -1;
	params->checksum = state->body.checksum.algorithm;
	params->room = exchange_wake_owner;
	params->owner = exchange;
	state->put = upload_put_open(exchange->context->store, params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = upload_put_call(state->put);
	return 0;
}
