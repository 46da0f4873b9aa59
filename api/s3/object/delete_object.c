#include "api/s3/object/handlers.h"

#include "api/s3/object/object_request.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_conditions.h"
#include "storage/objects/object_delete.h"
#include "storage/versions/object.h"

static const struct s3_request_refusal refusals[] = {
	{"x-amz-mfa", NULL, "MFA delete is not implemented."},
};

static bool read_conditions(
	struct exchange *exchange, struct object_conditions *out, enum next *out_next);
static void add_version(struct exchange *exchange, const struct object_delete_item *item);

enum next delete_object_begin(struct exchange *exchange)
{
	struct error err = {0};
	enum next next;
	if (s3_request_refuses(
		    exchange, refusals, sizeof(refusals) / sizeof(refusals[0]), &next))
		return next;
	struct object_delete_item *const item = arena_take(exchange->arena, sizeof(*item));
	ASSERT(item != NULL);
	struct object_ref object;
	if (!object_request_ref(exchange, &object, &next) ||
		!read_conditions(exchange, &item->conditions, &next))
		return next;
	if (s3_request_check_owner(exchange, &err) != 0)
		return exchange_fail(exchange, &err);
	item->key = object.key;
	item->ref = object.version;
	exchange->state = item;
	const struct object_delete_params params = {
		.bucket = object.bucket, .items = item, .count = 1};
	return exchange_await(exchange, object_delete_call(exchange->context->store, &params));
}

enum next delete_object_resume(struct exchange *exchange)
{
	const struct object_delete_item *const item = exchange->state;
	struct error err = {0};
	ASSERT(item != NULL && exchange->call != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	if (item->error.kind != ERROR_NONE)
		return exchange_fail(exchange, &item->error);
	if (item->is_marker)
		exchange_add_header(exchange, "x-amz-delete-marker", "true");
	add_version(exchange, item);
	return exchange_reply_empty(exchange, 204);
}

/* If-Match and If-None-Match, and the two conditions of S3's directory buckets: the size and the
 * time that the version must have. */
static bool read_conditions(
	struct exchange *exchange, struct object_conditions *out, enum next *out_next)
{
	static const char size_header[] = "x-amz-if-match-size";
	static const char time_header[] = "x-amz-if-match-last-modified-time";
	const struct span size = span_trim(exchange_header(exchange, size_header));
	const struct span time = span_trim(exchange_header(exchange, time_header));
	*out = (struct object_conditions){.if_match = exchange_header(exchange, "if-match"),
		.if_none_match = exchange_header(exchange, "if-none-match"),
		.has_size = size.len > 0,
		.has_modified = time.len > 0};
	if (out->has_size && !span_parse_u64(size, &out->size)) {
		*out_next = s3_error_argument(
			exchange, size_header, size, "The size must be a number.");
		return false;
	}
	if (out->has_modified && !clock_parse_http(time, &out->modified_ms)) {
		*out_next = s3_error_argument(exchange, time_header, time,
			"The time must be an HTTP date or an ISO 8601 time.");
		return false;
	}
	return true;
}

/* The reply repeats the version that the request names, whether or not it existed. */
static void add_version(struct exchange *exchange, const struct object_delete_item *item)
{
	struct span named;
	if (item->has_version)
		exchange_add_header(exchange, "x-amz-version-id", item->version);
	else if (item->ref.kind == VERSION_REF_FOREIGN &&
		exchange_query(exchange, "versionId", &named))
		exchange_add_header(
			exchange, "x-amz-version-id", arena_text(exchange->arena, named));
}
