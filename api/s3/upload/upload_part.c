/* As a PutObject: what can be refused is refused before the body is asked for, the upload's
 * existence first of all. */
#include "api/s3/upload/upload_part.h"

#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/misplaced.h"
#include "api/s3/upload/upload_part_copy.h"
#include "api/s3/upload/upload_request.h"

struct upload_part_state {     /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct exchange *exchange;
	struct upload_put *put; /* exchange->call is its call */
	struct checksum_headers checksum;
};

static bool is_copy(struct exchange *exchange);
static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err);
static int finish_body(struct body_sink *sink, struct error *err);
static void abort_body(struct body_sink *sink);
static int open_part(struct exchange *exchange, struct upload_part_state *state,
	struct upload_put_params *params, struct error *err);
static int check_length(const struct exchange *exchange, struct error *err);
static enum next reply_failed(struct exchange *exchange, const struct error *err);

enum next upload_part_begin(struct exchange *exchange)
{
	struct upload_put_params params = {.number = 0};
	struct error err = {0};
	struct span number;
	enum next next;
	if (!exchange_query(exchange, "partNumber", &number))
		return misplaced_on_key_begin(exchange);
	if (is_copy(exchange))
		return upload_part_copy_begin(exchange);
	if (!upload_request_number(exchange, &params.number, &next) ||
		!upload_request_read(exchange, &params.ref, &next))
		return next;
	struct upload_part_state *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* the first thing that is taken from an arena of 64 MiB */
	*state = (struct upload_part_state){
		.sink = {.write = write_body, .finish = finish_body, .abort = abort_body},
		.exchange = exchange};
	if (open_part(exchange, state, &params, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->sink);
}

enum next upload_part_finish(struct exchange *exchange)
{
	if (is_copy(exchange))
		return upload_part_copy_finish(exchange);
	const struct upload_part_state *const state = exchange->state;
	const struct checksum *const expected =
		checksum_headers_expected(exchange, &state->checksum);
	if (expected != NULL)
		upload_put_expect(state->put, expected);
	return exchange_await(exchange, exchange->call);
}

enum next upload_part_resume(struct exchange *exchange)
{
	if (is_copy(exchange))
		return upload_part_copy_resume(exchange);
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return reply_failed(exchange, &err);
	const struct uploaded_part part = upload_put_result(exchange->call);
	exchange_add_header(exchange, "ETag", upload_request_quote(exchange, part.etag));
	checksum_headers_add(exchange, &part.checksum, 0);
	return exchange_reply_empty(exchange, 200);
}

static bool is_copy(struct exchange *exchange)
{
	return exchange_header(exchange, "x-amz-copy-source").data != NULL;
}

static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct upload_part_state *const state = (struct upload_part_state *)sink;
	return upload_put_write(state->put, bytes, err);
}

/* The part itself is finished in upload_part_finish, once every filter found the body good. */
static int finish_body(struct body_sink *sink, struct error *err)
{
	(void)sink;
	(void)err;
	return 0;
}

static void abort_body(struct body_sink *sink)
{
	struct upload_part_state *const state = (struct upload_part_state *)sink;
	exchange_drop_call(state->exchange);
}

static int open_part(struct exchange *exchange, struct upload_part_state *state,
	struct upload_put_params *params, struct error *err)
{
	if (check_length(exchange, err) != 0 ||
		checksum_headers_md5(
			exchange, &params->has_content_md5, params->content_md5, err) != 0 ||
		checksum_headers_read(exchange, CHECKSUM_OF_BODY, &state->checksum, err) != 0)
		return -1;
	params->checksum = state->checksum.algorithm;
	params->room = exchange_wake_owner;
	params->owner = exchange;
	state->put = upload_put_open(exchange->context->store, params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = upload_put_call(state->put);
	return 0;
}

/* Of an aws-chunked body the length of the content counts; it may come without any, and is known at
 * its end. */
static int check_length(const struct exchange *exchange, struct error *err)
{
	if (!exchange->has_length && !exchange->chunked)
		return error_set(err, ERROR_LENGTH_REQUIRED,
			"A part needs a Content-Length or Transfer-Encoding: chunked.");
	if (exchange->has_body_length && exchange->body_length > exchange->context->put_max_bytes)
		return error_set(err, ERROR_TOO_LARGE,
			"Your proposed upload exceeds the maximum allowed size of a part.");
	return 0;
}

static enum next reply_failed(struct exchange *exchange, const struct error *err)
{
	struct checksum expected;
	struct checksum actual;
	if (err->kind == ERROR_BAD_DIGEST &&
		upload_put_bad_checksum(exchange->call, &expected, &actual))
		return checksum_headers_mismatch(exchange, &expected, &actual);
	return exchange_fail(exchange, err);
}
