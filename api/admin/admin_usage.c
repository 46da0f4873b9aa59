#include "api/admin/admin_usage.h"

#include "api/admin/admin_page.h"
#include "api/exchange/page_query.h"
#include "api/auth/authorise.h"
#include "base/format/json_node.h"
#include "storage/objects/object_search.h"
#include "storage/objects/object_usage.h"

enum { PAGE_ENTRIES = 200, REPLY_MAX_BYTES = 16 * 1024 * 1024 };

static int may_see_older(
	struct exchange *exchange, struct span prefix, bool *out_may, struct error *err);
static void print_usage(struct exchange *exchange, struct json_writer *json);
static void print_entries(const struct object_usage *usage, struct json_writer *json);
static void print_found(const struct object_search *search, struct json_writer *json);

enum next admin_usage_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct object_usage_params params = {.bucket = exchange_bucket(exchange)};
	uint64_t limit;
	exchange_query(exchange, "prefix", &params.prefix);
	exchange_query(exchange, "after", &params.after);
	if (page_query_limit(exchange, PAGE_ENTRIES, OBJECT_USAGE_LIMIT_MAX, &limit, &err) != 0 ||
		may_see_older(exchange, params.prefix, &params.counts_older, &err) != 0)
		return exchange_fail(exchange, &err);
	params.limit = limit;
	return exchange_await(exchange, object_usage_call(exchange->context->store, &params));
}

enum next admin_usage_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	print_usage(exchange, &json);
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

enum next admin_search_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct object_search_params params = {.bucket = exchange_bucket(exchange)};
	uint64_t limit;
	exchange_query(exchange, "prefix", &params.prefix);
	exchange_query(exchange, "contains", &params.contains);
	exchange_query(exchange, "after", &params.after);
	if (page_query_limit(exchange, PAGE_ENTRIES, OBJECT_SEARCH_LIMIT_MAX, &limit, &err) != 0)
		return exchange_fail(exchange, &err);
	params.limit = limit;
	return exchange_await(exchange, object_search_call(exchange->context->store, &params));
}

enum next admin_search_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct object_search *const search = object_search_result(exchange->call);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	print_found(search, &json);
	json_writer_u64(&json, "scanned", search->scanned);
	if (search->more)
		json_writer_text(&json, "next", search->last);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

/* The list of versions asks more of a caller than that of objects: a bucket may allow only the
 * latter to everyone. */
static int may_see_older(
	struct exchange *exchange, struct span prefix, bool *out_may, struct error *err)
{
	struct bucket_ref bucket = exchange_bucket(exchange);
	const int may = authorise_permits(
		exchange, &bucket, prefix, PERMISSION_LIST | PERMISSION_VERSIONS, err);
	*out_may = may == 1;
	return may < 0 ? -1 : 0;
}

static void print_usage(struct exchange *exchange, struct json_writer *json)
{
	const struct object_usage *const usage = object_usage_result(exchange->call);
	struct span prefix = {NULL, 0};
	exchange_query(exchange, "prefix", &prefix);
	json_writer_object(json, NULL);
	json_writer_text(json, "bucket", exchange_bucket(exchange).name);
	json_writer_text(json, "prefix", prefix);
	json_writer_u64(json, "objects", usage->objects);
	json_writer_u64(json, "bytes", usage->bytes);
	if (usage->has_older) {
		json_writer_u64(json, "older_versions", usage->older_versions);
		json_writer_u64(json, "older_bytes", usage->older_bytes);
	}
	print_entries(usage, json);
	json_writer_bool(json, "complete", usage->complete);
	if (!usage->complete)
		json_writer_text(json, "next", usage->next);
	json_writer_end(json, '}');
}

static void print_entries(const struct object_usage *usage, struct json_writer *json)
{
	json_writer_array(json, "entries");
	for (size_t i = 0; i < usage->count; i++) {
		const struct object_usage_entry *const entry = &usage->entries[i];
		json_writer_object(json, NULL);
		json_writer_text(json, "name", entry->name);
		json_writer_bool(json, "folder", entry->is_folder);
		json_writer_u64(json, "objects", entry->objects);
		json_writer_u64(json, "bytes", entry->bytes);
		admin_page_print_time(json, "modified", entry->modified_ms);
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}

static void print_found(const struct object_search *search, struct json_writer *json)
{
	json_writer_array(json, "objects");
	for (size_t i = 0; i < search->count; i++) {
		const struct object_entry *const entry = &search->entries[i];
		json_writer_object(json, NULL);
		json_writer_text(json, "key", entry->key);
		json_writer_u64(json, "size", entry->size);
		admin_page_print_time(json, "modified", entry->modified_ms);
		json_writer_text(json, "etag", span_text(entry->etag));
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}
