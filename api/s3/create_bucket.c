#include "api/s3/create_bucket.h"

#include "api/keyring.h"
#include "api/s3/s3_error.h"
#include "api/s3/s3_request.h"
#include "api/s3/xml_reader.h"

enum { BODY_MAX_BYTES = 64 * 1024, LOCATION_MAX_BYTES = 64 };

struct create_bucket { /* the exchange's state; freed by `release` */
	struct bucket_change *change;
};

static const struct s3_request_refusal refusals[] = {
	{"x-amz-acl", "private", "Only the canned ACL \"private\" is implemented."},
	{"x-amz-grant-", NULL, "Grants in headers are not implemented."},
	{"x-amz-bucket-object-lock-enabled", "false|False", "Object lock is not implemented."},
};

static void release(struct exchange *const exchange)
{
	struct create_bucket *const state = exchange->state;
	bucket_change_free(state->change);
}

enum next create_bucket_begin(struct exchange *const exchange)
{
	struct error err = {0};
	const struct s3_request_refusal *const refused = s3_request_refused(exchange, refusals, sizeof(refusals) / sizeof(refusals[0]));
	if (refused != NULL)
		return s3_error_not_implemented(exchange, refused->header, refused->message);
	ASSERT(exchange->principal != NULL); /* the route's access rule lets nobody else in */
	if (bucket_check_name(s3_request_bucket(exchange), exchange->principal->namespace, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_accept_small(exchange, BODY_MAX_BYTES);
}

static int check_root(void *const owner, const size_t depth, const struct span name, struct error *const err)
{
	(void)owner;
	if (depth == 1 && !span_equal_text(name, "CreateBucketConfiguration"))
		return error_set(err, ERROR_MALFORMED_XML, "The body of a bucket's creation must be a CreateBucketConfiguration.");
	return 0;
}

struct configuration {
	bool bad_location;
	bool has_tags;
};

/* Any region is taken: clients are set up with all sorts of names and there is only one place here. */
static int take_element(void *const owner, const size_t depth, const struct span name, const struct span text, struct error *const err)
{
	struct configuration *const configuration = owner;
	(void)err;
	if (depth != 2)
		return 0;
	if (span_equal_text(name, "LocationConstraint"))
		configuration->bad_location = text.len > LOCATION_MAX_BYTES;
	configuration->has_tags = configuration->has_tags || span_equal_text(name, "Tags");
	return 0;
}

enum next create_bucket_finish(struct exchange *const exchange)
{
	static const struct xml_reader_events events = {.open = check_root, .close = take_element};
	const struct span body = exchange_body(exchange);
	struct configuration configuration = {0};
	struct error err = {0};
	if (body.len > 0 && xml_reader_parse(body, &events, &configuration, &err) != 0)
		return exchange_fail(exchange, &err);
	if (configuration.bad_location)
		return s3_error_reply(exchange, &(struct s3_error){.kind = ERROR_INVALID, .code = "InvalidLocationConstraint",
			.message = "The specified location-constraint is not valid."});
	if (configuration.has_tags)
		return s3_error_not_implemented(exchange, "Tags", "Bucket tags are not implemented.");

	struct create_bucket *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	exchange->state = state;
	exchange->release = release;
	state->change = bucket_create_start(exchange->context->store, s3_request_bucket(exchange), exchange->principal->namespace,
		exchange_wake_owner, exchange);
	return NEXT_WAIT;
}

enum next create_bucket_resume(struct exchange *const exchange)
{
	struct create_bucket *const state = exchange->state;
	struct error err = {0};
	if (bucket_change_outcome(state->change, &err) != 0 && err.kind != ERROR_BUCKET_OWNED)
		return exchange_fail(exchange, &err);
	const char *const bucket = arena_text(exchange->arena, s3_request_bucket(exchange));
	exchange_add_header(exchange, "Location", arena_format(exchange->arena, "/%s", bucket));
	return exchange_reply_empty(exchange, 200);
}
