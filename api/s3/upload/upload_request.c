#include "api/s3/upload/upload_request.h"

#include "api/s3/request/s3_error.h"
#include "api/s3/request/s3_request.h"

static int find_upload_id(
	struct exchange *exchange, struct span text, struct upload_ref *out, struct error *err);

bool upload_request_read(struct exchange *exchange, struct upload_ref *out, enum next *out_next)
{
	struct span text = {NULL, 0};
	struct error err = {0};
	*out = (struct upload_ref){
		.bucket = exchange_bucket(exchange), .key = s3_request_key(exchange)};
	exchange_query(exchange, "uploadId", &text);
	if (find_upload_id(exchange, text, out, &err) == 0)
		return true;
	*out_next = exchange_fail(exchange, &err);
	return false;
}

bool upload_request_number(struct exchange *exchange, uint32_t *out, enum next *out_next)
{
	struct span text = {NULL, 0};
	uint64_t number = 0;
	exchange_query(exchange, "partNumber", &text);
	if (span_parse_u64(text, &number) && number >= 1 && number <= UPLOAD_PARTS_MAX) {
		*out = (uint32_t)number;
		return true;
	}
	*out_next = s3_error_argument(exchange, "partNumber", text,
		"Part number must be an integer between 1 and 10000, inclusive");
	return false;
}

const char *upload_request_quote(struct exchange *exchange, const char *etag)
{
	return arena_format(exchange->arena, "\"%s\"", etag);
}

/* A malformed id counts as one of an upload that does not exist. When the bucket does not exist
 * either, that is the error. */
static int find_upload_id(
	struct exchange *exchange, struct span text, struct upload_ref *out, struct error *err)
{
	struct bucket bucket;
	if (s3_request_check_owner(exchange, err) != 0)
		return -1;
	if (upload_id_parse(text, &out->id))
		return 0;
	if (bucket_find(exchange->context->store, out->bucket, exchange->arena, &bucket, err) != 0)
		return -1;
	return error_set(err, ERROR_NO_UPLOAD,
		"The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or"
		" completed.");
}
