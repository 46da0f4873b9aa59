/* The checksum headers of this request are about the whole object, not about the XML body. storage
 * judges the list of parts; when it refuses one part, the error has that part's fields, as its kind
 * needs them. Location is the object's URL with the host by which the client called this server. */
#include "api/s3/upload/handlers.h"

#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/checksum_xml.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/upload/complete_list.h"
#include "api/s3/upload/upload_request.h"
#include "api/s3/xml/xml_writer.h"

enum { LIST_MAX_BYTES = 3 * 1024 * 1024, REPLY_MAX_BYTES = 64 * 1024 };

static int read_headers(
	struct exchange *exchange, struct upload_complete_params *params, struct error *err);
static enum next reply_failed(struct exchange *exchange, const struct error *err);
static enum next reply_fault(
	struct exchange *exchange, const struct upload_fault *fault, const struct error *err);
static struct span number_text(struct exchange *exchange, uint64_t number);
static enum next reply(struct exchange *exchange, const struct upload_result *result);
static struct span location_of(struct exchange *exchange);

enum next complete_upload_begin(struct exchange *exchange)
{
	struct error err = {0};
	enum next next;
	struct upload_complete_params *const params = arena_take(exchange->arena, sizeof(*params));
	ASSERT(params != NULL); /* little else is in the arena yet */
	if (!upload_request_read(exchange, &params->ref, &next))
		return next;
	if (read_headers(exchange, params, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = params;
	return exchange_accept_small(exchange, LIST_MAX_BYTES);
}

enum next complete_upload_finish(struct exchange *exchange)
{
	struct upload_complete_params *const params = exchange->state;
	struct upload_listed_part *parts = NULL;
	struct error err = {0};
	ASSERT(params != NULL);
	if (complete_list_parse(exchange_body(exchange), exchange->arena, &parts,
		    &params->part_count, &err) != 0)
		return exchange_fail(exchange, &err);
	params->parts = parts;
	struct call *const call = upload_complete_call(exchange->context->store, params, &err);
	return call != NULL ? exchange_await(exchange, call) : exchange_fail(exchange, &err);
}

enum next complete_upload_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return reply_failed(exchange, &err);
	const struct upload_result result = upload_complete_result(exchange->call);
	return reply(exchange, &result);
}

static int read_headers(
	struct exchange *exchange, struct upload_complete_params *params, struct error *err)
{
	struct checksum_headers checksum;
	const struct span size = span_trim(exchange_header(exchange, "x-amz-mp-object-size"));
	if (checksum_headers_read(exchange, CHECKSUM_OF_OBJECT, &checksum, err) != 0)
		return -1;
	params->checksum = checksum.value;
	params->checksum_parts = checksum.value_parts;
	params->has_type = checksum.has_type;
	params->type = checksum.type;
	params->has_size = size.len > 0;
	params->conditions.if_match = exchange_header(exchange, "if-match");
	params->conditions.if_none_match = exchange_header(exchange, "if-none-match");
	if (params->has_size && !span_parse_u64(size, &params->size))
		return error_set(err, ERROR_INVALID_REQUEST,
			"The header x-amz-mp-object-size must be a number of bytes.");
	return 0;
}

static enum next reply_failed(struct exchange *exchange, const struct error *err)
{
	ASSERT(exchange->call != NULL);
	const struct upload_complete_params *const params = exchange->state;
	const struct upload_fault fault = upload_complete_fault(exchange->call);
	struct checksum expected;
	struct checksum actual;
	if (err->kind == ERROR_BAD_DIGEST && fault.number > 0)
		return s3_error_reply(exchange,
			&(struct s3_error){
				.kind = ERROR_INVALID, .code = "BadDigest", .message = err->text});
	if (err->kind == ERROR_BAD_DIGEST) {
		upload_complete_checksums(exchange->call, &expected, &actual);
		return checksum_headers_mismatch(
			exchange, &expected, &actual, (unsigned)params->part_count);
	}
	if (err->kind == ERROR_PART_TOO_SMALL || err->kind == ERROR_INVALID_PART)
		return reply_fault(exchange, &fault, err);
	return exchange_fail(exchange, err);
}

/* The error with the fields of the part at fault. */
static enum next reply_fault(
	struct exchange *exchange, const struct upload_fault *fault, const struct error *err)
{
	const struct span number = number_text(exchange, fault->number);
	const struct span etag = span_text(fault->etag);
	struct span id = {NULL, 0};
	exchange_query(exchange, "uploadId", &id);
	const struct s3_error_field invalid[] = {
		{"UploadId", id}, {"PartNumber", number}, {"ETag", etag}};
	const struct s3_error_field small[] = {{"ProposedSize", number_text(exchange, fault->size)},
		{"MinSizeAllowed", number_text(exchange, UPLOAD_PART_MIN_BYTES)},
		{"PartNumber", number}, {"ETag", etag}};
	struct s3_error error = {.kind = err->kind, .message = err->text};
	error.fields = err->kind == ERROR_PART_TOO_SMALL ? small : invalid;
	error.field_count = err->kind == ERROR_PART_TOO_SMALL
		? sizeof(small) / sizeof(small[0])
		: sizeof(invalid) / sizeof(invalid[0]);
	return s3_error_reply(exchange, &error);
}

static struct span number_text(struct exchange *exchange, uint64_t number)
{
	return span_text(arena_format(exchange->arena, "%llu", (unsigned long long)number));
}

static enum next reply(struct exchange *exchange, const struct upload_result *result)
{
	struct buffer body;
	struct xml_writer xml;
	if (result->version[0] != '\0')
		exchange_add_header(exchange, "x-amz-version-id",
			arena_text(exchange->arena, span_text(result->version)));
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "CompleteMultipartUploadResult", true);
	xml_writer_text(&xml, "Location", location_of(exchange));
	xml_writer_text(&xml, "Bucket", exchange_bucket(exchange).name);
	xml_writer_text(&xml, "Key", s3_request_key(exchange));
	xml_writer_etag(&xml, "ETag", result->etag);
	checksum_xml_value(&xml, &result->checksum, result->part_count);
	checksum_xml_type(&xml, &result->checksum);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

/* Without a host, the path alone. */
static struct span location_of(struct exchange *exchange)
{
	const struct span host = exchange_header(exchange, "host");
	const struct span path = exchange->path;
	return span_text(arena_format(exchange->arena, "%s%.*s%.*s",
		host.len == 0              ? ""
			: exchange->secure ? "https://"
					   : "http://",
		(int)host.len, host.len > 0 ? (const char *)host.data : "", (int)path.len,
		(const char *)path.data));
}
