#include "api/s3/upload/create_upload.h"

#include "api/auth/keyring.h"
#include "api/s3/object/object_headers.h"
#include "api/s3/request/checksum_headers.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/objects/object_facts.h"
#include "storage/uploads/upload.h"

enum { REPLY_MAX_BYTES = 16 * 1024 };

struct create_upload { /* the exchange's state */
	struct upload_create *create;
	struct checksum_headers checksum;
};

static void release(struct exchange *exchange)
{
	struct create_upload *const state = exchange->state;
	upload_create_free(state->create);
}

static int start(struct exchange *exchange, struct create_upload *state,
	const struct object_facts *facts, struct error *err)
{
	if (s3_request_check_owner(exchange, err) != 0 ||
		checksum_headers_read(exchange, CHECKSUM_TO_STORE, &state->checksum, err) != 0)
		return -1;
	const struct upload_create_params params = {
		.bucket = s3_request_bucket(exchange),
		.key = s3_request_key(exchange),
		.initiator = exchange->principal != NULL ? exchange->principal->namespace
							 : (struct span){NULL, 0},
		.facts = *facts,
		.checksum = state->checksum.algorithm,
		.type = state->checksum.type,
		.done = exchange_wake_owner,
		.owner = exchange,
	};
	state->create = upload_create_start(exchange->context->store, &params, err);
	return state->create != NULL ? 0 : -1;
}

enum next create_upload_begin(struct exchange *exchange)
{
	struct object_facts facts;
	struct error err = {0};
	enum next next;
	if (!object_headers_read(exchange, &facts, &next))
		return next;
	struct create_upload *const state = arena_take(exchange->arena, sizeof(*state));
	ASSERT(state != NULL); /* object_headers_read found room for more than this */
	exchange->state = state;
	exchange->release = release;
	return start(exchange, state, &facts, &err) == 0 ? NEXT_WAIT
							 : exchange_fail(exchange, &err);
}

static enum next reply(
	struct exchange *exchange, const struct create_upload *state, const struct upload_id *id)
{
	const struct checksum checksum = {
		.algorithm = state->checksum.algorithm, .type = state->checksum.type};
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
	xml_writer_text(&xml, "Bucket", s3_request_bucket(exchange));
	xml_writer_text(&xml, "Key", s3_request_key(exchange));
	xml_writer_text(&xml, "UploadId", span_text(text));
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

enum next create_upload_resume(struct exchange *exchange)
{
	struct create_upload *const state = exchange->state;
	struct upload_id id;
	struct error err = {0};
	if (upload_create_outcome(state->create, &id, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, state, &id);
}
