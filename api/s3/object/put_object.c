/* All that can be refused is refused before the body is asked for (so before 100 Continue): length,
 * digests, headers that this server does not honour, and the conditions as they stand. The
 * conditions are judged again by the committer, whose word counts (invariant 2).
 *
 * A PUT with x-amz-copy-source is a CopyObject: the steps here hand over to those of
 * copy_object.c. */
#include "api/s3/object/put_object.h"

#include "api/objects/object_reply.h"
#include "api/s3/bucket/bucket_lifecycle.h"
#include "api/s3/object/copy_object.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"

struct put_object {            /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct exchange *exchange;
	struct object_put *put; /* exchange->call is its call */
	struct checksum_headers checksum;
};

static bool is_copy(struct exchange *exchange);
static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err);
static int finish_body(struct body_sink *sink, struct error *err);
static void abort_body(struct body_sink *sink);
static int open_put(struct exchange *exchange, struct put_object *state,
	const struct object_facts *facts, struct error *err);
static int check_length(const struct exchange *exchange, struct error *err);
static int check_conditions_early(
	struct exchange *exchange, const struct object_put_params *params, struct error *err);
static enum next reply_failed(struct exchange *exchange, const struct error *err);

enum next put_object_begin(struct exchange *exchange)
{
	struct object_facts facts;
	struct error err = {0};
	enum next next;
	if (is_copy(exchange))
		return copy_object_begin(exchange);
	if (exchange_header(exchange, "x-amz-write-offset-bytes").data != NULL)
		return s3_error_not_implemented(exchange, "x-amz-write-offset-bytes",
			"Appending to an object is not implemented.");
	if (!object_headers_read(exchange, &facts, &next))
		return next;
	struct put_object *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The request's headers leave no memory for it.");
		return exchange_fail(exchange, &err);
	}
	*state = (struct put_object){
		.sink = {.write = write_body, .finish = finish_body, .abort = abort_body},
		.exchange = exchange};
	if (open_put(exchange, state, &facts, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->sink);
}

enum next put_object_finish(struct exchange *exchange)
{
	if (is_copy(exchange))
		return copy_object_finish(exchange);
	struct put_object *const state = exchange->state;
	const struct checksum *const expected =
		checksum_headers_expected(exchange, &state->checksum);
	if (expected != NULL)
		object_put_expect(state->put, expected);
	return exchange_await(exchange, exchange->call);
}

enum next put_object_resume(struct exchange *exchange)
{
	if (is_copy(exchange))
		return copy_object_resume(exchange);
	struct object object;
	struct error err = {0};
	if (object_put_result(exchange->call, &object, &err) != 0)
		return reply_failed(exchange, &err);
	object_reply_add_identity(exchange, &object);
	object_request_add_written(exchange, &object);
	bucket_lifecycle_add_expiration(exchange, &object);
	checksum_headers_add(exchange, &object.checksum, 0);
	checksum_headers_add_type(exchange, &object.checksum);
	return exchange_reply_empty(exchange, 200);
}

static bool is_copy(struct exchange *exchange)
{
	return exchange_header(exchange, "x-amz-copy-source").data != NULL;
}

static enum sink_result write_body(struct body_sink *sink, struct span bytes, struct error *err)
{
	struct put_object *const state = (struct put_object *)sink;
	return object_put_write(state->put, bytes, err);
}

/* The object itself is finished in put_object_finish, once every filter found the body good. */
static int finish_body(struct body_sink *sink, struct error *err)
{
	(void)sink;
	(void)err;
	return 0;
}

static void abort_body(struct body_sink *sink)
{
	struct exchange *const exchange = ((struct put_object *)sink)->exchange;
	exchange_drop_call(exchange);
}

static int open_put(struct exchange *exchange, struct put_object *state,
	const struct object_facts *facts, struct error *err)
{
	struct object_put_params params = {.bucket = exchange_bucket(exchange),
		.key = s3_request_key(exchange),
		.facts = *facts,
		.room = exchange_wake_owner,
		.owner = exchange};
	params.conditions.if_match = exchange_header(exchange, "if-match");
	params.conditions.if_none_match = exchange_header(exchange, "if-none-match");
	if (check_length(exchange, err) != 0 || s3_request_check_owner(exchange, err) != 0 ||
		checksum_headers_md5(exchange, &params.has_content_md5, params.content_md5, err) !=
			0 ||
		checksum_headers_read(exchange, CHECKSUM_OF_BODY, &state->checksum, err) != 0 ||
		check_conditions_early(exchange, &params, err) != 0)
		return -1;
	params.checksum = state->checksum.algorithm;
	state->put = object_put_open(exchange->context->store, &params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = object_put_call(state->put);
	return 0;
}

/* Of an aws-chunked body the length of the content counts; it may come without any, and is known at
 * its end. */
static int check_length(const struct exchange *exchange, struct error *err)
{
	if (!exchange->has_length && !exchange->chunked)
		return error_set(err, ERROR_LENGTH_REQUIRED,
			"A PUT needs a Content-Length or Transfer-Encoding: chunked.");
	if (exchange->has_body_length && exchange->body_length > exchange->context->put_max_bytes)
		return error_set(err, ERROR_TOO_LARGE,
			"Your proposed upload exceeds the maximum allowed object size.");
	return 0;
}

/* The conditions as they stand now: spares the client a body that would be refused. */
static int check_conditions_early(
	struct exchange *exchange, const struct object_put_params *params, struct error *err)
{
	const struct object_ref ref = {.bucket = params->bucket, .key = params->key};
	if (params->conditions.if_match.len == 0 && params->conditions.if_none_match.len == 0)
		return 0;
	struct object current;
	struct error find_err = {0};
	const bool found = object_find(exchange->context->store, &ref, exchange->arena, &current,
				   &find_err) == 0;
	if (!found && find_err.kind != ERROR_NO_KEY) {
		*err = find_err;
		return -1;
	}
	return object_conditions_check(&params->conditions, found ? &current : NULL, err);
}

static enum next reply_failed(struct exchange *exchange, const struct error *err)
{
	struct checksum expected;
	struct checksum actual;
	if (err->kind == ERROR_BAD_DIGEST &&
		object_put_bad_checksum(exchange->call, &expected, &actual))
		return checksum_headers_mismatch(exchange, &expected, &actual);
	return exchange_fail(exchange, err);
}
