/* A source is judged like a read of it: the grants of the caller, the expected owner, then the
 * version itself and the conditions. While an error of the source is written, the exchange's
 * parameters are those of the source, because the error's children are written from them. */
#include "api/s3/object/copy_source.h"

#include <string.h>

#include "api/auth/authorise.h"
#include "api/objects/conditional.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/s3_error.h"
#include "base/encode.h"
#include "storage/buckets/account.h"
#include "storage/objects/object_read.h"

#define COPY_MAX_BYTES ((uint64_t)5 << 30)

static const char header_name[] = "x-amz-copy-source";
static const char version_marker[] = "?versionId=";

static bool cut_version(struct span *text, struct version_ref *out);
static struct span cut_version_text(struct span *text);
static struct span decode(struct arena *arena, struct span text);
static int find(struct exchange *exchange, const struct object_ref *source, struct object *out,
	struct error *err);
static enum next fail(
	struct exchange *exchange, const struct object_ref *source, const struct error *err);
static int check_owner(struct exchange *exchange, struct bucket_ref source, struct error *err);
static int check_conditions(
	struct exchange *exchange, const struct object *object, struct error *err);

bool copy_source_is_given(struct exchange *exchange)
{
	return exchange_header(exchange, header_name).data != NULL;
}

bool copy_source_check_no_body(struct exchange *exchange, enum next *out_next)
{
	if (!exchange->has_length || exchange->length == 0)
		return true;
	*out_next = s3_error_argument(exchange, header_name, exchange_header(exchange, header_name),
		"A request with x-amz-copy-source must not have a body.");
	return false;
}

int copy_source_parse(
	struct span text, struct arena *arena, struct object_ref *out, struct error *err)
{
	struct span rest = span_trim(text);
	*out = (struct object_ref){.judged_version = 0};
	if (!cut_version(&rest, &out->version))
		return error_set(
			err, ERROR_INVALID, "Invalid version id specified in x-amz-copy-source");
	rest = decode(arena, rest);
	if (rest.len > 0 && rest.data[0] == '/')
		rest = span_slice(rest, 1, rest.len);
	const ptrdiff_t slash = span_find(rest, '/');
	if (slash <= 0 || (size_t)slash + 1 == rest.len)
		return error_set(err, ERROR_INVALID,
			"Copy Source must mention the source bucket and key: sourcebucket/sourcekey, percent-encoded.");
	out->bucket = bucket_named(span_slice(rest, 0, (size_t)slash));
	out->key = span_slice(rest, (size_t)slash + 1, rest.len);
	return bucket_name_is_possible(out->bucket.name)
		? 0
		: error_set(err, ERROR_INVALID, "Invalid copy source bucket name");
}

bool copy_source_read(struct exchange *exchange, struct object_ref *out, enum next *out_next)
{
	const struct span text = exchange_header(exchange, header_name);
	struct error err = {0};
	if (copy_source_parse(text, exchange->arena, out, &err) == 0)
		return true;
	*out_next = s3_error_argument(
		exchange, header_name, text, arena_text(exchange->arena, span_text(err.text)));
	return false;
}

bool copy_source_find(struct exchange *exchange, const struct object_ref *source,
	struct object *out, enum next *out_next)
{
	struct error err = {0};
	if (find(exchange, source, out, &err) == 0 && check_conditions(exchange, out, &err) == 0)
		return true;
	*out_next = fail(exchange, source, &err);
	return false;
}

int copy_source_check_size(uint64_t bytes, struct error *err)
{
	return bytes <= COPY_MAX_BYTES
		? 0
		: error_set(err, ERROR_INVALID_REQUEST,
			  "The specified copy source is larger than the maximum allowable size for a copy source: 5368709120");
}

void copy_source_add_version(struct exchange *exchange, const struct object *source)
{
	char text[VERSION_TEXT_BYTES];
	if (!source->has_id && !source->in_versioned_bucket)
		return;
	object_version_text(source, text);
	exchange_add_header(exchange, "x-amz-copy-source-version-id",
		arena_text(exchange->arena, span_text(text)));
}

static bool cut_version(struct span *text, struct version_ref *out)
{
	const struct span version = cut_version_text(text);
	*out = (struct version_ref){.kind = VERSION_REF_CURRENT};
	return version.data == NULL || version_ref_parse(version, out);
}

/* Cuts "?versionId=..." off the end of the text as sent. {NULL,0} when there is none. */
static struct span cut_version_text(struct span *text)
{
	const size_t marker = sizeof(version_marker) - 1;
	const uint8_t *const found =
		text->len > 0 ? memmem(text->data, text->len, version_marker, marker) : NULL;
	if (found == NULL)
		return (struct span){NULL, 0};
	const size_t at = (size_t)(found - text->data);
	const struct span version = span_slice(*text, at + marker, text->len);
	*text = span_slice(*text, 0, at);
	return version;
}

/* '+' is a space here, as in a query and unlike in a path. Clients send a plus as %2B. */
static struct span decode(struct arena *arena, struct span text)
{
	struct buffer decoded;
	struct span out = {NULL, 0};
	buffer_init(&decoded, text.len + 1);
	if (decode_percent(text, true, &decoded) && span_is_utf8(buffer_span(&decoded)) &&
		span_find(buffer_span(&decoded), 0) < 0)
		out = arena_copy(arena, buffer_span(&decoded));
	buffer_release(&decoded);
	return out;
}

static int find(struct exchange *exchange, const struct object_ref *source, struct object *out,
	struct error *err)
{
	const bool is_current = source->version.kind == VERSION_REF_CURRENT;
	struct object_ref judged = *source;
	if (authorise_key(exchange, &judged.bucket, judged.key,
		    PERMISSION_READ | (is_current ? 0U : (unsigned)PERMISSION_VERSIONS),
		    err) != 0 ||
		check_owner(exchange, judged.bucket, err) != 0)
		return -1;
	if (object_find(exchange->context->store, &judged, exchange->arena, out, err) != 0) {
		if (err->kind == ERROR_NO_KEY)
			(void)object_request_judge_absence(
				exchange, judged.bucket, judged.key, err);
		return -1;
	}
	if (out->is_marker)
		return error_set(err, ERROR_INVALID_REQUEST,
			"The source of a copy request may not specifically refer to a delete marker by version id.");
	return 0;
}

/* The error's children name the source. */
static enum next fail(
	struct exchange *exchange, const struct object_ref *source, const struct error *err)
{
	const struct span own[] = {exchange->parameters[0], exchange->parameters[1]};
	struct span text = span_trim(exchange_header(exchange, header_name));
	if (err->kind == ERROR_NO_VERSION) {
		exchange_error_field(exchange, "Key", source->key);
		exchange_error_field(exchange, "VersionId", cut_version_text(&text));
	}
	exchange->parameters[0] = source->bucket.name;
	exchange->parameters[1] = source->key;
	const enum next next = exchange_fail(exchange, err);
	exchange->parameters[0] = own[0];
	exchange->parameters[1] = own[1];
	return next;
}

static int check_owner(struct exchange *exchange, struct bucket_ref source, struct error *err)
{
	const struct span expected =
		exchange_header(exchange, "x-amz-source-expected-bucket-owner");
	struct bucket bucket;
	if (expected.len == 0)
		return 0;
	if (bucket_find(exchange->context->store, source, exchange->arena, &bucket, err) != 0)
		return -1;
	return span_equal(bucket.owner, expected)
		? 0
		: error_set(err, ERROR_DENIED,
			  "The source bucket's owner is not the one that x-amz-source-expected-bucket-owner names.");
}

static int check_conditions(
	struct exchange *exchange, const struct object *object, struct error *err)
{
	const struct clock_source *const clock = exchange->context->clock;
	const struct conditional conditional = {
		.if_match = exchange_header(exchange, "x-amz-copy-source-if-match"),
		.if_unmodified_since =
			exchange_header(exchange, "x-amz-copy-source-if-unmodified-since"),
		.if_none_match = exchange_header(exchange, "x-amz-copy-source-if-none-match"),
		.if_modified_since =
			exchange_header(exchange, "x-amz-copy-source-if-modified-since"),
	};
	if (conditional_judge(&conditional, object->etag, object->modified_ms,
		    clock->wall_ms(clock)) == CONDITIONAL_GO_ON)
		return 0;
	return error_set(err, ERROR_PRECONDITION,
		"At least one of the preconditions on the copy's source did not hold.");
}
