/* Both ways make the index of the new file first (pack_table.h), then write the records in its
 * order, then the table, and sync. Compaction copies runs of adjacent records and verifies each. A
 * mend copies record by record, because some come from the patch and others may be unreadable. */
#include "storage/packs/pack_rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "storage/packs/pack_table.h"

enum { REWRITE_BYTES = 1024 * 1024 };

/* Takes the next adjacent records of the old file, as many as fit; returns their number. */
enum { REWRITE_RECORDS = 512 };

static struct pack_index *rewrite_pinned(struct pack_store *store, const struct pack *pinned,
	const uint8_t *live, const struct pack_pace *pace, struct error *err);
static int copy_records(const struct pack_index *from, struct backend_file *file,
	const struct pack_index *to, struct pack_writer *writer, const struct pack_pace *pace,
	struct error *err);
static uint32_t take_run(const struct pack_index *from, const struct pack_index *to, uint32_t first,
	const struct pack_entry **out, size_t *out_bytes);
static uint64_t record_bytes(const struct pack_entry *entry);
static int check_records(const struct pack_entry *const *entries, uint32_t count, const uint8_t *at,
	struct error *err);
static struct pack_index *finish(struct pack_store *store, struct pack_index *to,
	struct pack_writer *writer, int result, struct error *err);
static int write_table(const struct pack_index *to, struct pack_writer *writer, struct error *err);
static struct pack_index *patch_pinned(struct pack_store *store, const struct pack *pinned,
	struct backend_file *file, const struct pack_patch *patch, struct error *err);
static struct pack_index *select_patched(
	const struct pack_index *from, const struct pack_patch *patch, const struct pack_id *name);
static uint64_t records_end(struct pack_index *index);
static const struct pack_entry *patch_entry(const struct pack_patch *patch, uint32_t number);
static int copy_patched(const struct pack_index *from, struct backend_file *file,
	const struct pack_index *to, const struct pack_patch *patch, struct pack_writer *writer,
	struct error *err);
static int read_old(struct backend_file *file, const struct pack_entry *entry, uint8_t *into,
	struct error *err);

int pack_rewrite_measure(struct pack_store *store, const struct pack_id *pack, const uint8_t *live,
	uint64_t *out_length, uint64_t *out_old_length, struct error *err)
{
	struct pack *const pinned = pack_cache_pin(store->cache, pack, false, err);
	if (pinned == NULL)
		return -1;
	const struct pack_index *const index = pack_cache_sealed_index(store->cache, pinned);
	ASSERT(index != NULL); /* sealed packs alone are measured */
	*out_length = pack_table_length(index, live);
	*out_old_length = index->length;
	pack_cache_unpin(store->cache, pinned);
	return 0;
}

struct pack_index *pack_rewrite(struct pack_store *store, const struct pack_id *pack,
	const uint8_t *live, const struct pack_pace *pace, struct error *err)
{
	struct pack *const pinned = pack_cache_pin(store->cache, pack, true, err);
	if (pinned == NULL)
		return NULL;
	struct pack_index *const index = rewrite_pinned(store, pinned, live, pace, err);
	pack_cache_unpin(store->cache, pinned);
	if (index == NULL) {
		char text[PACK_ID_TEXT_BYTES];
		pack_id_format(pack, text);
		error_wrap(err, "Pack %s cannot be compacted", text);
	}
	return index;
}

struct pack_index *pack_rewrite_patched(struct pack_store *store, const struct pack_id *pack,
	const struct pack_patch *patch, struct error *err)
{
	struct error missing = {0}; /* of the file; its index may be there nevertheless */
	struct pack *pinned = pack_cache_pin(store->cache, pack, true, &missing);
	struct backend_file *const file = pinned != NULL ? pack_file(pinned) : NULL;
	/* the file is there, and may open another time */
	if (pinned == NULL && missing.kind != ERROR_CORRUPT) {
		*err = missing;
		return NULL;
	}
	if (pinned == NULL)
		pinned = pack_cache_pin(store->cache, pack, false, err);
	if (pinned == NULL)
		return NULL;
	struct pack_index *const index = patch_pinned(store, pinned, file, patch, err);
	pack_cache_unpin(store->cache, pinned);
	return index;
}

static struct pack_index *rewrite_pinned(struct pack_store *store, const struct pack *pinned,
	const uint8_t *live, const struct pack_pace *pace, struct error *err)
{
	const struct pack_index *const from = pack_cache_sealed_index(store->cache, pinned);
	ASSERT(from != NULL);
	struct pack_id name;
	random_bytes(name.bytes, sizeof(name.bytes));
	struct pack_index *const to = pack_table_select(from, &name, live);
	struct pack_writer *const writer =
		pack_writer_open_compacted(store->backend, &from->pack, &name, err);
	const int result =
		writer == NULL ? -1 : copy_records(from, pack_file(pinned), to, writer, pace, err);
	return finish(store, to, writer, result, err);
}

static int copy_records(const struct pack_index *from, struct backend_file *file,
	const struct pack_index *to, struct pack_writer *writer, const struct pack_pace *pace,
	struct error *err)
{
	const struct pack_entry *run[REWRITE_RECORDS];
	uint8_t *const bytes = memory_new(REWRITE_BYTES);
	int result = 0;
	size_t size;
	for (uint32_t done = 0, count; result == 0 && done < to->count; done += count) {
		count = take_run(from, to, done, run, &size);
		const struct iovec part = {.iov_base = bytes, .iov_len = size};
		ASSERT(writer->length == to->entries[done].offset);
		if (file->backend->ops->read(file, &part, 1, run[0]->offset, err) != 0 ||
			check_records(run, count, bytes, err) != 0 ||
			pack_writer_append(writer, span_of(bytes, size), err) != 0)
			result = -1;
		else if (!pace->spend(pace->owner, 2 * size))
			result = error_set(err, ERROR_BUSY, "the store is closing.");
	}
	free(bytes);
	return result;
}

static uint32_t take_run(const struct pack_index *from, const struct pack_index *to, uint32_t first,
	const struct pack_entry **out, size_t *out_bytes)
{
	uint32_t count = 0;
	*out_bytes = 0;
	while (count < REWRITE_RECORDS && first + count < to->count) {
		const struct pack_entry *const entry =
			pack_index_find(from, pack_index_number(to, first + count));
		ASSERT(entry != NULL); /* `to` was selected from `from` */
		const bool follows = count == 0 || entry->offset == out[0]->offset + *out_bytes;
		if (!follows || (count > 0 && *out_bytes + record_bytes(entry) > REWRITE_BYTES))
			break;
		out[count++] = entry;
		*out_bytes += record_bytes(entry);
	}
	return count;
}

static uint64_t record_bytes(const struct pack_entry *entry)
{
	return PACK_RECORD_HEADER_BYTES + (uint64_t)entry->stored;
}

static int check_records(const struct pack_entry *const *entries, uint32_t count, const uint8_t *at,
	struct error *err)
{
	for (uint32_t i = 0; i < count; i++) {
		if (pack_record_check(at, entries[i], at + PACK_RECORD_HEADER_BYTES, err) != 0)
			return -1;
		at += record_bytes(entries[i]);
	}
	return 0;
}

/* Returns the index once records and table are durable; otherwise removes the new file. `writer`
 * may be NULL. */
static struct pack_index *finish(struct pack_store *store, struct pack_index *to,
	struct pack_writer *writer, int result, struct error *err)
{
	if (result == 0 && write_table(to, writer, err) == 0 &&
		pack_table_save(to, store->backend, err) == 0) {
		pack_writer_close(writer);
		return to;
	}
	if (writer != NULL) {
		pack_writer_close(writer);
		pack_store_remove_files(store, &to->file);
	}
	pack_index_free(to);
	return NULL;
}

static int write_table(const struct pack_index *to, struct pack_writer *writer, struct error *err)
{
	struct buffer table;
	buffer_init(&table, to->length);
	pack_table_encode(to, &table);
	int result = buffer_check(&table, "the table of a compacted pack", err);
	if (result == 0)
		result = pack_writer_append(writer, buffer_span(&table), err);
	buffer_release(&table);
	ASSERT(result != 0 || writer->length == to->length);
	return result != 0 ? -1 : pack_writer_sync(writer, err);
}

static struct pack_index *patch_pinned(struct pack_store *store, const struct pack *pinned,
	struct backend_file *file, const struct pack_patch *patch, struct error *err)
{
	const struct pack_index *const from = pack_cache_sealed_index(store->cache, pinned);
	if (from == NULL) {
		error_set(err, ERROR_BUSY, "The pack is not sealed yet.");
		return NULL;
	}
	struct pack_id name;
	random_bytes(name.bytes, sizeof(name.bytes));
	struct pack_index *const to = select_patched(from, patch, &name);
	if (to == NULL) {
		error_set(
			err, ERROR_CORRUPT, "The pack has other chunks than those that were sent.");
		return NULL;
	}
	struct pack_writer *const writer =
		pack_writer_open_compacted(store->backend, &from->pack, &name, err);
	const int result = writer == NULL ? -1 : copy_patched(from, file, to, patch, writer, err);
	return finish(store, to, writer, result, err);
}

/* Makes the index of the new file; NULL when the pack's chunks are not those of the patch. */
static struct pack_index *select_patched(
	const struct pack_index *from, const struct pack_patch *patch, const struct pack_id *name)
{
	uint8_t all[PACK_MAX_CHUNKS / 8];
	uint32_t patched = 0;
	memset(all, 0xff, sizeof(all));
	struct pack_index *const to = pack_table_select(from, name, all);
	const uint64_t table_bytes = to->length - records_end(to);
	for (uint32_t i = 0; i < to->count; i++) {
		const struct pack_entry *const entry = patch_entry(patch, pack_index_number(to, i));
		if (entry == NULL || !chunk_id_equal(&entry->id, &to->entries[i].id) ||
			entry->size != to->entries[i].size)
			continue;
		to->entries[i] = *entry;
		patched++;
	}
	to->length = records_end(to) + table_bytes;
	if (patched == patch->count && to->length <= UINT32_MAX)
		return to;
	pack_index_free(to);
	return NULL;
}

static uint64_t records_end(struct pack_index *index)
{
	uint64_t end = PACK_HEADER_BYTES;
	for (uint32_t i = 0; i < index->count; i++) {
		index->entries[i].offset = (uint32_t)end;
		end += record_bytes(&index->entries[i]);
	}
	return end;
}

/* NULL when the chunk is not in the patch. */
static const struct pack_entry *patch_entry(const struct pack_patch *patch, uint32_t number)
{
	const uint32_t at = pack_numbers_at(patch->numbers, patch->count, number);
	return at < patch->count && patch->numbers[at] == number ? &patch->entries[at] : NULL;
}

static int copy_patched(const struct pack_index *from, struct backend_file *file,
	const struct pack_index *to, const struct pack_patch *patch, struct pack_writer *writer,
	struct error *err)
{
	uint8_t *const bytes = memory_new(PACK_RECORD_HEADER_BYTES + PACK_STORED_MAX_BYTES);
	int result = 0;
	for (uint32_t i = 0; result == 0 && i < to->count; i++) {
		const uint32_t number = pack_index_number(to, i);
		const struct pack_entry *const entry = patch_entry(patch, number);
		struct span record = span_of(bytes, (size_t)record_bytes(&to->entries[i]));
		if (entry != NULL)
			record = span_slice(patch->bytes, entry->offset, record.len);
		else
			result = read_old(file, pack_index_find(from, number), bytes, err);
		if (result == 0)
			result = pack_writer_append(writer, record, err);
	}
	free(bytes);
	return result;
}

/* Reads the record of the entry from the old file, or gives zeros where the file ends before it.
 * `file` NULL: there is no file. After any other failure the old file must stay, because the next
 * try may succeed. */
static int read_old(
	struct backend_file *file, const struct pack_entry *entry, uint8_t *into, struct error *err)
{
	const struct iovec part = {.iov_base = into, .iov_len = (size_t)record_bytes(entry)};
	if (file != NULL && file->backend->ops->read(file, &part, 1, entry->offset, err) == 0)
		return 0;
	if (file != NULL && err->kind != ERROR_CORRUPT)
		return -1;
	memset(into, 0, part.iov_len);
	return 0;
}
