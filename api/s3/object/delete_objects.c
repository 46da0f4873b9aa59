/* Each key succeeds or fails by itself, and the reply is 200 all the same. The entries that can be
 * tried are copied into a second list, which storage fills with outcomes; the reply walks the first
 * list and takes the next outcome for each entry without an error. */
#include "api/s3/object/handlers.h"

#include "api/auth/authorise.h"
#include "api/s3/object/delete_list.h"
#include "api/s3/request/s3_request.h"
#include "api/s3/request/xml_body.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/buckets/account.h"

enum { BODY_MAX_BYTES = 4 * 1024 * 1024, REPLY_MAX_BYTES = 32 * 1024 * 1024 };

struct delete_objects { /* the exchange's state */
	struct delete_list list;
	struct object_delete_item *items; /* the entries that are tried, in their order */
	size_t count;
};

static int choose_items(struct exchange *exchange, struct delete_objects *state, struct error *err);
static enum next reply(struct exchange *exchange, const struct delete_objects *state);
static void write_error(
	struct xml_writer *xml, const struct delete_entry *entry, const struct error *error);
static void write_deleted(struct xml_writer *xml, const struct delete_entry *entry,
	const struct object_delete_item *item);

enum next delete_objects_begin(struct exchange *exchange)
{
	struct error err = {0};
	struct bucket bucket;
	if (s3_request_check_owner(exchange, &err) != 0 ||
		bucket_find(exchange->context->store, exchange_bucket(exchange), exchange->arena,
			&bucket, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->bucket_id = bucket.id;
	return xml_body_accept(exchange, BODY_MAX_BYTES);
}

enum next delete_objects_finish(struct exchange *exchange)
{
	struct delete_objects *const state = arena_take(exchange->arena, sizeof(*state));
	struct error err = {0};
	struct span xml;
	enum next next;
	ASSERT(state != NULL);
	if (!xml_body_check(exchange, &xml, &next))
		return next;
	if (delete_list_read(xml, exchange->arena, &state->list, &err) != 0 ||
		choose_items(exchange, state, &err) != 0)
		return exchange_fail(exchange, &err);
	exchange->state = state;
	if (state->count == 0)
		return reply(exchange, state);
	const struct object_delete_params params = {
		.bucket = exchange_bucket(exchange), .items = state->items, .count = state->count};
	return exchange_await(exchange, object_delete_call(exchange->context->store, &params));
}

enum next delete_objects_resume(struct exchange *exchange)
{
	const struct delete_objects *const state = exchange->state;
	struct error err = {0};
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	return reply(exchange, state);
}

/* Leaves out entries with an error and those that the caller may not delete. */
static int choose_items(struct exchange *exchange, struct delete_objects *state, struct error *err)
{
	state->items = arena_take_array(exchange->arena, state->list.count, sizeof(*state->items));
	if (state->items == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The list of objects does not fit the memory of a request.");
	for (size_t i = 0; i < state->list.count; i++) {
		struct object_delete_item *const item = &state->list.entries[i].item;
		struct bucket_ref bucket = exchange_bucket(exchange);
		if (item->error.kind == ERROR_NONE &&
			authorise_key(exchange, &bucket, item->key,
				item->ref.kind == VERSION_REF_CURRENT
					? PERMISSION_DELETE
					: PERMISSION_DELETE | PERMISSION_VERSIONS,
				&item->error) == 0)
			state->items[state->count++] = *item;
	}
	return 0;
}

static enum next reply(struct exchange *exchange, const struct delete_objects *state)
{
	struct buffer body;
	struct xml_writer xml;
	size_t tried = 0;
	buffer_init(&body, REPLY_MAX_BYTES);
	xml_writer_begin(&xml, &body, "DeleteResult", true);
	for (size_t i = 0; i < state->list.count; i++) {
		const struct delete_entry *const entry = &state->list.entries[i];
		const bool was_tried = entry->item.error.kind == ERROR_NONE;
		ASSERT(!was_tried || tried < state->count);
		const struct object_delete_item *const item =
			was_tried ? &state->items[tried++] : &entry->item;
		if (item->error.kind != ERROR_NONE)
			write_error(&xml, entry, &item->error);
		else if (!state->list.is_quiet)
			write_deleted(&xml, entry, item);
	}
	ASSERT(tried == state->count);
	xml_writer_end(&xml);
	return exchange_reply_buffer(exchange, 200, "application/xml", &body);
}

static void write_error(
	struct xml_writer *xml, const struct delete_entry *entry, const struct error *error)
{
	const struct error_row *const row = error_map_find(error->kind);
	xml_writer_open(xml, "Error");
	xml_writer_text(xml, "Key", entry->item.key);
	if (entry->version.len > 0)
		xml_writer_text(xml, "VersionId", entry->version);
	xml_writer_text(xml, "Code", span_text(row->s3_code));
	xml_writer_text(xml, "Message",
		span_text(row->status < 500
				? error->text
				: "The server failed to delete this object. Please try again."));
	xml_writer_close(xml);
}

static void write_deleted(struct xml_writer *xml, const struct delete_entry *entry,
	const struct object_delete_item *item)
{
	xml_writer_open(xml, "Deleted");
	xml_writer_text(xml, "Key", item->key);
	if (entry->version.len > 0)
		xml_writer_text(xml, "VersionId", entry->version);
	if (item->is_marker) {
		xml_writer_bool(xml, "DeleteMarker", true);
		xml_writer_text(xml, "DeleteMarkerVersionId", span_text(item->version));
	}
	xml_writer_close(xml);
}
