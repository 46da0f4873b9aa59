/* `begin` refuses all that it can before the body is asked for, and so before 100 Continue: wrong
 * lengths and digests, headers that this server does not support, and conditions that do not hold
 * now. The committer judges the conditions again, and its judgement counts (invariant 2).
 *
 * A PUT with x-amz-copy-source is a CopyObject: the steps here call those of copy_object.c. */
#include "api/s3/object/handlers.h"

#include "api/objects/object_reply.h"
#include "api/s3/bucket/bucket_lifecycle.h"
#include "api/s3/object/copy_source.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/object/object_request.h"
#include "api/s3/object/stored_body.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_conditions.h"
#include "storage/objects/object_facts.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"

struct put_object {              /* the exchange's state */
	struct stored_body body; /* first */
	struct object_put *put;  /* exchange->call is its call */
};

static enum sink_result put_object_write(
	struct body_sink *sink, struct span bytes, struct error *err);
static int open_put(struct exchange *exchange, struct put_object *state,
	const struct object_facts *facts, struct error *err);
static int check_conditions_early(
	struct exchange *exchange, const struct object_put_params *params, struct error *err);

enum next put_object_begin(struct exchange *exchange)
{
	struct object_facts facts;
	struct error err = {0};
	enum next next;
	if (copy_source_is_given(exchange))
		return copy_object_begin(exchange);
	if (exchange_header(exchange, "x-amz-write-offset-bytes").data != NULL)
		return s3_error_not_implemented(exchange, "x-amz-write-offset-bytes",
			"Appending to an object is not implemented.");
	if (!object_headers_read(exchange, &facts, &next))
		return next;
	struct put_object *const state = arena_take(exchange->arena, sizeof(*state));
	if (state == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The headers do not fit the memory of a request.");
		return exchange_fail(exchange, &err);
	}
	stored_body_init(&state->body, exchange, put_object_write);
	if (open_put(exchange, state, &facts, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	return exchange_accept(exchange, &state->body.sink);
}

enum next put_object_finish(struct exchange *exchange)
{
	if (copy_source_is_given(exchange))
		return copy_object_finish(exchange);
	struct put_object *const state = exchange->state;
	ASSERT(state != NULL && state->put != NULL);
	const struct checksum *const expected =
		checksum_headers_expected(exchange, &state->body.checksum);
	if (expected != NULL)
		object_put_expect(state->put, expected);
	return exchange_await(exchange, exchange->call);
}

enum next put_object_resume(struct exchange *exchange)
{
	if (copy_source_is_given(exchange))
		return copy_object_resume(exchange);
	struct object object;
	struct error err = {0};
	if (object_put_result(exchange->call, &object, &err) != 0)
		return stored_body_reply_failed(exchange, object_put_bad_checksum, &err);
	object_reply_add_identity(exchange, &object);
	object_request_add_written(exchange, &object);
	bucket_lifecycle_add_expiration(exchange, &object);
	checksum_headers_add(exchange, &object.checksum, 0);
	checksum_headers_add_type(exchange, &object.checksum);
	return exchange_reply_empty(exchange, 200);
}

static enum sink_result put_object_write(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	struct put_object *const state = (struct put_object *)sink;
	ASSERT(state->put != NULL);
	return object_put_write(state->put, bytes, err);
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
	if (stored_body_check_length(exchange, "A PUT", "object size", err) != 0 ||
		s3_request_check_owner(exchange, err) != 0 ||
		checksum_headers_md5(exchange, &params.has_content_md5, params.content_md5, err) !=
			0 ||
		checksum_headers_read(exchange, CHECKSUM_OF_BODY, &state->body.checksum, err) !=
			0 ||
		check_conditions_early(exchange, &params, err) != 0)
		return -1;
	params.checksum = state->body.checksum.algorithm;
	state->put = object_put_open(exchange->context->store, &params, err);
	if (state->put == NULL)
		return -1;
	exchange->call = object_put_call(state->put);
	return 0;
}

/* Spares the client a body that the committer would refuse. */
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
