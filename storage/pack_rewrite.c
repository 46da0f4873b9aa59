#include "storage/pack_rewrite.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "storage/pack_table.h"

enum { REWRITE_BYTES = 1024 * 1024 };

int pack_rewrite_measure(struct pack_store *const store, const struct pack_id *const pack, const uint8_t *const live, uint64_t *const out_length,
	uint64_t *const out_old_length, struct error *const err)
{
	struct pack *const pinned = pack_cache_pin(store->cache, pack, false, err);
	if (pinned == NULL)
		return -1;
	const struct pack_index *const index = pack_cache_sealed_index(store->cache, pinned);
	ASSERT(index != NULL);
	*out_length = pack_table_length(index, live);
	*out_old_length = index->length;
	pack_cache_unpin(store->cache, pinned);
	return 0;
}

static uint64_t record_bytes(const struct pack_entry *const entry)
{
	return PACK_RECORD_HEADER_BYTES + (uint64_t)entry->stored;
}

static int check_records(const struct pack_entry *const *const entries, const uint32_t count, const uint8_t *at, struct error *const err)
{
	for (uint32_t i = 0; i < count; i++) {
		if (pack_record_check(at, entries[i], at + PACK_RECORD_HEADER_BYTES, err) != 0)
			return -1;
		at += record_bytes(entries[i]);
	}
	return 0;
}

/* The next records that lie on one another in the old file, as many as fit; gives how many. */
enum { REWRITE_RECORDS = 512 };
static uint32_t take_run(const struct pack_index *const from, const struct pack_index *const to, const uint32_t first,
	const struct pack_entry **const out, size_t *const out_bytes)
{
	uint32_t count = 0;
	*out_bytes = 0;
	while (count < REWRITE_RECORDS && first + count < to->count) {
		const struct pack_entry *const entry = pack_index_find(from, pack_index_number(to, first + count));
		const bool follows = count == 0 || entry->offset == out[0]->offset + *out_bytes;
		if (!follows || (count > 0 && *out_bytes + record_bytes(entry) > REWRITE_BYTES))
			break;
		out[count++] = entry;
		*out_bytes += record_bytes(entry);
	}
	return count;
}

static int copy_records(const struct pack_index *const from, struct backend_file *const file, const struct pack_index *const to,
	struct pack_writer *const writer, const struct pack_pace *const pace, struct error *const err)
{
	const struct pack_entry *run[REWRITE_RECORDS];
	uint8_t *const bytes = memory_new(REWRITE_BYTES);
	int result = 0;
	size_t size;
	for (uint32_t done = 0, count; result == 0 && done < to->count; done += count) {
		count = take_run(from, to, done, run, &size);
		const struct iovec part = { .iov_base = bytes, .iov_len = size };
		ASSERT(writer->length == to->entries[done].offset);
		if (file->backend->ops->read(file, &part, 1, run[0]->offset, err) != 0 || check_records(run, count, bytes, err) != 0 ||
		    pack_writer_append(writer, span_of(bytes, size), err) != 0)
			result = -1;
		else if (!pace->spend(pace->owner, 2 * size))
			result = error_set(err, ERROR_BUSY, "the store is closing");
	}
	free(bytes);
	return result;
}

static int write_table(const struct pack_index *const to, struct pack_writer *const writer, struct error *const err)
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

static struct pack_index *rewrite_pinned(struct pack_store *const store, const struct pack *const pinned, const uint8_t *const live,
	const struct pack_pace *const pace, struct error *const err)
{
	const struct pack_index *const from = pack_cache_sealed_index(store->cache, pinned);
	ASSERT(from != NULL);
	struct pack_id name;
	random_bytes(name.bytes, sizeof name.bytes);
	struct pack_index *const to = pack_table_select(from, &name, live);
	struct pack_writer *const writer = pack_writer_open_compacted(store->backend, &from->pack, &name, err);
	if (writer != NULL && copy_records(from, pack_file(pinned), to, writer, pace, err) == 0 && write_table(to, writer, err) == 0 &&
	    pack_table_save(to, store->backend, err) == 0) {
		pack_writer_close(writer);
		return to;
	}
	if (writer != NULL) {
		pack_writer_close(writer);
		pack_store_remove_files(store, &name);
	}
	pack_index_free(to);
	return NULL;
}

struct pack_index *pack_rewrite(struct pack_store *const store, const struct pack_id *const pack, const uint8_t *const live,
	const struct pack_pace *const pace, struct error *const err)
{
	struct pack *const pinned = pack_cache_pin(store->cache, pack, true, err);
	if (pinned == NULL)
		return NULL;
	struct pack_index *const index = rewrite_pinned(store, pinned, live, pace, err);
	pack_cache_unpin(store->cache, pinned);
	if (index == NULL) {
		char text[PACK_ID_TEXT_BYTES];
		pack_id_format(pack, text);
		error_wrap(err, "cannot compact pack %s", text);
	}
	return index;
}
