/* All that can be refused is refused before the body is asked for (so before 100 Continue): length, digests, headers that this server does
 * not honour, and the conditions as they stand. The conditions are judged again by the committer, whose word counts (invariant 2). */
#include "api/s3/put_object.h"

#include "api/object_reply.h"
#include "api/s3/object_headers.h"
#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"
#include "base/digest.h"
#include "base/encode.h"

struct put_object { /* the exchange's state */
	struct body_sink sink; /* first: the body's way into `put` */
	struct object_put *put;
};

static const struct s3_request_refusal refusals[] = {
	{"x-amz-copy-source", NULL, "Copying an object (x-amz-copy-source) is not implemented."},
	{"x-amz-decoded-content-length", NULL,
		"aws-chunked bodies are not implemented; send the plain bytes (payload_signing_enabled or UNSIGNED-PAYLOAD)."},
	{"x-amz-trailer", NULL, "Bodies with trailers are not implemented; send the plain bytes."},
	{"x-amz-write-offset-bytes", NULL, "Appending to an object is not implemented."},
	{"x-amz-tagging", NULL, "Object tags are not implemented."},
	{"x-amz-acl", "private|bucket-owner-full-control|bucket-owner-read", "Only the canned ACL \"private\" is implemented."},
	{"x-amz-grant-", NULL, "Grants in headers are not implemented."},
	{"x-amz-server-side-encryption", NULL, "Server-side encryption is not implemented."},
	{"x-amz-server-side-encryption-", NULL, "Server-side encryption with customer keys is not implemented."},
	{"x-amz-object-lock-", NULL, "Object lock is not implemented."},
};

static bool is_aws_chunked(struct exchange *const exchange)
{
	struct span rest = exchange_header(exchange, "content-encoding");
	struct span piece;
	while (span_split(&rest, ',', &piece)) {
		if (span_equal_nocase(span_trim(piece), "aws-chunked"))
			return true;
	}
	return span_starts(exchange_header(exchange, "x-amz-content-sha256"), span_text("STREAMING-"));
}

static bool storage_class_known(struct exchange *const exchange)
{
	static const char *const classes[] = {"STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER",
		"DEEP_ARCHIVE", "GLACIER_IR", "OUTPOSTS", "SNOW", "EXPRESS_ONEZONE"};
	const struct span class = exchange_header(exchange, "x-amz-storage-class");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (span_equal_text(class, classes[i]))
			return true;
	}
	return class.len == 0;
}

/* True when the request was answered. */
static bool refuse(struct exchange *const exchange, enum next *const out_next)
{
	const struct s3_request_refusal *const row = s3_request_refused(exchange, refusals, sizeof(refusals) / sizeof(refusals[0]));
	if (row != NULL)
		*out_next = s3_error_not_implemented(exchange, row->header, row->message);
	else if (is_aws_chunked(exchange))
		*out_next = s3_error_not_implemented(exchange, "content-encoding", "aws-chunked bodies are not implemented; send the plain bytes.");
	else if (!storage_class_known(exchange))
		*out_next = s3_error_reply(exchange, &(struct s3_error){.kind = ERROR_INVALID, .code = "InvalidStorageClass",
			.message = "The storage class you specified is not valid."});
	else
		return false;
	return true;
}

static int check_length(const struct exchange *const exchange, struct error *const err)
{
	if (!exchange->has_length && !exchange->chunked)
		return error_set(err, ERROR_LENGTH_REQUIRED, "A PUT needs a Content-Length or Transfer-Encoding: chunked.");
	if (exchange->has_length && exchange->length > exchange->context->put_max_bytes)
		return error_set(err, ERROR_TOO_LARGE, "Your proposed upload exceeds the maximum allowed object size.");
	return 0;
}

static int parse_md5(struct exchange *const exchange, struct object_put_params *const params, struct error *const err)
{
	const struct span header = exchange_header(exchange, "content-md5");
	size_t len = 0;
	if (header.data == NULL)
		return 0;
	if (!decode_base64(span_trim(header), params->content_md5, MD5_BYTES, &len) || len != MD5_BYTES)
		return error_set(err, ERROR_INVALID_DIGEST, "The Content-MD5 you specified is not the base64 form of 16 bytes.");
	params->has_content_md5 = true;
	return 0;
}

/* The conditions as they stand now: spares the client a body that would be refused. */
static int check_conditions_early(struct exchange *const exchange, const struct object_put_params *const params, struct error *const err)
{
	if (params->conditions.if_match.len == 0 && params->conditions.if_none_match.len == 0)
		return 0;
	struct object current;
	struct error find_err = {0};
	const bool exists = object_find(exchange->context->store, params->bucket, params->key, exchange->arena, &current, &find_err) == 0;
	if (!exists && find_err.kind != ERROR_NO_KEY) {
		*err = find_err;
		return -1;
	}
	return object_conditions_check(&params->conditions, exists ? &current : NULL, err);
}

static enum sink_result write_body(struct body_sink *const sink, const struct span bytes, struct error *const err)
{
	struct put_object *const state = (struct put_object *)sink;
	return object_put_write(state->put, bytes, err);
}

/* The object itself is finished in put_object_finish, once every filter found the body good. */
static int finish_body(struct body_sink *const sink, struct error *const err)
{
	(void)sink;
	(void)err;
	return 0;
}

static void abort_body(struct body_sink *const sink)
{
	struct put_object *const state = (struct put_object *)sink;
	object_put_free(state->put);
	state->put = NULL;
}

static void release(struct exchange *const exchange)
{
	struct put_object *const state = exchange->state;
	if (state->put != NULL)
		object_put_free(state->put);
}

static int open_put(struct exchange *const exchange, struct put_object *const state, struct error *const err)
{
	struct object_header *headers = NULL;
	struct object_put_params params = {.bucket = s3_request_bucket(exchange), .key = s3_request_key(exchange), .room = exchange_wake_owner,
		.done = exchange_wake_owner, .owner = exchange};
	params.conditions.if_match = exchange_header(exchange, "if-match");
	params.conditions.if_none_match = exchange_header(exchange, "if-none-match");
	if (check_length(exchange, err) != 0 || parse_md5(exchange, &params, err) != 0 || s3_request_check_owner(exchange, err) != 0
		|| object_headers_collect(exchange, &headers, &params.facts.header_count, err) != 0
		|| check_conditions_early(exchange, &params, err) != 0)
		return -1;
	params.facts.headers = headers;
	state->put = object_put_open(exchange->context->store, &params, err);
	return state->put != NULL ? 0 : -1;
}

enum next put_object_begin(struct exchange *const exchange)
{
	struct error err = {0};
	enum next next;
	if (refuse(exchange, &next))
		return next;
	struct put_object *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* the first thing a handler takes from an arena of 64 MiB */
	*state = (struct put_object){.sink = {.write = write_body, .finish = finish_body, .abort = abort_body}};
	if (open_put(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	exchange->release = release;
	return exchange_accept(exchange, &state->sink);
}

enum next put_object_finish(struct exchange *const exchange)
{
	struct put_object *const state = exchange->state;
	object_put_finish(state->put);
	return NEXT_WAIT;
}

enum next put_object_resume(struct exchange *const exchange)
{
	struct put_object *const state = exchange->state;
	struct object object;
	struct error err = {0};
	if (object_put_outcome(state->put, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	object_reply_add_identity(exchange, &object);
	return exchange_reply_empty(exchange, 200);
}
