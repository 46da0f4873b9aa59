#include "api/admin/admin_storage.h"

#include "api/admin/admin_damage.h"
#include "api/admin/admin_gc.h"
#include "api/admin/admin_page.h"
#include "api/exchange/page_query.h"
#include "base/format/json_node.h"
#include "storage/packs/backup_holds.h"
#include "storage/packs/pack_format.h"
#include "storage/survey/pack_survey.h"
#include "storage/survey/store_survey.h"

enum { STORAGE_MAX_BYTES = 16 * 1024, PAGE_PACKS = 200, PACKS_MAX_BYTES = 1024 * 1024 };

static void print_packs(const struct store_survey *survey, struct json_writer *json);
static void print_kept(const struct store_survey *survey, struct json_writer *json);
static void print_sum(struct json_writer *json, const char *name, uint64_t bytes, int64_t until_ms);
static void print_gc(struct exchange *exchange, struct json_writer *json);
static void print_last(struct exchange *exchange, struct json_writer *json);
static void print_derived(struct exchange *exchange, struct json_writer *json);
static void print_damage(struct exchange *exchange, struct json_writer *json);
static void print_pack(const struct surveyed_pack *pack, struct json_writer *json);

enum next admin_storage_begin(struct exchange *exchange)
{
	return exchange_await(exchange, store_survey_call(exchange->context->store));
}

enum next admin_storage_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct store_survey *const survey = store_survey_result(exchange->call);
	buffer_init(&body, STORAGE_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	print_packs(survey, &json);
	print_gc(exchange, &json);
	print_kept(survey, &json);
	print_derived(exchange, &json);
	print_damage(exchange, &json);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

enum next admin_packs_begin(struct exchange *exchange)
{
	struct error err = {0};
	uint64_t after = 0;
	uint64_t limit;
	if (page_query_number(exchange, "after", &after, &err) != 0 ||
		page_query_limit(exchange, PAGE_PACKS, PACK_SURVEY_MAX, &limit, &err) != 0)
		return exchange_fail(exchange, &err);
	return exchange_await(
		exchange, pack_survey_call(exchange->context->store, (int64_t)after, limit));
}

enum next admin_packs_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct pack_page *const page = pack_survey_result(exchange->call);
	buffer_init(&body, PACKS_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "packs");
	for (size_t i = 0; i < page->count; i++)
		print_pack(&page->packs[i], &json);
	json_writer_end(&json, ']');
	if (page->more)
		json_writer_i64(&json, "next", page->packs[page->count - 1].number);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

static void print_packs(const struct store_survey *survey, struct json_writer *json)
{
	json_writer_object(json, "packs");
	json_writer_u64(json, "count", survey->packs);
	json_writer_u64(json, "bytes", survey->pack_bytes);
	json_writer_u64(json, "live_bytes", survey->live_bytes);
	json_writer_u64(json, "unknown", survey->unknown);
	json_writer_u64(json, "open", survey->open);
	json_writer_end(json, '}');
	json_writer_object(json, "objects");
	json_writer_u64(json, "count", survey->objects);
	json_writer_u64(json, "logical_bytes", survey->logical_bytes);
	json_writer_end(json, '}');
}

static void print_kept(const struct store_survey *survey, struct json_writer *json)
{
	print_sum(json, "promises", survey->promised_bytes, survey->promised_ms);
	print_sum(json, "registered", survey->registered_bytes, survey->registered_ms);
	json_writer_object(json, "set_aside");
	json_writer_u64(json, "files", survey->set_aside);
	json_writer_u64(json, "bytes", survey->set_aside_bytes);
	json_writer_end(json, '}');
}

static void print_sum(struct json_writer *json, const char *name, uint64_t bytes, int64_t until_ms)
{
	json_writer_object(json, name);
	json_writer_u64(json, "bytes", bytes);
	admin_page_print_time(json, "until", until_ms);
	json_writer_end(json, '}');
}

static void print_gc(struct exchange *exchange, struct json_writer *json)
{
	json_writer_object(json, "gc");
	print_last(exchange, json);
	json_writer_i64(json, "freed_bytes",
		metrics_get(exchange->context->metrics, METRIC_GC_BYTES_FREED));
	json_writer_end(json, '}');
}

static void print_last(struct exchange *exchange, struct json_writer *json)
{
	struct gc_request request;
	int64_t ended_ms;
	if (!gc_last(store_parts(exchange->context->store)->gc, &request, &ended_ms)) {
		json_writer_null(json, "last");
		return;
	}
	json_writer_object(json, "last");
	admin_gc_print_members(&request, json);
	admin_page_print_time(json, "ended", ended_ms);
	json_writer_end(json, '}');
}

static void print_derived(struct exchange *exchange, struct json_writer *json)
{
	const struct metrics *const metrics = exchange->context->metrics;
	json_writer_object(json, "derived");
	json_writer_i64(json, "swapped", metrics_get(metrics, METRIC_DERIVED_SWAPPED));
	json_writer_i64(json, "bytes_saved", metrics_get(metrics, METRIC_DERIVED_BYTES_SAVED));
	json_writer_end(json, '}');
}

static void print_damage(struct exchange *exchange, struct json_writer *json)
{
	struct backup_hold holds[BACKUP_HOLDS_MAX];
	struct store *const store = exchange->context->store;
	admin_damage_print_scrub(store, json);
	json_writer_i64(json, "damaged_chunks",
		metrics_get(exchange->context->metrics, METRIC_CHUNKS_DAMAGED_NOW));
	json_writer_u64(json, "backup_holds", backup_holds_list(store_backup_holds(store), holds));
}

static void print_pack(const struct surveyed_pack *pack, struct json_writer *json)
{
	static const char *const states[] = {
		[PACK_OPEN] = "open", [PACK_SEALED] = "sealed", [PACK_CONDEMNED] = "condemned"};
	char id[PACK_ID_TEXT_BYTES];
	pack_id_format(&pack->record.id, id);
	json_writer_object(json, NULL);
	json_writer_i64(json, "number", pack->number);
	json_writer_text(json, "id", span_text(id));
	json_writer_u64(json, "bytes", pack->record.length);
	if (pack->knows_live)
		json_writer_u64(json, "live_bytes", pack->live_bytes);
	else
		json_writer_null(json, "live_bytes");
	json_writer_u64(json, "chunks", pack->record.chunks);
	json_writer_text(json, "state", span_text(states[pack->record.state]));
	admin_page_print_time(json, "made", pack->record.created_ms);
	admin_page_print_time(json, "promised_until", pack->promised_ms);
	json_writer_u64(json, "damaged", pack->damaged);
	json_writer_end(json, '}');
}
