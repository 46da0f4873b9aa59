/* Reading: a pack is pinned in the cache, its entries are copied, and records are read and compared
 * with their entries before a byte leaves. Adjacent raw chunks are read in one scatter read.
 * Scratch memory is taken for one call; a few of them are kept. */
#include "storage/packs/pack_store_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/packs/pack_wait.h"

enum { STORE_INDEX_BYTES = 16 * 1024 * 1024, STORE_OPEN_FILES = 128 };
static const uint64_t STORE_PACK_BYTES = UINT64_C(64) << 20;
static const uint64_t STORE_PACK_BYTES_LIMIT = UINT64_C(1) << 30;

struct pack_drop {
	struct helper_job job;
	struct pack_store *store;
	size_t count;
	struct pack_id packs[];
};

struct chunk_read {
	const struct chunk_place *place;
	struct codec_context *codec; /* NULL: one of the store's */
	struct pack_wait *wait;      /* NULL: the read may block */
	uint8_t *into;
};

static void scratch_free(struct pack_scratch *scratch);
static void pack_store_drop_run(struct helper_job *job);
static int name_chunk(const struct pack_id *pack, uint32_t chunk, struct error *err);
static int chunk_read(struct pack_store *store, const struct chunk_read *read, size_t *out_len,
	struct error *err);
static int entry_read(struct pack_store *store, const struct chunk_read *read, struct pack *pinned,
	const struct pack_entry *entry, struct error *err);
static int record_decode(struct pack_scratch *scratch, struct codec_context *codec,
	struct backend_file *file, const struct pack_entry *entry, uint8_t *into,
	struct error *err);
static int record_read(struct backend_file *file, const struct pack_entry *entry, uint8_t *stored,
	struct error *err);
static int no_such_chunk(struct error *err);
static uint32_t run_length(const struct pack_entry *entries, size_t count, size_t capacity);
static uint64_t record_end(const struct pack_entry *entry);
static int read_together(struct backend_file *file, const struct pack_entry *entries,
	uint32_t count, struct pack_read *read, struct error *err);

struct pack_store *pack_store_open(const struct pack_store_options *options, struct error *err)
{
	if (options->pack_max_bytes > STORE_PACK_BYTES_LIMIT) {
		options->backend->ops->free(options->backend);
		error_set(err, ERROR_INVALID, "Packs of %llu bytes are over the limit of 1 GiB.",
			(unsigned long long)options->pack_max_bytes);
		return NULL;
	}
	struct pack_store *const store = memory_new(sizeof(*store));
	store->backend = options->backend;
	store->chunk_index = options->chunk_index;
	store->helpers = options->helpers;
	store->md5_pool = md5_pool_new();
	store->spares = options->spares;
	store->metrics = options->metrics;
	store->log = options->log;
	store->floor = options->floor;
	store->holds = options->holds;
	store->clock = options->clock != NULL ? options->clock : clock_system();
	store->pack_max_bytes =
		options->pack_max_bytes != 0 ? options->pack_max_bytes : STORE_PACK_BYTES;
	const struct pack_cache_limits limits = {
		.index_bytes = options->index_cache_bytes != 0 ? options->index_cache_bytes
							       : STORE_INDEX_BYTES,
		.open_files = STORE_OPEN_FILES,
	};
	store->cache = pack_cache_new(store->backend, &limits);
	store->damage = pack_damage_new();
	lock_init(&store->lock, LOCK_PACK_STORE);
	shared_pack_init(store);
	return store;
}

void pack_store_set_origin(struct pack_store *store, const struct pack_origin *origin)
{
	store->backend->origin = *origin;
}

void pack_store_close(struct pack_store *store)
{
	if (store == NULL)
		return;
	shared_pack_release(store);
	while (store->idle != NULL) {
		struct pack_scratch *const scratch = store->idle;
		store->idle = scratch->next;
		scratch_free(scratch);
	}
	pack_cache_free(store->cache);
	pack_damage_free(store->damage);
	md5_pool_free(store->md5_pool);
	lock_release(&store->lock);
	store->backend->ops->free(store->backend);
	free(store);
}

struct pack_scratch *pack_store_take_scratch(struct pack_store *store)
{
	lock_enter(&store->lock);
	struct pack_scratch *scratch = store->idle;
	if (scratch != NULL) {
		store->idle = scratch->next;
		store->idle_count--;
	}
	lock_leave(&store->lock);
	if (scratch == NULL) {
		scratch = memory_new(sizeof(*scratch));
		scratch->codec = codec_context_new();
	}
	return scratch;
}

void pack_store_give_scratch(struct pack_store *store, struct pack_scratch *scratch)
{
	lock_enter(&store->lock);
	const bool keep = store->idle_count < PACK_STORE_IDLE_SCRATCHES;
	if (keep) {
		scratch->next = store->idle;
		store->idle = scratch;
		store->idle_count++;
	}
	lock_leave(&store->lock);
	if (!keep)
		scratch_free(scratch);
}

unsigned pack_store_hold(struct pack_store *store, const struct pack_id *pack)
{
	return pack_cache_hold(store->cache, pack);
}

void pack_store_unhold(struct pack_store *store, const struct pack_id *pack, unsigned turn)
{
	pack_cache_unhold(store->cache, pack, turn);
}

bool pack_store_refer(struct pack_store *store, const struct pack_id *pack)
{
	return pack_cache_refer(store->cache, pack);
}

void pack_store_refer_again(struct pack_store *store, const struct pack_id *pack)
{
	pack_cache_refer_again(store->cache, pack);
}

void pack_store_unrefer(struct pack_store *store, const struct pack_id *pack)
{
	pack_cache_unrefer(store->cache, pack);
}

bool pack_store_is_damaged(struct pack_store *store, const struct pack_run *run)
{
	return pack_damage_has(store->damage, &run->pack, run->first, run->chunks);
}

bool pack_store_knows_damage(const struct pack_store *store)
{
	return pack_damage_is_known(store->damage);
}

bool pack_store_is_checked(struct pack_store *store, const struct pack_run *run)
{
	return pack_cache_is_checked(store->cache, &run->pack, run->first, run->chunks);
}

unsigned pack_store_form(struct pack_store *store, const struct pack_id *pack)
{
	return pack_cache_form(store->cache, pack);
}

bool pack_store_is_held(struct pack_store *store, const struct pack_id *pack)
{
	return pack_cache_is_held(store->cache, pack);
}

bool pack_store_remove_files(struct pack_store *store, const struct pack_id *file)
{
	bool are_gone = true;
	for (enum pack_file_kind kind = PACK_FILE_PACK; kind <= PACK_FILE_INDEX; kind++) {
		char name[PACK_NAME_BYTES];
		pack_format_name(file, kind, name);
		struct error err = {0};
		if (store->backend->ops->remove(store->backend, name, &err) == 0)
			continue;
		log_failure(store->log, LOG_WARNING, NULL, "pack_remove", &err);
		are_gone = false;
	}
	return are_gone;
}

bool pack_store_retire_files(struct pack_store *store, const struct pack_id *file)
{
	return !backup_holds_any(store->holds) && pack_store_remove_files(store, file);
}

void pack_store_retire(struct pack_store *store, const struct pack_id *pack)
{
	struct pack_id file;
	pack_cache_remove(store->cache, pack, &file);
	pack_store_retire_files(store, &file);
	pack_damage_forget(store->damage, pack, 0, UINT32_MAX);
}

void pack_store_drop(struct pack_store *store, const struct pack_id *pack)
{
	struct pack_id file;
	pack_cache_remove(store->cache, pack, &file);
	pack_store_remove_files(store, &file);
	pack_damage_forget(store->damage, pack, 0, UINT32_MAX);
}

void pack_store_drop_later(struct pack_store *store, const struct pack_id *packs, size_t count)
{
	if (count == 0)
		return;
	struct pack_drop *const drop = memory_new(sizeof(*drop) + count * sizeof(*packs));
	drop->job.run = pack_store_drop_run;
	drop->store = store;
	drop->count = count;
	memcpy(drop->packs, packs, count * sizeof(*packs));
	helpers_submit(store->helpers, &store->drop_lane, &drop->job);
}

int pack_store_read_failed(
	struct pack_store *store, const struct pack_id *pack, uint32_t chunk, struct error *err)
{
	if (err->kind == ERROR_CORRUPT)
		metrics_add(store->metrics, METRIC_RECORDS_CORRUPT, 1);
	if (pack_damage_is(err)) {
		pack_cache_doubt(store->cache, pack);
		pack_damage_note(store->damage, pack, chunk);
	}
	return name_chunk(pack, chunk, err);
}

int pack_record_check(const uint8_t header[PACK_RECORD_HEADER_BYTES],
	const struct pack_entry *entry, const uint8_t *payload, struct error *err)
{
	if (!pack_format_record_matches(header, entry))
		return error_set(
			err, ERROR_CORRUPT, "the record header differs from the pack's index.");
	if (xxh3_64(span_of(payload, entry->stored)) != entry->checksum)
		return error_set(err, ERROR_CORRUPT, "the stored bytes have a wrong checksum.");
	return 0;
}

int pack_store_read_chunk(struct pack_store *store, const struct chunk_place *place,
	struct codec_context *codec, uint8_t *into, size_t *out_len, struct error *err)
{
	const struct chunk_read read = {.place = place, .codec = codec, .into = into};
	return chunk_read(store, &read, out_len, err);
}

int pack_store_read_chunk_soon(struct pack_store *store, const struct chunk_place *place,
	struct pack_wait *wait, uint8_t *into, size_t *out_len, struct error *err)
{
	const struct chunk_read read = {.place = place, .wait = wait, .into = into};
	return chunk_read(store, &read, out_len, err);
}

/* In a far place a bad record after good ones is left for the next read, which may read it once
 * more. */
int pack_store_read_adjacent(struct pack *pinned, const struct pack_entry *entries, uint32_t count,
	struct pack_read *read, pack_read_fn *together, struct error *err)
{
	struct backend_file *const file = pack_file(pinned);
	ASSERT(count >= 1);
	if (pack_wait_fetch(read->wait, pinned, entries[0].offset,
		    record_end(&entries[count - 1]) - entries[0].offset) != 0)
		return PACK_WAITS;
	int result = together(file, entries, count, read, err);
	if (result != 0 && err->os_errno == EIO && count > 1)
		result = together(file, entries, 1, read, err);
	if (result == 0 || (read->len > 0 && backend_is_far(file->backend)))
		return 0;
	if (read->len == 0 && (result = pack_wait_retry(read->wait, pinned, &entries[0], err)) == 0)
		result = together(file, entries, 1, read, err);
	return result;
}

int pack_store_read_run(struct pack_store *store, const struct pack_run *run,
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
	const uint32_t count = run_length(entries, found, read->capacity);
	result = found == 0 ? no_such_chunk(err) : 0;
	if (count > 0)
		result = pack_store_read_adjacent(pinned, entries, count, read, read_together, err);
	pack_wait_unpin(read->wait, store, pinned);
	return result >= 0
		? result
		: pack_store_read_failed(store, &run->pack, run->first + read->chunks, err);
}

int pack_store_chunk_entries(struct pack_store *store, const struct pack_run *run,
	struct chunk_entry *out, size_t capacity, size_t *out_count, struct error *err)
{
	ASSERT(capacity >= 1 && run->chunks >= 1);
	struct pack *const pinned = pack_cache_pin(store->cache, &run->pack, false, err);
	if (pinned == NULL)
		return pack_store_read_failed(store, &run->pack, run->first, err);
	struct pack_entry entries[PACK_RUN_CHUNKS];
	size_t wanted = run->chunks < capacity ? run->chunks : capacity;
	wanted = wanted < PACK_RUN_CHUNKS ? wanted : PACK_RUN_CHUNKS;
	const size_t found =
		pack_cache_copy_entries(store->cache, pinned, run->first, entries, wanted);
	pack_cache_unpin(store->cache, pinned);
	for (size_t i = 0; i < found; i++)
		out[i] = (struct chunk_entry){.id = entries[i].id, .size = entries[i].size};
	*out_count = found;
	if (found > 0)
		return 0;
	no_such_chunk(err); /* no damage: perhaps it was dead and is gone */
	return name_chunk(&run->pack, run->first, err);
}

int pack_store_chunk_entry(struct pack_store *store, const struct pack_id *pack, uint32_t chunk,
	struct chunk_entry *out, struct error *err)
{
	const struct pack_run run = {.pack = *pack, .first = chunk, .chunks = 1};
	size_t count;
	return pack_store_chunk_entries(store, &run, out, 1, &count, err);
}

static void scratch_free(struct pack_scratch *scratch)
{
	codec_context_free(scratch->codec);
	free(scratch);
}

static void pack_store_drop_run(struct helper_job *job)
{
	struct pack_drop *const drop = (struct pack_drop *)job;
	for (size_t i = 0; i < drop->count; i++)
		pack_store_drop(drop->store, &drop->packs[i]);
	free(drop);
}

static int name_chunk(const struct pack_id *pack, uint32_t chunk, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	return error_wrap(err, "Chunk %u of pack %s", chunk, text);
}

static int chunk_read(
	struct pack_store *store, const struct chunk_read *read, size_t *out_len, struct error *err)
{
	const struct chunk_place *const place = read->place;
	struct pack *pinned;
	struct pack_entry entry;
	int result = pack_wait_pin(read->wait, store, &place->pack, &pinned, err);
	if (result == 0) {
		result = pack_cache_copy_entries(store->cache, pinned, place->chunk, &entry, 1) == 1
			? entry_read(store, read, pinned, &entry, err)
			: no_such_chunk(err);
		pack_wait_unpin(read->wait, store, pinned);
	}
	if (result == 0)
		*out_len = entry.size;
	return result >= 0 ? result
			   : pack_store_read_failed(store, &place->pack, place->chunk, err);
}

static int entry_read(struct pack_store *store, const struct chunk_read *read, struct pack *pinned,
	const struct pack_entry *entry, struct error *err)
{
	struct backend_file *const file = pack_file(pinned);
	if (pack_wait_fetch(read->wait, pinned, entry->offset, record_end(entry) - entry->offset) !=
		0)
		return PACK_WAITS;
	struct pack_scratch *const scratch = pack_store_take_scratch(store);
	struct codec_context *const codec = read->codec != NULL ? read->codec : scratch->codec;
	int result = record_decode(scratch, codec, file, entry, read->into, err);
	if (result != 0 && (result = pack_wait_retry(read->wait, pinned, entry, err)) == 0)
		result = record_decode(scratch, codec, file, entry, read->into, err);
	pack_store_give_scratch(store, scratch);
	return result;
}

static int record_decode(struct pack_scratch *scratch, struct codec_context *codec,
	struct backend_file *file, const struct pack_entry *entry, uint8_t *into, struct error *err)
{
	if (entry->codec == CODEC_RAW)
		return record_read(file, entry, into, err);
	if (record_read(file, entry, scratch->stored, err) != 0)
		return -1;
	const enum codec number = entry->codec;
	return codec_decode(
		codec, number, span_of(scratch->stored, entry->stored), into, entry->size, err);
}

/* Reads a record's payload to `stored`, verified. */
static int record_read(struct backend_file *file, const struct pack_entry *entry, uint8_t *stored,
	struct error *err)
{
	uint8_t header[PACK_RECORD_HEADER_BYTES];
	const struct iovec parts[] = {
		{.iov_base = header, .iov_len = sizeof(header)},
		{.iov_base = stored, .iov_len = entry->stored},
	};
	if (file->backend->ops->read(file, parts, 2, entry->offset, err) != 0)
		return -1;
	return pack_record_check(header, entry, stored, err);
}

static int no_such_chunk(struct error *err)
{
	return error_set(err, ERROR_CORRUPT, "the pack has no such chunk.");
}

/* How many of the entries can be read as one run of whole raw chunks. */
static uint32_t run_length(const struct pack_entry *entries, size_t count, size_t capacity)
{
	size_t total = 0;
	uint32_t length = 0;
	while (length < count) {
		const struct pack_entry *const entry = &entries[length];
		const uint64_t expected =
			length == 0 ? entry->offset : record_end(&entries[length - 1]);
		if (entry->codec != CODEC_RAW || entry->offset != expected ||
			entry->size > capacity - total)
			break;
		total += entry->size;
		length++;
	}
	return length;
}

static uint64_t record_end(const struct pack_entry *entry)
{
	return (uint64_t)entry->offset + PACK_RECORD_HEADER_BYTES + entry->stored;
}

/* Reads with one scatter read: the record headers beside, the payloads one after the other. `read`
 * counts the chunks before a bad one. */
static int read_together(struct backend_file *file, const struct pack_entry *entries,
	uint32_t count, struct pack_read *read, struct error *err)
{
	uint8_t headers[PACK_RUN_CHUNKS][PACK_RECORD_HEADER_BYTES];
	struct iovec parts[2 * PACK_RUN_CHUNKS] = {0};
	uint8_t *at = read->into;
	ASSERT(count >= 1 && count <= PACK_RUN_CHUNKS);
	for (uint32_t i = 0; i < count; i++) {
		parts[2 * i] =
			(struct iovec){.iov_base = headers[i], .iov_len = PACK_RECORD_HEADER_BYTES};
		parts[2 * i + 1] = (struct iovec){.iov_base = at, .iov_len = entries[i].size};
		at += entries[i].size;
	}
	if (file->backend->ops->read(file, parts, 2 * (int)count, entries[0].offset, err) != 0)
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		if (pack_record_check(headers[i], &entries[i], read->into + read->len, err) != 0)
			return -1;
		read->len += entries[i].size;
		read->chunks++;
	}
	return 0;
}
