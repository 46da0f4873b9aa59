/* `begin` judges everything: that the upload exists, the source, and the range within it. `finish`
 * starts the copy, because a route with a body must not wait before the body, which is empty here,
 * has come. */
#include "api/s3/upload/handlers.h"

#include "api/s3/object/copy_source.h"
#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/upload/upload_request.h"
#include "api/s3/xml/xml_writer.h"

enum { REPLY_MAX_BYTES = 16 * 1024, BODY_MAX_BYTES = 1024 };

struct upload_part_copy { /* the exchange's state */
	struct object source;
	struct upload_copy_params params;
};

static bool read_range(
	struct exchange *exchange, struct upload_part_copy *state, enum next *out_next);
static void refuse_range(
	struct exchange *exchange, struct span text, uint64_t size, struct error *err);
static bool parse_range(struct span text, uint64_t *out_first, uint64_t *out_last);

enum next upload_part_copy_begin(struct exchange *exchange)
{
	struct object_ref source;
	struct bucket bucket;
	struct upload upload;
	struct error err = {0};
	enum next next;
	if (!copy_source_check_no_body(exchange, &next))
		return next;
	struct upload_part_copy *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* little else is in the arena yet */
	if (!upload_request_number(exchange, &state->params.number, &next))
		return next;
	if (bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
		    &bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	if (!copy_source_read(exchange, &source, &next) ||
		!upload_request_read(exchange, &state->params.ref, &next))
		return next;
	if (upload_find(exchange->context->store, &state->params.ref, exchange->arena, &upload,
		    &err) != 0)
		return exchange_fail(exchange, &err);
	if (!copy_source_find(exchange, &source, &state->source, &next) ||
		!read_range(exchange, state, &next))
		return next;
	state->params.source = &state->source;
	exchange->state = state;
	return exchange_accept_small(exchange, BODY_MAX_BYTES);
}

enum next upload_part_copy_finish(struct exchange *exchange)
{
	const struct upload_part_copy *const state = exchange->state;
	ASSERT(state != NULL && state->params.source == &state->source);
	return exchange_await(exchange, upload_copy_call(exchange->context->store, &state->params));
}

enum next upload_part_copy_resume(struct exchange *exchange)
{
	const struct upload_part_copy *const state = exchange->state;
	struct buffer body;
	struct xml_writer xml;
	struct error err = {0};
	ASSERT(state != NULL && exchange->call != NULL);
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct uploaded_part part = upload_copy_result(exchange->call);
	copy_source_add_version(exchange, &state->source);
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "CopyPartResult", true);
	xml_writer_time(&xml, "LastModified", part.modified_ms);
	xml_writer_etag(&xml, "ETag", part.etag);
	checksum_xml_value(&xml, &part.checksum, 0);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static bool read_range(
	struct exchange *exchange, struct upload_part_copy *state, enum next *out_next)
{
	static const char header[] = "x-amz-copy-source-range";
	const struct span text = span_trim(exchange_header(exchange, header));
	struct error err = {0};
	uint64_t first = 0;
	uint64_t last = 0;
	state->params.length = state->source.size;
	if (text.len > 0 && !parse_range(text, &first, &last)) {
		*out_next = s3_error_argument(exchange, header, text,
			"The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first"
			" and last bytes to copy");
		return false;
	}
	if (text.len > 0 && last >= state->source.size)
		refuse_range(exchange, text, state->source.size, &err);
	if (text.len > 0 && err.kind == ERROR_NONE) {
		state->params.offset = first;
		state->params.length = last - first + 1;
	}
	if (err.kind == ERROR_NONE && copy_source_check_size(state->params.length, &err) == 0) {
		ASSERT(state->params.offset + state->params.length <= state->source.size);
		return true;
	}
	*out_next = exchange_fail(exchange, &err);
	return false;
}

static void refuse_range(
	struct exchange *exchange, struct span text, uint64_t size, struct error *err)
{
	exchange_error_field(exchange, "RangeRequested", text);
	exchange_error_number(exchange, "ActualObjectSize", size);
	error_set(err, ERROR_RANGE, "Range specified is not valid for source object of size: %llu",
		(unsigned long long)size);
}

/* "bytes=first-last", with both numbers and in order. */
static bool parse_range(struct span text, uint64_t *out_first, uint64_t *out_last)
{
	static const char unit[] = "bytes=";
	struct span rest = span_slice(text, sizeof(unit) - 1, text.len);
	const ptrdiff_t dash = span_find(rest, '-');
	return span_starts(text, span_text(unit)) && dash > 0 &&
		span_parse_u64(span_slice(rest, 0, (size_t)dash), out_first) &&
		span_parse_u64(span_slice(rest, (size_t)dash + 1, rest.len), out_last) &&
		*out_first <= *out_last;
}
