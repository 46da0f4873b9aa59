#include "api/admin/admin_damage.h"

#include "api/admin/admin_page.h"
#include "base/encode.h"
#include "base/format/json_node.h"
#include "storage/packs/pack_format.h"
#include "storage/scrub/damage_report.h"
#include "storage/scrub/scrub.h"

enum { REPLY_MAX_BYTES = 8 * 1024 * 1024 };

static void print_packs(const struct damage_report *report, struct json_writer *json);
static void print_keys(const struct damage_report *report, struct json_writer *json);
static void print_steps(const struct damage_report *report, struct json_writer *json);
static void print_uploads(const struct damage_report *report, struct json_writer *json);
static void print_counts(const struct scrub_report *report, struct json_writer *json);

enum next admin_damage_begin(struct exchange *exchange)
{
	return exchange_await(exchange, damage_report_call(exchange->context->store));
}

enum next admin_damage_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct damage_report *const report = damage_report_result(exchange->call);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_u64(&json, "chunks", report->count);
	print_packs(report, &json);
	print_keys(report, &json);
	print_steps(report, &json);
	print_uploads(report, &json);
	admin_damage_print_scrub(exchange->context->store, &json);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

void admin_damage_print_scrub(struct store *store, struct json_writer *json)
{
	struct scrub_status status;
	scrub_look(store_parts(store)->scrub, &status);
	const struct scrub_state *const state = &status.state;
	json_writer_object(json, "scrub");
	if (state->began_ms != 0) {
		json_writer_object(json, "round");
		admin_page_print_time(json, "began", state->began_ms);
		print_counts(&state->report, json);
		json_writer_u64(json, "store_bytes", status.store_bytes);
		json_writer_end(json, '}');
	}
	if (state->last_ended_ms != 0) {
		json_writer_object(json, "last");
		admin_page_print_time(json, "began", state->last_began_ms);
		admin_page_print_time(json, "ended", state->last_ended_ms);
		print_counts(&state->last, json);
		json_writer_end(json, '}');
	}
	if (status.next_ms != 0)
		admin_page_print_time(json, "next", status.next_ms);
	json_writer_end(json, '}');
}

static void print_packs(const struct damage_report *report, struct json_writer *json)
{
	const struct chunk_place *const places = report->places;
	json_writer_array(json, "packs");
	for (size_t i = 0; i < report->count; i++) {
		const bool is_first =
			i == 0 || !pack_id_equal(&places[i].pack, &places[i - 1].pack);
		if (is_first && i > 0) {
			json_writer_end(json, ']');
			json_writer_end(json, '}');
		}
		if (is_first) {
			char text[PACK_ID_TEXT_BYTES];
			pack_id_format(&places[i].pack, text);
			json_writer_object(json, NULL);
			json_writer_text(json, "pack", span_text(text));
			json_writer_array(json, "chunks");
		}
		json_writer_u64(json, NULL, places[i].chunk);
	}
	if (report->count > 0) {
		json_writer_end(json, ']');
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}

static void print_keys(const struct damage_report *report, struct json_writer *json)
{
	size_t listed, count;
	const struct reach_key *const keys = reach_keys(report->reach, &listed, &count);
	json_writer_array(json, "keys");
	for (size_t i = 0; i < listed; i++) {
		char id[2 * VERSION_ID_BYTES + 1] = "null";
		if (keys[i].has_id)
			encode_hex(span_of(keys[i].id, VERSION_ID_BYTES), id);
		json_writer_object(json, NULL);
		json_writer_text(json, "bucket", keys[i].bucket);
		json_writer_text(json, "key", keys[i].key);
		json_writer_text(json, "version", span_text(id));
		json_writer_bool(json, "current", keys[i].is_current);
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
	json_writer_u64(json, "keys_in_all", count);
}

static void print_steps(const struct damage_report *report, struct json_writer *json)
{
	size_t listed, count;
	const struct reach_step *const steps = reach_steps(report->reach, &listed, &count);
	json_writer_array(json, "steps");
	for (size_t i = 0; i < listed; i++) {
		json_writer_object(json, NULL);
		json_writer_text(json, "bucket", steps[i].bucket);
		json_writer_text(json, "run", steps[i].run);
		json_writer_i64(json, "step", steps[i].step);
		json_writer_text(json, "form", span_text(reach_form_name(steps[i].form)));
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
	json_writer_u64(json, "steps_in_all", count);
}

static void print_uploads(const struct damage_report *report, struct json_writer *json)
{
	size_t listed, count;
	const struct reach_upload *const uploads = reach_uploads(report->reach, &listed, &count);
	json_writer_array(json, "parts");
	for (size_t i = 0; i < listed; i++) {
		char id[2 * REACH_UPLOAD_ID_BYTES + 1];
		encode_hex(span_of(uploads[i].id, REACH_UPLOAD_ID_BYTES), id);
		json_writer_object(json, NULL);
		json_writer_text(json, "bucket", uploads[i].bucket);
		json_writer_text(json, "key", uploads[i].key);
		json_writer_text(json, "upload", span_text(id));
		json_writer_u64(json, "part", uploads[i].part);
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
	json_writer_u64(json, "parts_in_all", count);
}

static void print_counts(const struct scrub_report *report, struct json_writer *json)
{
	json_writer_u64(json, "packs", report->packs);
	json_writer_u64(json, "bytes", report->bytes);
	json_writer_u64(json, "chunks_damaged", report->chunks_damaged);
	json_writer_u64(json, "chunks_healed", report->chunks_healed);
	json_writer_u64(json, "packs_failed", report->packs_failed);
	json_writer_u64(json, "packs_mended", report->packs_mended);
}
