/* The pack that small uploads share. Each mark moves through three places: now (written), reported
 * (given to the open batch), committed. A failed batch cuts every pack back to its committed mark
 * and seals it there, because after a failed sync nothing that is appended can be trusted. In a far
 * place a pack is closed where it would be sealed, and sealed once it is stored (staged_pack.c). */
#include "storage/packs/pack_store_parts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

enum { SHARED_COPY_ENTRIES = 64 };

static bool shared_fits(const struct pack_store *store, const struct xorb_builder *xorb);
static int shared_begin(struct pack_store *store, struct error *err);
static void shared_end(struct pack_store *store, struct shared_pack *pack);
static int shared_sync(struct pack_store *store, struct shared_pack *pack, struct error *err);
static bool mark_equal(const struct shared_mark *a, const struct shared_mark *b);
static void shared_finish(struct pack_store *store, struct shared_pack *pack);
static void shared_map_chunks(
	struct pack_store *store, const struct pack_id *id, uint32_t from, uint32_t to);
static void shared_give_up(struct pack_store *store, bool keep_bytes);
static void shared_cut_back(struct pack_store *store, struct shared_pack *pack, bool keep_bytes);

void shared_pack_init(struct pack_store *store)
{
	lock_init(&store->shared.lock, LOCK_SHARED_PACK);
	chunk_map_init(&store->shared.map);
}

void shared_pack_release(struct pack_store *store)
{
	struct shared_packs *const shared = &store->shared;
	while (shared->first != NULL) {
		struct shared_pack *const pack = shared->first;
		shared->first = pack->next;
		pack_writer_close(pack->writer);
		free(pack);
	}
	chunk_map_release(&shared->map);
	lock_release(&shared->lock);
}

int shared_pack_append(struct pack_store *store, const struct xorb_builder *xorb,
	const struct chunk_id *hash, struct chunk_place *out_place, struct error *err)
{
	struct shared_packs *const shared = &store->shared;
	ASSERT(xorb->count >= 1);
	if (shared->open != NULL && !shared_fits(store, xorb))
		pack_store_shared_seal(store);
	if (pack_store_is_far(store) && staged_pack_check_room(store, err) != 0)
		return -1;
	if (shared->open == NULL && shared_begin(store, err) != 0)
		return -1;
	struct shared_pack *const pack = shared->open;
	if (pack_writer_append(pack->writer, buffer_span(&xorb->bytes), err) != 0)
		return -1;
	const struct pack_extension extension = pack_cache_extend(
		store->cache, &pack->writer->pack, hash, xorb->entries, xorb->count);
	ASSERT(extension.length == pack->writer->length);
	*out_place = (struct chunk_place){.pack = pack->writer->pack, .chunk = extension.first};
	pack->now.length = extension.length;
	pack->now.chunks += xorb->count;
	pack->dirty = true;
	return 0;
}

void pack_store_shared_seal(struct pack_store *store)
{
	if (store->shared.open == NULL)
		return;
	shared_end(store, store->shared.open);
	store->shared.open = NULL;
}

int pack_store_shared_sync(struct pack_store *store, struct error *err)
{
	for (struct shared_pack *pack = store->shared.first; pack != NULL; pack = pack->next) {
		if (pack->dirty && !pack_store_is_far(store) && shared_sync(store, pack, err) != 0)
			return -1;
		pack->dirty = false;
	}
	return 0;
}

struct shared_pack *shared_pack_add(
	struct pack_store *store, struct pack_writer *writer, int64_t created_ms)
{
	struct shared_pack *const pack = memory_new(sizeof(*pack));
	pack->writer = writer;
	pack->created_ms = created_ms;
	pack->next = store->shared.first;
	store->shared.first = pack;
	return pack;
}

size_t pack_store_shared_records(struct pack_store *store, struct pack_record *out, size_t capacity)
{
	size_t count = 0;
	for (struct shared_pack *pack = store->shared.first; pack != NULL && count < capacity;
		pack = pack->next) {
		if (mark_equal(&pack->now, &pack->reported))
			continue;
		ASSERT(!pack->dirty); /* invariant 1 */
		out[count++] = (struct pack_record){
			.id = pack->writer->pack,
			.state = pack->now.state,
			.length = pack->now.length,
			.chunks = pack->now.chunks,
			.created_ms = pack->created_ms,
		};
		pack->reported = pack->now;
	}
	return count;
}

void pack_store_shared_committed(struct pack_store *store)
{
	for (struct shared_pack **link = &store->shared.first; *link != NULL;) {
		struct shared_pack *const pack = *link;
		const uint32_t before = pack->committed.chunks;
		pack->committed = pack->reported;
		if (pack->committed.state == PACK_SEALED) {
			*link = pack->next;
			shared_finish(store, pack);
			continue;
		}
		if (pack->committed.chunks > before)
			shared_map_chunks(
				store, &pack->writer->pack, before, pack->committed.chunks);
		link = &pack->next;
	}
}

void pack_store_shared_abandon(struct pack_store *store)
{
	shared_give_up(store, false);
}

void pack_store_shared_doubt(struct pack_store *store)
{
	shared_give_up(store, true);
}

bool shared_pack_find(
	struct pack_store *store, const struct chunk_id *id, struct chunk_place *out_place)
{
	lock_enter(&store->shared.lock);
	const bool found = chunk_map_find(&store->shared.map, id, &out_place->chunk);
	out_place->pack = store->shared.mapped;
	lock_leave(&store->shared.lock);
	return found;
}

static bool shared_fits(const struct pack_store *store, const struct xorb_builder *xorb)
{
	const struct shared_pack *const open = store->shared.open;
	return open->now.chunks + xorb->count <= PACK_MAX_CHUNKS &&
		(open->now.chunks == 0 ||
			open->writer->length + xorb->bytes.len <= store->pack_max_bytes);
}

static int shared_begin(struct pack_store *store, struct error *err)
{
	struct pack_id id;
	random_bytes(id.bytes, sizeof(id.bytes));
	struct pack_writer *const writer = pack_writer_open_shared(store->backend, &id, err);
	if (writer == NULL)
		return -1;
	store->shared.open = shared_pack_add(store, writer, store->clock->wall_ms(store->clock));
	pack_cache_add(store->cache, &id, writer->length, pack_index_new(&id), PACK_CACHE_GROWING);
	return 0;
}

/* No more chunks are appended. */
static void shared_end(struct pack_store *store, struct shared_pack *pack)
{
	if (pack_store_is_far(store))
		pack->is_closed = true;
	else
		pack->now.state = PACK_SEALED;
}

static int shared_sync(struct pack_store *store, struct shared_pack *pack, struct error *err)
{
	const int64_t begun_us = clock_monotonic_us();
	if (pack_writer_sync(pack->writer, err) != 0)
		return -1;
	metrics_work(store->metrics, METRIC_WORK_PACK_SYNC, begun_us);
	return 0;
}

static bool mark_equal(const struct shared_mark *a, const struct shared_mark *b)
{
	return a->length == b->length && a->chunks == b->chunks && a->state == b->state;
}

/* The seal is committed: from here on it is a pack like any other. */
static void shared_finish(struct pack_store *store, struct shared_pack *pack)
{
	const struct pack_id id = pack->writer->pack;
	staged_pack_forget(store, pack);
	pack_writer_close(pack->writer);
	free(pack);
	pack_cache_set_mode(store->cache, &id, PACK_CACHE_UNSAVED);
	metrics_add(store->metrics, METRIC_PACKS_SEALED, 1);
	pack_feed_submit(store, &id, 1);
}

/* Lets others find chunks [from, to) of the open pack. */
static void shared_map_chunks(
	struct pack_store *store, const struct pack_id *id, uint32_t from, uint32_t to)
{
	struct shared_packs *const shared = &store->shared;
	struct error ignored = {0};
	struct pack *const pinned = pack_cache_pin(store->cache, id, false, &ignored);
	ASSERT(pinned != NULL);
	struct pack_entry entries[SHARED_COPY_ENTRIES];
	for (uint32_t at = from; at < to;) {
		const size_t wanted = to - at < SHARED_COPY_ENTRIES ? to - at : SHARED_COPY_ENTRIES;
		const size_t count =
			pack_cache_copy_entries(store->cache, pinned, at, entries, wanted);
		ASSERT(count == wanted);
		lock_enter(&shared->lock);
		if (!pack_id_equal(&shared->mapped, id)) {
			chunk_map_release(&shared->map);
			shared->mapped = *id;
		}
		for (size_t i = 0; i < count; i++)
			chunk_map_add(&shared->map, &entries[i].id, at + (uint32_t)i);
		lock_leave(&shared->lock);
		at += (uint32_t)count;
	}
	pack_cache_unpin(store->cache, pinned);
}

static void shared_give_up(struct pack_store *store, bool keep_bytes)
{
	store->shared.open = NULL;
	for (struct shared_pack **link = &store->shared.first; *link != NULL;) {
		struct shared_pack *const pack = *link;
		if (pack->committed.length > 0) {
			shared_cut_back(store, pack, keep_bytes);
			link = &pack->next;
			continue;
		}
		*link = pack->next;
		const struct pack_id id = pack->writer->pack;
		staged_pack_forget(store, pack);
		pack_writer_close(pack->writer);
		free(pack);
		if (keep_bytes)
			pack_cache_remove(store->cache, &id, NULL);
		else
			pack_store_drop(store, &id);
	}
}

static void shared_cut_back(struct pack_store *store, struct shared_pack *pack, bool keep_bytes)
{
	ASSERT(pack->committed.length > 0 && pack->committed.length <= pack->now.length);
	if (pack->now.length != pack->committed.length) {
		struct error err = {0};
		if (!keep_bytes && pack_writer_cut(pack->writer, pack->committed.length, &err) != 0)
			log_failure(store->log, LOG_WARNING, NULL, "pack_cut",
				&err); /* bytes after the committed length mean nothing */
		pack_cache_cut(store->cache, &pack->writer->pack, pack->committed.chunks);
	}
	pack->now = pack->committed;
	pack->reported = pack->committed;
	pack->dirty = false;
	staged_pack_cut(store, pack);
	shared_end(store, pack);
}
