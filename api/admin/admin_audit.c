#include "api/admin/admin_audit.h"

#include "base/format/json_node.h"
#include "storage/buckets/audit.h"

enum { PAGE_DEFAULT = 100, REPLY_MAX_BYTES = 16 * 1024 * 1024 };

static int read_number(struct exchange *exchange, const char *name, uint64_t max, uint64_t *out,
	struct error *err);
static void print_entry(const struct audit_entry *entry, struct json_writer *json);

enum next admin_audit_begin(struct exchange *exchange)
{
	struct audit_page *const page = arena_take(exchange->arena, sizeof(*page));
	struct error err = {0};
	uint64_t before = INT64_MAX;
	uint64_t limit = PAGE_DEFAULT;
	struct buffer body;
	struct json_writer json;
	ASSERT(page != NULL);
	if (read_number(exchange, "before", INT64_MAX, &before, &err) != 0 ||
		read_number(exchange, "limit", AUDIT_PAGE_MAX, &limit, &err) != 0 ||
		audit_list(exchange->context->store, (int64_t)before, limit, exchange->arena, page,
			&err) != 0)
		return exchange_fail(exchange, &err);
	buffer_init(&body, REPLY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_array(&json, "entries");
	for (size_t i = 0; i < page->count; i++)
		print_entry(&page->entries[i], &json);
	json_writer_end(&json, ']');
	if (page->has_more)
		json_writer_i64(&json, "next", page->entries[page->count - 1].id);
	json_writer_end(&json, '}');
	return exchange_reply_buffer(exchange, 200, "application/json", &body);
}

static int read_number(
	struct exchange *exchange, const char *name, uint64_t max, uint64_t *out, struct error *err)
{
	struct span text;
	if (!exchange_query(exchange, name, &text))
		return 0;
	if (!span_parse_u64(text, out) || *out < 1 || *out > max)
		return error_set(err, ERROR_INVALID,
			"The parameter %s must be a number from 1 to %llu.", name,
			(unsigned long long)max);
	return 0;
}

static void print_entry(const struct audit_entry *entry, struct json_writer *json)
{
	char time[CLOCK_TEXT_BYTES];
	clock_format_iso(entry->time_ms, time);
	json_writer_object(json, NULL);
	json_writer_i64(json, "id", entry->id);
	json_writer_text(json, "time", span_text(time));
	json_writer_text(json, "key_id", entry->key_id);
	json_writer_text(json, "address", entry->address);
	json_writer_text(json, "action", entry->action);
	json_writer_text(json, "subject", entry->subject);
	json_writer_text(json, "detail", entry->detail);
	json_writer_text(json, "request_id", entry->request_id);
	json_writer_end(json, '}');
}
