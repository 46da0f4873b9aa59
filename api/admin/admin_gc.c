#include "api/admin/admin_gc.h"

#include "base/format/json_node.h"

enum { REQUEST_MAX_BYTES = 4096, REPLY_MAX_BYTES = 4096, PERCENT_MAX = 100 };

static int parse_members(const struct json_node *root, struct gc_request *out, struct error *err);

enum next admin_gc_begin(struct exchange *exchange)
{
	return exchange_accept_small(exchange, REQUEST_MAX_BYTES);
}

enum next admin_gc_finish(struct exchange *exchange)
{
	struct error err = {0};
	struct gc_request request = {.dry_run = false};
	if (admin_gc_parse(exchange_body(exchange), &request, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(
		exchange, gc_call(store_parts(exchange->context->store)->gc, &request));
}

enum next admin_gc_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	admin_gc_print(gc_result(exchange->call), &body);
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

int admin_gc_parse(struct span json, struct gc_request *out, struct error *err)
{
	struct json_node *const root =
		json_node_parse(json.len > 0 ? json : span_text("{}"), "The request body", err);
	if (root == NULL)
		return -1;
	const int outcome = parse_members(root, out, err);
	json_node_free(root);
	return outcome;
}

void admin_gc_print(const struct gc_request *request, struct buffer *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_writer_object(&json, NULL);
	admin_gc_print_members(request, &json);
	json_writer_end(&json, '}');
}

void admin_gc_print_members(const struct gc_request *request, struct json_writer *json)
{
	const struct gc_report *const report = &request->report;
	const struct {
		const char *name;
		uint64_t value;
	} members[] = {{"packs", report->packs}, {"bytes", report->bytes},
		{"packs_deleted", report->packs_deleted},
		{"packs_compacted", report->packs_compacted}, {"bytes_freed", report->bytes_freed},
		{"packs_waiting", report->packs_waiting}, {"rows_damaged", report->rows_damaged},
		{"sweeps_failed", report->sweeps_failed},
		{"bytes_registered", report->bytes_registered},
		{"bytes_promised", report->bytes_promised}};
	json_writer_bool(json, "dry_run", request->dry_run);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		json_writer_u64(json, members[i].name, members[i].value);
}

static int parse_members(const struct json_node *root, struct gc_request *out, struct error *err)
{
	const struct json_node *const dry_run = json_node_member(root, "dry_run");
	const struct json_node *const ends = json_node_member(root, "ends_promises");
	const struct json_node *const percent = json_node_member(root, "live_percent");
	uint64_t number = 0;
	if (!json_node_is_object(root))
		return error_set(err, ERROR_INVALID, "The request body must be a JSON object.");
	if (dry_run != NULL && !json_node_bool(dry_run, &out->dry_run))
		return error_set(err, ERROR_INVALID, "\"dry_run\" must be true or false.");
	if (ends != NULL && !json_node_bool(ends, &out->ends_promises))
		return error_set(err, ERROR_INVALID, "\"ends_promises\" must be true or false.");
	if (percent != NULL &&
		(!json_node_u64(percent, &number) || number < 1 || number > PERCENT_MAX))
		return error_set(err, ERROR_INVALID,
			"\"live_percent\" must be a number from 1 to %d.", PERCENT_MAX);
	out->live_percent = (unsigned)number;
	return 0;
}
