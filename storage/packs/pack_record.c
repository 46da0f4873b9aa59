/* A run of records that clients see as they are stored is read in one piece. A record with a codec
 * of our own is decoded alone, and gets the header of a raw record. Every record is compared with
 * its entry before it is counted. */
#include "storage/packs/pack_record.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/packs/pack_wait.h"

enum { CHECK_BYTES = 1024 * 1024 };

static uint32_t plain_run(
	const struct pack_entry *entries, size_t count, bool as_stored, size_t capacity);
static uint32_t record_bytes(const struct pack_entry *entry);
static int read_together(struct backend_file *file, const struct pack_entry *entries,
	uint32_t count, struct pack_read *read, struct error *err);
static int read_private(struct pack_store *store, struct pack *pinned,
	const struct pack_entry *entry, struct pack_read *read, struct error *err);
static int read_decoded(struct pack_store *store, struct backend_file *file,
	const struct pack_entry *entry, uint8_t *into, struct error *err);

bool pack_record_is_plain(const struct pack_entry *entry, bool as_stored)
{
	return as_stored || !codec_private(entry->codec);
}

uint32_t pack_record_shown(const struct pack_entry *entry, bool as_stored)
{
	return PACK_RECORD_HEADER_BYTES +
		(pack_record_is_plain(entry, as_stored) ? entry->stored : entry->size);
}

int pack_store_read_records(struct pack_store *store, const struct pack_run *run, bool as_stored,
	struct pack_read *read, struct error *err)
{
	struct pack *pinned;
	read->chunks = 0;
	read->len = 0;
	int result = pack_wait_pin(read->wait, store, &run->pack, &pinned, err);
	if (result != 0)
		return result == PACK_WAITS
			? PACK_WAITS
			: pack_store_read_failed(store, &run->pack, run->first, err);
	struct pack_entry entries[PACK_RUN_CHUNKS];
	const size_t wanted = run->chunks < PACK_RUN_CHUNKS ? run->chunks : PACK_RUN_CHUNKS;
	const size_t found =
		pack_cache_copy_entries(store->cache, pinned, run->first, entries, wanted);
	const uint32_t plain = plain_run(entries, found, as_stored, read->capacity);
	if (found == 0)
		result = error_set(err, ERROR_CORRUPT, "the pack has no such chunk.");
	else if (plain > 0)
		result = pack_store_read_adjacent(pinned, entries, plain, read, read_together, err);
	else if (!pack_record_is_plain(&entries[0], as_stored) &&
		pack_record_shown(&entries[0], as_stored) <= read->capacity)
		result = read_private(store, pinned, &entries[0], read, err);
	pack_wait_unpin(read->wait, store, pinned);
	return result >= 0
		? result
		: pack_store_read_failed(store, &run->pack, run->first + read->chunks, err);
}

int pack_store_check_into(struct pack_store *store, const struct pack_run *run, uint8_t *bytes,
	size_t capacity, struct error *err)
{
	ASSERT(capacity >= PACK_RECORD_MAX_BYTES);
	struct pack_run rest = *run;
	struct pack_read read = {.into = bytes, .capacity = capacity};
	int result = 0;
	while (result == 0 && rest.chunks > 0) {
		result = pack_store_read_records(store, &rest, true, &read, err);
		if (read.chunks > 0)
			pack_cache_set_checked(store->cache, &rest.pack, rest.first, read.chunks);
		rest.first += read.chunks;
		rest.chunks -= read.chunks;
	}
	if (result == 0)
		pack_damage_forget(store->damage, &run->pack, run->first, run->chunks);
	return result;
}

int pack_store_check_records(
	struct pack_store *store, const struct pack_run *run, struct error *err)
{
	uint8_t *const bytes = memory_new(CHECK_BYTES);
	const int result = pack_store_check_into(store, run, bytes, CHECK_BYTES, err);
	free(bytes);
	return result;
}

int pack_store_prove_records(
	struct pack_store *store, const struct pack_run *run, struct error *err)
{
	return pack_store_is_checked(store, run) && !pack_store_is_damaged(store, run)
		? 0
		: pack_store_check_records(store, run, err);
}

int pack_store_check_damaged(
	struct pack_store *store, const struct pack_run *run, struct error *err)
{
	for (uint32_t i = 0; i < run->chunks && pack_store_is_damaged(store, run); i++) {
		const struct pack_run one = {
			.pack = run->pack, .first = run->first + i, .chunks = 1};
		if (!pack_store_is_damaged(store, &one) ||
			pack_store_check_records(store, &one, err) == 0)
			continue;
		return !pack_damage_is(err)
			? -1
			: error_set(err, ERROR_CONTENT_DAMAGED,
				  "Stored bytes are damaged. Upload the same bytes again, under any key:"
				  " this repairs every object that uses them.");
	}
	return 0;
}

/* How many of the entries are adjacent in the pack and shown as stored, within `capacity` bytes. */
static uint32_t plain_run(
	const struct pack_entry *entries, size_t count, bool as_stored, size_t capacity)
{
	size_t total = 0;
	uint32_t run = 0;
	while (run < count) {
		const struct pack_entry *const entry = &entries[run];
		if (!pack_record_is_plain(entry, as_stored) ||
			entry->offset != entries[0].offset + total ||
			record_bytes(entry) > capacity - total)
			break;
		total += record_bytes(entry);
		run++;
	}
	return run;
}

static uint32_t record_bytes(const struct pack_entry *entry)
{
	return PACK_RECORD_HEADER_BYTES + entry->stored;
}

/* `read` counts the records before a bad one. */
static int read_together(struct backend_file *file, const struct pack_entry *entries,
	uint32_t count, struct pack_read *read, struct error *err)
{
	size_t total = 0;
	for (uint32_t i = 0; i < count; i++)
		total += record_bytes(&entries[i]);
	ASSERT(count >= 1 && total <= read->capacity);
	const struct iovec part = {.iov_base = read->into, .iov_len = total};
	if (file->backend->ops->read(file, &part, 1, entries[0].offset, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *const record = read->into + read->len;
		if (pack_record_check(
			    record, &entries[i], record + PACK_RECORD_HEADER_BYTES, err) != 0)
			return -1;
		read->len += record_bytes(&entries[i]);
		read->chunks++;
	}
	return 0;
}

static int read_private(struct pack_store *store, struct pack *pinned,
	const struct pack_entry *entry, struct pack_read *read, struct error *err)
{
	struct backend_file *const file = pack_file(pinned);
	if (pack_wait_fetch(read->wait, pinned, entry->offset, record_bytes(entry)) != 0)
		return PACK_WAITS;
	int result = read_decoded(store, file, entry, read->into, err);
	if (result != 0 && (result = pack_wait_retry(read->wait, pinned, entry, err)) == 0)
		result = read_decoded(store, file, entry, read->into, err);
	read->chunks = result == 0;
	read->len = result == 0 ? pack_record_shown(entry, false) : 0;
	return result;
}

static int read_decoded(struct pack_store *store, struct backend_file *file,
	const struct pack_entry *entry, uint8_t *into, struct error *err)
{
	struct pack_scratch *const scratch = pack_store_take_scratch(store);
	uint8_t header[PACK_RECORD_HEADER_BYTES];
	const struct iovec parts[] = {
		{.iov_base = header, .iov_len = sizeof(header)},
		{.iov_base = scratch->stored, .iov_len = entry->stored},
	};
	int result = file->backend->ops->read(file, parts, 2, entry->offset, err);
	if (result == 0)
		result = pack_record_check(header, entry, scratch->stored, err);
	if (result == 0)
		result = codec_decode(scratch->codec, (enum codec)entry->codec,
			span_of(scratch->stored, entry->stored), into + PACK_RECORD_HEADER_BYTES,
			entry->size, err);
	pack_store_give_scratch(store, scratch);
	const struct pack_entry shown = {
		.codec = CODEC_RAW, .stored = entry->size, .size = entry->size};
	pack_format_put_record_header(&shown, into);
	return result;
}
