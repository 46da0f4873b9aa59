/* A copy moves no bytes: it shares those of its source. `begin` judges everything. `finish` starts
 * the change, because a route with a body must not wait before the body, which is empty here, has
 * come. */
#include "api/s3/object/handlers.h"

#include "api/objects/object_reply.h"
#include "api/s3/bucket/bucket_lifecycle.h"
#include "api/s3/object/copy_source.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/object/object_request.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/objects/object_copy.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

static const char redirect_header[] = "x-amz-website-redirect-location";

struct copy_object {           /* the exchange's state */
	struct body_sink sink; /* refuses all bytes */
	struct object source;
	struct object_copy_params params;
};

static enum sink_result copy_object_refuse(
	struct body_sink *sink, struct span bytes, struct error *err);
static int copy_object_end_body(struct body_sink *sink, struct error *err);
static void copy_object_abort_body(struct body_sink *sink);
static bool read_request(struct exchange *exchange, struct copy_object *state, enum next *out_next);
static bool read_directive(struct exchange *exchange, const char *header, const char *fault,
	bool *out_replaces, enum next *out_next);
static int judge(struct exchange *exchange, struct copy_object *state,
	const struct object_ref *source, struct error *err);
static int keep_headers(struct exchange *exchange, struct copy_object *state, struct error *err);
static bool is_redirect(const struct object_header *header);
static int check_change(struct exchange *exchange, const struct copy_object *state,
	const struct object_ref *source, bool replaces_metadata, struct error *err);
static enum next reply(struct exchange *exchange, const struct object *object);

enum next copy_object_begin(struct exchange *exchange)
{
	enum next next;
	struct copy_object *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL);
	if (!copy_source_check_no_body(exchange, &next))
		return next;
	*state = (struct copy_object){.sink = {.write = copy_object_refuse,
					      .finish = copy_object_end_body,
					      .abort = copy_object_abort_body}};
	if (!read_request(exchange, state, &next))
		return next;
	exchange->state = state;
	return exchange_accept(exchange, &state->sink);
}

enum next copy_object_finish(struct exchange *exchange)
{
	struct copy_object *const state = exchange->state;
	struct error err = {0};
	ASSERT(state != NULL && state->params.source == &state->source);
	struct call *const call = object_copy_call(exchange->context->store, &state->params, &err);
	return call != NULL ? exchange_await(exchange, call) : exchange_fail(exchange, &err);
}

enum next copy_object_resume(struct exchange *exchange)
{
	const struct copy_object *const state = exchange->state;
	struct object object;
	struct error err = {0};
	ASSERT(state != NULL && exchange->call != NULL);
	if (object_copy_result(exchange->call, &object, &err) != 0)
		return exchange_fail(exchange, &err);
	copy_source_add_version(exchange, &state->source);
	object_request_add_written(exchange, &object);
	bucket_lifecycle_add_expiration(exchange, &object);
	return reply(exchange, &object);
}

static enum sink_result copy_object_refuse(
	struct body_sink *sink, struct span bytes, struct error *err)
{
	(void)sink;
	(void)bytes;
	error_set(err, ERROR_INVALID, "A request with x-amz-copy-source must not have a body.");
	return SINK_FAILED;
}

static int copy_object_end_body(struct body_sink *sink, struct error *err)
{
	(void)sink;
	(void)err;
	return 0;
}

static void copy_object_abort_body(struct body_sink *sink)
{
	(void)sink;
}

static bool read_request(struct exchange *exchange, struct copy_object *state, enum next *out_next)
{
	struct object_copy_params *const params = &state->params;
	struct object_ref source;
	struct error err = {0};
	if (!object_headers_read(exchange, &params->facts, out_next) ||
		!read_directive(exchange, "x-amz-metadata-directive", "Unknown metadata directive.",
			&params->replaces_headers, out_next) ||
		!read_directive(exchange, "x-amz-tagging-directive", "Unknown tagging directive.",
			&params->replaces_tags, out_next) ||
		!copy_source_read(exchange, &source, out_next) ||
		!copy_source_find(exchange, &source, &state->source, out_next))
		return false;
	params->source = &state->source;
	params->bucket = exchange_bucket(exchange);
	params->key = s3_request_key(exchange);
	params->conditions.if_match = exchange_header(exchange, "if-match");
	params->conditions.if_none_match = exchange_header(exchange, "if-none-match");
	if (s3_request_check_owner(exchange, &err) == 0 &&
		judge(exchange, state, &source, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

/* COPY, also when the header is absent, or REPLACE. */
static bool read_directive(struct exchange *exchange, const char *header, const char *fault,
	bool *out_replaces, enum next *out_next)
{
	const struct span value = span_trim(exchange_header(exchange, header));
	*out_replaces = span_equal_text(value, "REPLACE");
	if (*out_replaces || value.len == 0 || span_equal_text(value, "COPY"))
		return true;
	*out_next = s3_error_argument(exchange, header, value, fault);
	return false;
}

static int judge(struct exchange *exchange, struct copy_object *state,
	const struct object_ref *source, struct error *err)
{
	struct object_copy_params *const params = &state->params;
	const bool replaces_metadata = params->replaces_headers;
	struct checksum_headers checksum;
	if (checksum_headers_read(exchange, CHECKSUM_TO_STORE, &checksum, err) != 0)
		return -1;
	params->checksum = checksum.algorithm;
	if (!replaces_metadata && keep_headers(exchange, state, err) != 0)
		return -1;
	return check_change(exchange, state, source, replaces_metadata, err);
}

/* The headers for the directive COPY: the source's, with the redirect of this request in place of
 * the source's, because a redirect is never copied. */
static int keep_headers(struct exchange *exchange, struct copy_object *state, struct error *err)
{
	const struct object *const source = &state->source;
	const struct span redirect = exchange_header(exchange, redirect_header);
	size_t count = 0;
	bool differs = redirect.len > 0;
	struct object_header *const headers =
		arena_take_array(exchange->arena, source->header_count + 1, sizeof(*headers));
	if (headers == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The headers of the source do not fit the memory of a request.");
	for (size_t i = 0; i < source->header_count; i++) {
		if (is_redirect(&source->headers[i]))
			differs = true;
		else
			headers[count++] = source->headers[i];
	}
	if (redirect.len > 0)
		headers[count++] = (struct object_header){span_text(redirect_header), redirect};
	ASSERT(count <= source->header_count + 1);
	state->params.facts.headers = headers;
	state->params.facts.header_count = count;
	state->params.replaces_headers = differs;
	return 0;
}

static bool is_redirect(const struct object_header *header)
{
	return span_equal_text(header->name, redirect_header);
}

/* A copy of the current version onto itself must change something. A copy of an older version makes
 * it the current one again. */
static int check_change(struct exchange *exchange, const struct copy_object *state,
	const struct object_ref *source, bool replaces_metadata, struct error *err)
{
	const struct object_copy_params *const params = &state->params;
	const bool same = span_equal(source->bucket.name, params->bucket.name) &&
		span_equal(source->key, params->key) && state->source.is_current;
	const bool has_class = exchange_header(exchange, "x-amz-storage-class").len > 0;
	const bool changes = replaces_metadata || params->replaces_headers ||
		params->replaces_tags || params->checksum != CHECKSUM_NONE ||
		(has_class && params->facts.storage_class != state->source.storage_class);
	if (copy_source_check_size(state->source.size, err) != 0)
		return -1;
	if (!same || changes)
		return 0;
	return error_set(err, ERROR_INVALID_REQUEST,
		"This copy request is illegal because it is trying to copy an object to itself without changing"
		" the object's metadata, storage class, website redirect location or encryption attributes.");
}

static enum next reply(struct exchange *exchange, const struct object *object)
{
	struct buffer body;
	struct xml_writer xml;
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "CopyObjectResult", true);
	xml_writer_time(&xml, "LastModified", object->modified_ms);
	xml_writer_etag(&xml, "ETag", object->etag);
	checksum_xml_value(&xml, &object->checksum, object->part_count);
	checksum_xml_type(&xml, &object->checksum);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}
