#include "api/hub/tree_call.h"

#include "storage/files/file_hash.h"

enum {
	/* The third and later looks are needed only when files without a hash came meanwhile. */
	LOOKS_MAX = 5
};

static void tree_call_hang_up(struct exchange *exchange);
static void print_file(struct json_writer *json, const struct tree_entry *entry);
static void print_time(struct json_writer *json, const char *name, int64_t ms);

enum next tree_call_run(struct exchange *exchange, struct tree_call *call)
{
	struct tree tree;
	struct error err = {0};
	ASSERT(call->look != NULL && call->reply != NULL && call->wait == NULL);
	if (call->look(exchange, &tree, &err) != 0)
		return exchange_fail(exchange, &err);
	if (tree.unhashed_count == 0 || call->leaves_out_unhashed)
		return call->reply(exchange, &tree);
	if (++call->looks == LOOKS_MAX) {
		error_set(&err, ERROR_BUSY,
			"Files come faster than their hashes can be computed. Please try again.");
		return exchange_fail(exchange, &err);
	}
	call->wait = file_hash_start(exchange->context->store, tree.unhashed, tree.unhashed_count,
		exchange_wake_owner, exchange);
	exchange->hang_up = tree_call_hang_up;
	return NEXT_WAIT;
}

enum next tree_call_resume(struct exchange *exchange, struct tree_call *call)
{
	struct error err = {0};
	ASSERT(call->wait != NULL);
	const int outcome = file_hash_outcome(call->wait, &err);
	tree_call_release(call);
	if (outcome != 0 && err.kind != ERROR_CORRUPT)
		return exchange_fail(exchange, &err);
	call->leaves_out_unhashed = outcome != 0;
	return tree_call_run(exchange, call);
}

void tree_call_release(struct tree_call *call)
{
	file_hash_free(call->wait);
	call->wait = NULL;
}

void tree_call_print(struct json_writer *json, const struct tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_entry *const entry = &tree->entries[i];
		if (!entry->is_directory && !entry->has_file_hash)
			continue;
		json_writer_object(json, NULL);
		json_writer_text(
			json, "type", span_text(entry->is_directory ? "directory" : "file"));
		json_writer_text(json, "path", entry->path);
		if (!entry->is_directory)
			print_file(json, entry);
		print_time(json, "uploadedAt", entry->uploaded_ms);
		json_writer_end(json, '}');
	}
}

static void tree_call_hang_up(struct exchange *exchange)
{
	struct tree_call *const call = exchange->state;
	if (call->wait != NULL)
		file_hash_give_up(call->wait);
}

static void print_file(struct json_writer *json, const struct tree_entry *entry)
{
	char hash[CHUNK_ID_TEXT_BYTES];
	chunk_id_format(&entry->file_hash, hash);
	json_writer_u64(json, "size", entry->size);
	json_writer_text(json, "xetHash", span_text(hash));
	print_time(json, "mtime", entry->mtime_ms);
	if (entry->content_type.len > 0)
		json_writer_text(json, "contentType", entry->content_type);
}

static void print_time(struct json_writer *json, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, text);
	json_writer_text(json, name, span_text(text));
}
