/* One table of small nodes. A node with an index or an open file is also in the list of the
 * recently used. Trimming walks that list from its old end and takes indexes and files that are
 * neither pinned nor needed. They are freed and closed after the lock is left. */
#include "storage/packs/pack_cache_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/packs/pack_table.h"

enum { CACHE_FIRST_BUCKETS = 64 };

static void pack_free(struct pack_cache *cache, struct pack *pack);
static void cache_grow(struct pack_cache *cache);
static void cache_drop_index(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage);
static void cache_count_index(struct pack_cache *cache, struct pack *pack);
static void cache_drop_file(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage);
static void cache_unlist(struct pack_cache *cache, struct pack *pack);
static void cache_trim(struct pack_cache *cache, struct cache_garbage *garbage);
static void cache_touch(struct pack_cache *cache, struct pack *pack);
static void cache_replace(struct pack_cache *cache, const struct pack_id *id,
	struct pack_index *index, unsigned forms);
static int pack_cache_compare_ids(const void *left, const void *right);
static void mark_files(
	struct pack_cache *cache, const struct pack_id *files, size_t count, bool *used);
static struct pack *cache_try_pin(struct pack_cache *cache, const struct pack_id *id,
	bool with_file, bool *out_replaced, struct error *err);
static int cache_unknown(const struct pack_id *id, struct error *err);
static int cache_load_index(
	struct pack_cache *cache, struct pack *pack, uint64_t length, struct error *err);
static int cache_open_file(struct pack_cache *cache, struct pack *pack, struct error *err);
static size_t index_run(const struct pack_index *index, uint32_t first, size_t capacity);

struct pack_cache *pack_cache_new(struct backend *backend, const struct pack_cache_limits *limits)
{
	struct pack_cache *const cache = memory_new(sizeof(*cache));
	cache->backend = backend;
	cache->limits = *limits;
	lock_init(&cache->lock, LOCK_PACK_STORE);
	cache->bucket_count = CACHE_FIRST_BUCKETS;
	cache->buckets = memory_new_array(cache->bucket_count, sizeof(struct pack *));
	return cache;
}

void pack_cache_free(struct pack_cache *cache)
{
	for (size_t i = 0; i < cache->bucket_count; i++)
		while (cache->buckets[i] != NULL) {
			struct pack *const pack = cache->buckets[i];
			cache->buckets[i] = pack->chained;
			ASSERT(pack->pins == 0); /* so replaced ones are gone too */
			pack_free(cache, pack);
		}
	lock_release(&cache->lock);
	free(cache->buckets);
	free(cache);
}

/* Ids are random, so any of their bytes can choose the bucket. */
struct pack **pack_cache_link(const struct pack_cache *cache, const struct pack_id *id)
{
	lock_assert_held(&cache->lock);
	struct pack **link =
		&cache->buckets[little_endian_get(id->bytes, 8) & (cache->bucket_count - 1)];
	while (*link != NULL && !pack_id_equal(&(*link)->id, id))
		link = &(*link)->chained;
	return link;
}

struct pack *pack_cache_find_or_add(struct pack_cache *cache, const struct pack_id *id)
{
	struct pack *const found = *pack_cache_link(cache, id);
	if (found != NULL)
		return found;
	if (cache->pack_count >= cache->bucket_count)
		cache_grow(cache);
	struct pack *const pack = memory_new(sizeof(*pack));
	pack->id = *id;
	pack->file = *id;
	*pack_cache_link(cache, id) = pack;
	cache->pack_count++;
	return pack;
}

void pack_cache_forget_if_idle(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage)
{
	if (pack->known || pack_is_held(pack) || pack->pins > 0 ||
		garbage->count == CACHE_TRIM_BATCH)
		return;
	cache_drop_index(cache, pack, garbage);
	cache_drop_file(cache, pack, garbage);
	garbage->count++;
	cache_unlist(cache, pack);
	if (!pack->replaced) {
		*pack_cache_link(cache, &pack->id) = pack->chained;
		cache->pack_count--;
	}
	free(pack->checked);
	free(pack);
}

void pack_cache_leave(struct pack_cache *cache, struct cache_garbage *garbage)
{
	cache_trim(cache, garbage);
	lock_leave(&cache->lock);
	for (size_t i = 0; i < garbage->count; i++) {
		pack_index_free(garbage->indexes[i]);
		if (garbage->files[i] != NULL)
			cache->backend->ops->close(garbage->files[i]);
	}
}

void pack_cache_add(struct pack_cache *cache, const struct pack_id *id, uint64_t length,
	struct pack_index *index, enum pack_cache_mode mode)
{
	ASSERT(index != NULL || mode == PACK_CACHE_SAVED);
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack *const pack = pack_cache_find_or_add(cache, id);
	ASSERT(!pack->known && pack->index == NULL);
	pack->known = true;
	pack->length = length;
	pack->mode = mode;
	pack->index = index;
	pack->is_checked = true;
	cache_count_index(cache, pack);
	cache_touch(cache, pack);
	pack_cache_leave(cache, &garbage);
}

void pack_cache_set_mode(
	struct pack_cache *cache, const struct pack_id *id, enum pack_cache_mode mode)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	if (pack != NULL)
		pack->mode = mode;
	pack_cache_leave(cache, &garbage);
}

enum pack_cache_mode pack_cache_mode(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const enum pack_cache_mode mode = pack != NULL ? pack->mode : PACK_CACHE_SAVED;
	lock_leave(&cache->lock);
	return mode;
}

void pack_cache_add_record(struct pack_cache *cache, const struct pack_record *record)
{
	lock_enter(&cache->lock);
	struct pack *const pack = pack_cache_find_or_add(cache, &record->id);
	ASSERT(!pack->known && pack->index == NULL);
	pack->known = true;
	pack->file = *pack_record_file(record);
	pack->length = record->length;
	pack->retiring = record->state == PACK_CONDEMNED;
	lock_leave(&cache->lock);
}

void pack_cache_remove(struct pack_cache *cache, const struct pack_id *id, struct pack_id *out_file)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	if (out_file != NULL)
		*out_file = pack != NULL ? pack->file : *id;
	if (pack != NULL) {
		pack->known = false;
		pack->mode = PACK_CACHE_SAVED;
		pack_cache_forget_if_idle(cache, pack, &garbage);
	}
	pack_cache_leave(cache, &garbage);
}

void pack_cache_replace(
	struct pack_cache *cache, const struct pack_id *id, struct pack_index *index)
{
	cache_replace(cache, id, index, 0);
}

void pack_cache_reform(struct pack_cache *cache, const struct pack_id *id, struct pack_index *index)
{
	cache_replace(cache, id, index, 1);
}

unsigned pack_cache_form(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const unsigned form = pack != NULL ? pack->form : 0;
	lock_leave(&cache->lock);
	return form;
}

bool pack_cache_knows(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const bool known = pack != NULL && pack->known;
	lock_leave(&cache->lock);
	return known;
}

size_t pack_cache_list(struct pack_cache *cache, struct pack_id **out_packs)
{
	lock_enter(&cache->lock);
	*out_packs = memory_new_array(cache->pack_count + 1, sizeof(**out_packs));
	size_t count = 0;
	for (size_t i = 0; i < cache->bucket_count; i++)
		for (const struct pack *pack = cache->buckets[i]; pack != NULL;
			pack = pack->chained)
			if (pack->known)
				(*out_packs)[count++] = pack->id;
	lock_leave(&cache->lock);
	return count;
}

void pack_cache_leave_out(struct pack_cache *cache, struct pack_id *files, size_t *count)
{
	bool *used = memory_new_array(*count + 1, sizeof(*used));
	size_t left = 0;
	qsort(files, *count, sizeof(*files), pack_cache_compare_ids);
	mark_files(cache, files, *count, used);
	for (size_t i = 0; i < *count; i++)
		if (!used[i])
			files[left++] = files[i];
	*count = left;
	free(used);
}

struct pack *pack_cache_pin(
	struct pack_cache *cache, const struct pack_id *id, bool with_file, struct error *err)
{
	bool replaced = true;
	struct pack *pack = NULL;
	while (pack == NULL && replaced)
		pack = cache_try_pin(cache, id, with_file, &replaced, err);
	return pack;
}

struct pack *pack_cache_pin_near(struct pack_cache *cache, const struct pack_id *id, bool with_file)
{
	lock_enter(&cache->lock);
	struct pack *pack = *pack_cache_link(cache, id);
	if (pack != NULL &&
		(!pack->known || pack->index == NULL || (with_file && pack->opened == NULL)))
		pack = NULL;
	if (pack != NULL) {
		pack->pins++;
		cache_touch(cache, pack);
	}
	lock_leave(&cache->lock);
	return pack;
}

const struct pack_id *pack_cache_id(const struct pack *pack)
{
	return &pack->id;
}

void pack_cache_unpin(struct pack_cache *cache, struct pack *pack)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	ASSERT(pack->pins > 0);
	pack->pins--;
	pack_cache_forget_if_idle(cache, pack, &garbage);
	pack_cache_leave(cache, &garbage);
}

struct backend_file *pack_file(const struct pack *pack)
{
	ASSERT(pack->opened != NULL);
	return pack->opened;
}

size_t pack_cache_copy_entries(struct pack_cache *cache, const struct pack *pack, uint32_t first,
	struct pack_entry *out, size_t capacity)
{
	lock_enter(&cache->lock);
	ASSERT(pack->pins > 0 && pack->index != NULL);
	const size_t copied = index_run(pack->index, first, capacity);
	if (copied > 0)
		memcpy(out, pack_index_find(pack->index, first), copied * sizeof(*out));
	lock_leave(&cache->lock);
	return copied;
}

const struct pack_index *pack_cache_sealed_index(struct pack_cache *cache, const struct pack *pack)
{
	lock_enter(&cache->lock);
	const struct pack_index *const index =
		pack->mode != PACK_CACHE_GROWING ? pack->index : NULL;
	lock_leave(&cache->lock);
	return index;
}

struct pack_extension pack_cache_extend(struct pack_cache *cache, const struct pack_id *id,
	const struct chunk_id *xorb, const struct pack_entry *entries, uint32_t count)
{
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	ASSERT(pack != NULL && pack->known && pack->mode == PACK_CACHE_GROWING);
	struct pack_extension extension = {.first = pack->index->count};
	pack_index_add_xorb(pack->index, xorb, entries, count);
	pack->length = pack->index->length;
	extension.length = pack->length;
	cache_count_index(cache, pack);
	lock_leave(&cache->lock);
	return extension;
}

void pack_cache_cut(struct pack_cache *cache, const struct pack_id *id, uint32_t chunks)
{
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	ASSERT(pack != NULL && pack->known && pack->mode == PACK_CACHE_GROWING);
	pack_index_cut(pack->index, chunks);
	pack->length = pack->index->length;
	lock_leave(&cache->lock);
}

size_t pack_cache_index_bytes(struct pack_cache *cache)
{
	lock_enter(&cache->lock);
	const size_t bytes = cache->index_bytes;
	lock_leave(&cache->lock);
	return bytes;
}

unsigned pack_cache_open_files(struct pack_cache *cache)
{
	lock_enter(&cache->lock);
	const unsigned files = cache->open_files;
	lock_leave(&cache->lock);
	return files;
}

static void pack_free(struct pack_cache *cache, struct pack *pack)
{
	pack_index_free(pack->index);
	if (pack->opened != NULL)
		cache->backend->ops->close(pack->opened);
	free(pack->checked);
	free(pack);
}

static void cache_grow(struct pack_cache *cache)
{
	struct pack **const old = cache->buckets;
	const size_t old_count = cache->bucket_count;
	cache->bucket_count = 2 * old_count;
	cache->buckets = memory_new_array(cache->bucket_count, sizeof(*cache->buckets));
	for (size_t i = 0; i < old_count; i++)
		while (old[i] != NULL) {
			struct pack *const pack = old[i];
			old[i] = pack->chained;
			pack->chained = NULL;
			*pack_cache_link(cache, &pack->id) = pack;
		}
	free(old);
}

static void cache_drop_index(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage)
{
	ASSERT(garbage->count < CACHE_TRIM_BATCH);
	garbage->indexes[garbage->count] = pack->index;
	pack->index = NULL;
	cache_count_index(cache, pack);
}

static void cache_count_index(struct pack_cache *cache, struct pack *pack)
{
	ASSERT(cache->index_bytes >= pack->index_bytes);
	cache->index_bytes -= pack->index_bytes;
	pack->index_bytes = pack->index != NULL ? pack_index_memory(pack->index) : 0;
	cache->index_bytes += pack->index_bytes;
}

static void cache_drop_file(
	struct pack_cache *cache, struct pack *pack, struct cache_garbage *garbage)
{
	ASSERT(garbage->count < CACHE_TRIM_BATCH);
	garbage->files[garbage->count] = pack->opened;
	cache->open_files -= pack->opened != NULL;
	pack->opened = NULL;
}

static void cache_unlist(struct pack_cache *cache, struct pack *pack)
{
	if (!pack->listed)
		return;
	*(pack->newer != NULL ? &pack->newer->older : &cache->newest) = pack->older;
	*(pack->older != NULL ? &pack->older->newer : &cache->oldest) = pack->newer;
	pack->newer = NULL;
	pack->older = NULL;
	pack->listed = false;
}

static void cache_trim(struct pack_cache *cache, struct cache_garbage *garbage)
{
	for (struct pack *pack = cache->oldest, *next;
		pack != NULL && garbage->count < CACHE_TRIM_BATCH; pack = next) {
		next = pack->newer;
		const bool drop_index = cache->index_bytes > cache->limits.index_bytes &&
			pack->index != NULL && pack->mode == PACK_CACHE_SAVED;
		const bool drop_file =
			cache->open_files > cache->limits.open_files && pack->opened != NULL;
		if (cache->index_bytes <= cache->limits.index_bytes &&
			cache->open_files <= cache->limits.open_files)
			break;
		if (pack->pins > 0 || (!drop_index && !drop_file))
			continue;
		if (drop_index)
			cache_drop_index(cache, pack, garbage);
		if (drop_file)
			cache_drop_file(cache, pack, garbage);
		garbage->count++;
		if (pack->index == NULL && pack->opened == NULL)
			cache_unlist(cache, pack);
	}
}

static void cache_touch(struct pack_cache *cache, struct pack *pack)
{
	cache_unlist(cache, pack);
	if (pack->index == NULL && pack->opened == NULL)
		return;
	ASSERT(!pack->listed);
	pack->older = cache->newest;
	*(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = pack;
	cache->newest = pack;
	pack->listed = true;
}

static void cache_replace(struct pack_cache *cache, const struct pack_id *id,
	struct pack_index *index, unsigned forms)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack **const link = pack_cache_link(cache, id);
	struct pack *const old = *link;
	ASSERT(old != NULL && old->known && old->mode == PACK_CACHE_SAVED);
	struct pack *const pack = memory_new(sizeof(*pack));
	*pack = (struct pack){.chained = old->chained,
		.id = *id,
		.file = index->file,
		.length = index->length,
		.references = old->references,
		.reads = {old->reads[0], old->reads[1]},
		.turn = old->turn,
		.form = old->form + forms,
		.known = true,
		.retiring = old->retiring,
		/* a mended pack has records that were copied unread */
		.is_checked = forms == 0,
		.index = index};
	*link = pack;
	cache_count_index(cache, pack);
	cache_touch(cache, pack);
	old->known = false;
	old->replaced = true;
	old->references = old->reads[0] = old->reads[1] = 0;
	pack_cache_forget_if_idle(cache, old, &garbage);
	pack_cache_leave(cache, &garbage);
}

static int pack_cache_compare_ids(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct pack_id));
}

static void mark_files(
	struct pack_cache *cache, const struct pack_id *files, size_t count, bool *used)
{
	lock_enter(&cache->lock);
	for (size_t i = 0; i < cache->bucket_count; i++)
		for (const struct pack *pack = cache->buckets[i]; pack != NULL;
			pack = pack->chained) {
			const struct pack_id *found = bsearch(
				&pack->file, files, count, sizeof(*files), pack_cache_compare_ids);
			if (found != NULL && pack->known)
				used[found - files] = true;
		}
	lock_leave(&cache->lock);
}

/* Pins the present node. NULL with the error set; *out_replaced tells that another node has
 * meanwhile taken its place, and the files with it. */
static struct pack *cache_try_pin(struct pack_cache *cache, const struct pack_id *id,
	bool with_file, bool *out_replaced, struct error *err)
{
	*out_replaced = false;
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	if (pack == NULL || !pack->known) {
		lock_leave(&cache->lock);
		cache_unknown(id, err);
		return NULL;
	}
	pack->pins++;
	const uint64_t length = pack->length;
	const bool lacks_index = pack->index == NULL;
	const bool lacks_file = with_file && pack->opened == NULL;
	cache_touch(cache, pack);
	lock_leave(&cache->lock);
	if ((!lacks_index || cache_load_index(cache, pack, length, err) == 0) &&
		(!lacks_file || cache_open_file(cache, pack, err) == 0))
		return pack;
	if (err->kind == ERROR_NOT_FOUND)
		err->kind = ERROR_CORRUPT; /* the catalog names it, so it should be there */
	lock_enter(&cache->lock);
	*out_replaced = pack->replaced;
	lock_leave(&cache->lock);
	pack_cache_unpin(cache, pack);
	return NULL;
}

static int cache_unknown(const struct pack_id *id, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(id, text);
	return error_set(err, ERROR_CORRUPT, "The pack %s is not in the store.", text);
}

static int cache_load_index(
	struct pack_cache *cache, struct pack *pack, uint64_t length, struct error *err)
{
	bool walked = false;
	struct pack_index *index = pack_id_equal(&pack->id, &pack->file)
		? pack_index_load(cache->backend, &pack->id, length, &walked, err)
		: pack_table_load(cache->backend, &pack->id, &pack->file, length, err);
	if (index == NULL)
		return -1;
	struct error ignored = {0}; /* without the file the pack is walked again next time */
	if (walked && !cache->backend->reads_only)
		pack_index_save(index, cache->backend, &ignored);
	lock_enter(&cache->lock);
	if (pack->index == NULL) {
		pack->index = index;
		index = NULL;
		cache_count_index(cache, pack);
		cache_touch(cache, pack);
	}
	lock_leave(&cache->lock);
	pack_index_free(index); /* another thread was faster */
	return 0;
}

static int cache_open_file(struct pack_cache *cache, struct pack *pack, struct error *err)
{
	char name[PACK_NAME_BYTES];
	pack_format_name(&pack->file, PACK_FILE_PACK, name);
	struct backend_file *file;
	if (cache->backend->ops->open(cache->backend, name, &file, err) != 0)
		return -1;
	lock_enter(&cache->lock);
	if (pack->opened == NULL) {
		pack->opened = file;
		file = NULL;
		cache->open_files++;
		cache_touch(cache, pack);
	}
	lock_leave(&cache->lock);
	if (file != NULL)
		cache->backend->ops->close(file);
	return 0;
}

/* How many chunks from `first` on have successive numbers, up to `capacity`. They are adjacent in
 * the list too. */
static size_t index_run(const struct pack_index *index, uint32_t first, size_t capacity)
{
	const struct pack_entry *const entry = pack_index_find(index, first);
	if (entry == NULL)
		return 0;
	const size_t at = (size_t)(entry - index->entries);
	const size_t rest = index->count - at < capacity ? index->count - at : capacity;
	size_t run = 1;
	while (run < rest && (index->numbers == NULL || index->numbers[at + run] == first + run))
		run++;
	return run < rest ? run : rest;
}
