#include "api/s3/object/object_request.h"

#include "api/auth/authorise.h"
#include "api/exchange/principal.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "storage/objects/object_facts.h"
#include "storage/objects/object_read.h"

static int judge_found(
	struct exchange *exchange, int result, const struct object *found, struct error *err);
static int judge_absence(struct exchange *exchange, struct error *err);
static void add_marker_headers(struct exchange *exchange, const struct object *marker);

bool object_request_ref(struct exchange *exchange, struct object_ref *out, enum next *out_next)
{
	struct span text;
	struct error err = {0};
	if (object_facts_check_key(s3_request_key(exchange), &err) != 0) {
		*out_next = exchange_fail(exchange, &err);
		return false;
	}
	*out = (struct object_ref){.bucket = exchange_bucket(exchange),
		.key = s3_request_key(exchange),
		.version = {.kind = VERSION_REF_CURRENT},
		.judged_version = exchange->judged_version};
	if (!exchange_query(exchange, "versionId", &text) || version_ref_parse(text, &out->version))
		return true;
	*out_next = s3_error_argument(exchange, "versionId", text,
		text.len == 0 ? "Version id cannot be the empty string"
			      : "Invalid version id specified");
	return false;
}

void object_request_add_version(struct exchange *exchange, const struct object *object)
{
	char text[VERSION_TEXT_BYTES];
	if (!object->has_id && !object->in_versioned_bucket)
		return;
	object_version_text(object, text);
	exchange_add_header(
		exchange, "x-amz-version-id", arena_text(exchange->arena, span_text(text)));
}

void object_request_add_written(struct exchange *exchange, const struct object *object)
{
	if (object->has_id)
		object_request_add_version(exchange, object);
}

int object_request_find(struct exchange *exchange, const struct object_ref *ref, struct object *out,
	struct error *err)
{
	const int result = object_find(exchange->context->store, ref, exchange->arena, out, err);
	return judge_found(exchange, result, out, err);
}

int object_request_view(struct exchange *exchange, struct object_view *view,
	const struct object_ref *ref, struct object *out, struct error *err)
{
	ASSERT(view != NULL);
	const int result = object_view_find(view, ref, exchange->arena, out, err);
	return judge_found(exchange, result, out, err);
}

/* A key with grants may learn it: the bucket's owner named what it reads, and its programs wait for
 * objects that are to come. */
int object_request_judge_absence(
	struct exchange *exchange, struct bucket_ref bucket, struct span key, struct error *err)
{
	if (exchange->principal != NULL && exchange->principal->grant_count > 0)
		return 0;
	return authorise_key(exchange, &bucket, key, PERMISSION_LIST, err);
}

enum next object_request_fail(struct exchange *exchange, const struct error *err)
{
	struct error shown = {0};
	if (err->kind != ERROR_NO_KEY || judge_absence(exchange, &shown) == 0)
		shown = *err;
	return exchange_fail(exchange, &shown);
}

/* Turns the result of a search into the reply's headers and error, because a delete marker is not
 * an object. */
static int judge_found(
	struct exchange *exchange, int result, const struct object *found, struct error *err)
{
	struct error ignored = {0};
	if (result != 0) {
		if (err->kind == ERROR_NO_KEY && found->is_marker &&
			judge_absence(exchange, &ignored) == 0)
			add_marker_headers(exchange, found);
		return -1;
	}
	if (!found->is_marker)
		return 0;
	char modified[CLOCK_TEXT_BYTES];
	clock_format_http(found->modified_ms, modified);
	add_marker_headers(exchange, found);
	exchange_add_header(
		exchange, "Last-Modified", arena_text(exchange->arena, span_text(modified)));
	exchange_add_header(exchange, "Allow", "DELETE");
	return error_set(err, ERROR_METHOD,
		"The specified method is not allowed against this resource: the version is a delete marker.");
}

static int judge_absence(struct exchange *exchange, struct error *err)
{
	return object_request_judge_absence(
		exchange, exchange_bucket(exchange), s3_request_key(exchange), err);
}

static void add_marker_headers(struct exchange *exchange, const struct object *marker)
{
	exchange_add_header(exchange, "x-amz-delete-marker", "true");
	object_request_add_version(exchange, marker);
}
