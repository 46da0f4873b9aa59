#include "api/admin/admin_scrub.h"

#include "base/format/json_node.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 4096, RATE_MAX_MIB = 65536 };

static int parse_members(
	const struct json_node *root, struct scrub_request *out, struct error *err);

enum next admin_scrub_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_scrub_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct scrub_request request = {.resumes = false};
	if (admin_scrub_parse(exchange_body(exchange), &request, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(
		exchange, scrub_call(store_parts(exchange->context->store)->scrub, &request));
}

enum next admin_scrub_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_scrub_print(scrub_result(exchange->call), &body);
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

int admin_scrub_parse(struct span json, struct scrub_request *out, struct error *err)
{
	struct json_node *const root =
		json_node_parse(json.len > 0 ? json : span_text("{}"), "The request body", err);
	if (root == NULL)
		return -1;
	const int outcome = parse_members(root, out, err);
	json_node_free(root);
	return outcome;
}

void admin_scrub_print(const struct scrub_request *request, struct buffer *out)
{
	const struct scrub_report *const report = &request->report;
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	json_writer_u64(&json, "packs", report->packs);
	json_writer_u64(&json, "bytes", report->bytes);
	json_writer_u64(&json, "chunks_damaged", report->chunks_damaged);
	json_writer_u64(&json, "chunks_healed", report->chunks_healed);
	json_writer_u64(&json, "packs_failed", report->packs_failed);
	json_writer_u64(&json, "packs_mended", report->packs_mended);
	json_writer_u64(&json, "damaged_now", request->damaged_now);
	json_writer_end(&json, '}');
}

static int parse_members(const struct json_node *root, struct scrub_request *out, struct error *err)
{
	const struct json_node *const resume = json_node_member(root, "resume");
	const struct json_node *const rate = json_node_member(root, "rate");
	uint64_t number = 0;
	if (!json_node_is_object(root))
		return error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	if (resume != NULL && !json_node_bool(resume, &out->resumes))
		return error_set(err, ERROR_INVALID, "\"resume\" must be true or false.");
	if (rate != NULL && (!json_node_u64(rate, &number) || number > RATE_MAX_MIB))
		return error_set(err, ERROR_INVALID,
			"\"rate\" must be a number of MiB/s from 0 to %d.", RATE_MAX_MIB);
	out->bytes_per_second = number * 1024 * 1024;
	return 0;
}
