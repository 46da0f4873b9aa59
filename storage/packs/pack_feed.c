/* Sealed packs on their way into the chunk index. This is derived data: a failure is logged and
 * only costs space. */
#include "storage/packs/pack_store_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FEED_ROWS = 1024 };

struct pack_feed {
	struct helper_job job;
	struct pack_store *store;
	size_t count;
	struct pack_id packs[];
};

static int feed_pinned(struct pack_store *store, const struct pack *pinned, struct error *err);
static int feed_rows(
	struct chunk_index *chunk_index, const struct pack_index *index, struct error *err);
static int feed_flush(struct chunk_index *chunk_index, const struct chunk_index_row *rows,
	size_t *count, struct error *err);
static void pack_feed_run(struct helper_job *job);
static void feed_save(struct pack_store *store, const struct pack_id *pack);
static int reindex_one(struct pack_store *store, const struct pack_id *id, struct error *err);

int pack_feed_one(struct pack_store *store, const struct pack_id *pack, struct error *err)
{
	struct pack *const pinned = pack_cache_pin(store->cache, pack, false, err);
	if (pinned == NULL)
		return -1;
	int result = feed_pinned(store, pinned, err);
	pack_cache_unpin(store->cache, pinned);
	return result;
}

void pack_feed_submit(struct pack_store *store, const struct pack_id *packs, size_t count)
{
	if (count == 0)
		return;
	struct pack_feed *const feed = memory_new(sizeof(*feed) + count * sizeof(*packs));
	feed->job.run = pack_feed_run;
	feed->store = store;
	feed->count = count;
	memcpy(feed->packs, packs, count * sizeof(*packs));
	helpers_submit(store->helpers, &store->feed_lane, &feed->job);
}

int pack_store_reindex(struct pack_store *store, struct error *err)
{
	struct pack_id *packs;
	const size_t count = pack_cache_list(store->cache, &packs);
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = reindex_one(store, &packs[i], err);
	free(packs);
	return result;
}

static int feed_pinned(struct pack_store *store, const struct pack *pinned, struct error *err)
{
	const struct pack_index *index = pack_cache_sealed_index(store->cache, pinned);
	return index == NULL || store->chunk_index == NULL
		? 0
		: feed_rows(store->chunk_index, index, err);
}

/* Adds rows for sampled chunks, and for the first chunk of each xorb, which begins an object. */
static int feed_rows(
	struct chunk_index *chunk_index, const struct pack_index *index, struct error *err)
{
	struct chunk_index_row *const rows = memory_new_array(FEED_ROWS, sizeof(*rows));
	size_t count = 0;
	int result = 0;
	uint32_t xorb = 0;
	for (uint32_t i = 0; i < index->count && result == 0; i++) {
		const uint32_t number = pack_index_number(index, i);
		while (xorb < index->xorb_count && index->xorbs[xorb].first < number)
			xorb++;
		const bool is_first =
			xorb < index->xorb_count && index->xorbs[xorb].first == number;
		if (!is_first && !chunk_index_sampled(&index->entries[i].id))
			continue;
		rows[count++] = (struct chunk_index_row){.id = index->entries[i].id,
			.place = {.pack = index->pack, .chunk = number}};
		if (count == FEED_ROWS)
			result = feed_flush(chunk_index, rows, &count, err);
	}
	if (result == 0)
		result = feed_flush(chunk_index, rows, &count, err);
	free(rows);
	return result;
}

static int feed_flush(struct chunk_index *chunk_index, const struct chunk_index_row *rows,
	size_t *count, struct error *err)
{
	ASSERT(*count <= FEED_ROWS);
	const size_t full = *count;
	*count = 0;
	return full == 0 ? 0 : chunk_index_add(chunk_index, rows, full, err);
}

static void pack_feed_run(struct helper_job *job)
{
	struct pack_feed *const feed = (struct pack_feed *)job;
	for (size_t i = 0; i < feed->count; i++) {
		struct error err = {0};
		if (pack_cache_mode(feed->store->cache, &feed->packs[i]) == PACK_CACHE_UNSAVED)
			feed_save(feed->store, &feed->packs[i]);
		if (pack_cache_knows(feed->store->cache, &feed->packs[i]) &&
			pack_feed_one(feed->store, &feed->packs[i], &err) != 0)
			log_failure(feed->store->log, LOG_WARNING, NULL, "chunk_index_add", &err);
	}
	free(feed);
}

static void feed_save(struct pack_store *store, const struct pack_id *pack)
{
	struct error err = {0};
	struct pack *const pinned = pack_cache_pin(store->cache, pack, false, &err);
	const struct pack_index *const index =
		pinned != NULL ? pack_cache_sealed_index(store->cache, pinned) : NULL;
	if (index != NULL && pack_index_save(index, store->backend, &err) != 0)
		log_failure(store->log, LOG_WARNING, NULL, "pack_index_save",
			&err); /* it is made again when it is needed */
	if (pinned != NULL)
		pack_cache_unpin(store->cache, pinned);
	pack_cache_set_mode(store->cache, pack, PACK_CACHE_SAVED);
}

/* A pack that cannot be read does not keep the others out. */
static int reindex_one(struct pack_store *store, const struct pack_id *id, struct error *err)
{
	struct error damage = {0};
	struct pack *pinned = pack_cache_pin(store->cache, id, false, &damage);
	if (pinned == NULL) {
		log_failure(store->log, LOG_WARNING, NULL, "pack_reindex", &damage);
		return 0;
	}
	int result = feed_pinned(store, pinned, err);
	pack_cache_unpin(store->cache, pinned);
	return result == 0 ? 0 : error_wrap(err, "The chunk index cannot be made again");
}
