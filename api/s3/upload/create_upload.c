#include "api/s3/upload/handlers.h"

#include "api/auth/keyring.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/objects/object_facts.h"
#include "storage/uploads/upload.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

static struct call *make_call(struct exchange *exchange, struct checksum_headers *checksum,
	const struct object_facts *facts, struct error *err);
static enum next reply(struct exchange *exchange, const struct upload_id *id);

enum next create_upload_begin(struct exchange *exchange)
{
	struct object_facts facts;
	struct error err = {0};
	enum next next;
	if (!object_headers_read(exchange, &facts, &next))
		return next;
	struct checksum_headers *const checksum = arena_take(exchange->arena, sizeof(*checksum));
	if (checksum == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "The headers do not fit the memory of a request.");
		return exchange_fail(exchange, &err);
	}
	exchange->state = checksum;
	struct call *const call = make_call(exchange, checksum, &facts, &err);
	return call != NULL ? exchange_await(exchange, call) : exchange_fail(exchange, &err);
}

enum next create_upload_resume(struct exchange *exchange)
{
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct upload_id id = upload_create_result(exchange->call);
	return reply(exchange, &id);
}

/* Fills `checksum`, the exchange's state, with the algorithm and type that the client names. */
static struct call *make_call(struct exchange *exchange, struct checksum_headers *checksum,
	const struct object_facts *facts, struct error *err)
{
	if (s3_request_check_owner(exchange, err) != 0 ||
		checksum_headers_read(exchange, CHECKSUM_TO_STORE, checksum, err) != 0)
		return NULL;
	const struct upload_create_params params = {
		.bucket = exchange_bucket(exchange),
		.key = s3_request_key(exchange),
		.initiator = exchange->principal != NULL ? exchange->principal->namespace
							 : (struct span){NULL, 0},
		.facts = *facts,
		.checksum = checksum->algorithm,
		.type = checksum->type,
	};
	return upload_create_call(exchange->context->store, &params, err);
}

static enum next reply(struct exchange *exchange, const struct upload_id *id)
{
	const struct checksum_headers *const named = exchange->state;
	ASSERT(named != NULL);
	const struct checksum checksum = {.algorithm = named->algorithm, .type = named->type};
	char text[UPLOAD_ID_TEXT_BYTES];
	struct buffer body;
	struct xml_writer xml;
	upload_id_format(id, text);
	if (checksum.algorithm != CHECKSUM_NONE)
		exchange_add_header(
			exchange, "x-amz-checksum-algorithm", checksum_name(checksum.algorithm));
	checksum_headers_add_type(exchange, &checksum);
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "InitiateMultipartUploadResult", true);
	xml_writer_text(&xml, "Bucket", exchange_bucket(exchange).name);
	xml_writer_text(&xml, "Key", s3_request_key(exchange));
	xml_writer_text(&xml, "UploadId", span_text(text));
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}
