/* A chunk is looked for in three places: the indexes of up to DEDUP_SOURCES packs that earlier hits
 * loaded, the open shared pack, and the chunk index. The last costs a query and knows only a sample
 * of the chunks, so it is asked where a series of repeats may begin. Repeats mostly continue in the
 * order of the pack, so the chunk behind the last hit is compared first. A caller must not be
 * blocked, so in a far place a hit whose index is not in memory is given up, once for each pack. */
#include "storage/ingest/dedup.h"

#include <stdlib.h>

#include "base/memory.h"

static void source_release(struct dedup *dedup, struct dedup_source *source);
static bool dedup_search(
	struct dedup *dedup, const struct chunk_id *id, bool is_first, struct chunk_place *out);
static bool dedup_find_loaded(
	struct dedup *dedup, const struct chunk_id *id, struct chunk_place *out);
static bool source_has(
	const struct dedup_source *source, uint32_t chunk, const struct chunk_id *id);
static bool dedup_found(
	struct dedup *dedup, size_t source, uint32_t chunk, struct chunk_place *out);
static bool dedup_find_shared(
	struct dedup *dedup, const struct chunk_id *id, struct chunk_place *out);
static bool dedup_refer(struct dedup *dedup, const struct pack_id *pack);
static bool dedup_follow(struct dedup *dedup, const struct chunk_place *place,
	const struct chunk_id *id, struct chunk_place *out);
static bool dedup_enter(struct dedup *dedup, struct pack *pinned, uint32_t chunk,
	const struct chunk_id *id, struct chunk_place *out);
static void dedup_miss(struct dedup *dedup, const struct chunk_place *place);
static void dedup_catch_up(struct dedup *dedup);
static size_t dedup_load(struct dedup *dedup, struct pack *pinned, const struct pack_index *index);

void dedup_init(struct dedup *dedup, struct pack_store *store)
{
	*dedup = (struct dedup){.store = store};
}

void dedup_release(struct dedup *dedup, bool keeps_references)
{
	for (size_t i = 0; i < dedup->source_count; i++)
		source_release(dedup, &dedup->sources[i]);
	for (size_t i = 0; i < dedup->referred_count && !keeps_references; i++)
		pack_cache_unrefer(dedup->store->cache, &dedup->referred[i]);
	free(dedup->referred);
	dedup_init(dedup, dedup->store);
}

enum dedup_found dedup_find(
	struct dedup *dedup, const struct chunk_id *id, bool is_first, struct chunk_place *out)
{
	if (!dedup_search(dedup, id, is_first, out))
		return DEDUP_UNKNOWN;
	return pack_damage_has(dedup->store->damage, &out->pack, out->chunk, 1) ? DEDUP_DAMAGED
										: DEDUP_FOUND;
}

static void source_release(struct dedup *dedup, struct dedup_source *source)
{
	pack_cache_unpin(dedup->store->cache, source->pinned);
	chunk_map_release(&source->map);
}

static bool dedup_search(
	struct dedup *dedup, const struct chunk_id *id, bool is_first, struct chunk_place *out)
{
	if (dedup->is_left && !dedup->lacks_index)
		dedup_catch_up(dedup);
	const bool is_wanted = is_first || dedup->at_end || chunk_index_sampled(id);
	dedup->at_end = false;
	if (dedup_find_loaded(dedup, id, out) || dedup_find_shared(dedup, id, out))
		return true;
	struct chunk_index *const chunk_index = dedup->store->chunk_index;
	struct chunk_place place;
	if (chunk_index == NULL || !is_wanted)
		return false;
	return chunk_index_find(chunk_index, id, &place) && dedup_follow(dedup, &place, id, out);
}

static bool dedup_find_loaded(
	struct dedup *dedup, const struct chunk_id *id, struct chunk_place *out)
{
	if (dedup->source_count > 0 &&
		source_has(&dedup->sources[dedup->last], dedup->expected, id))
		return dedup_found(dedup, dedup->last, dedup->expected, out);
	for (size_t i = 0; i < dedup->source_count; i++) {
		uint32_t chunk;
		if (chunk_map_find(&dedup->sources[i].map, id, &chunk) &&
			source_has(&dedup->sources[i], chunk, id))
			return dedup_found(dedup, i, chunk, out);
	}
	return false;
}

static bool source_has(const struct dedup_source *source, uint32_t chunk, const struct chunk_id *id)
{
	const struct pack_entry *const entry = pack_index_find(source->index, chunk);
	return entry != NULL && chunk_id_equal(&entry->id, id);
}

static bool dedup_found(struct dedup *dedup, size_t source, uint32_t chunk, struct chunk_place *out)
{
	ASSERT(source < dedup->source_count);
	dedup->last = source;
	dedup->expected = chunk + 1;
	dedup->at_end = pack_index_find(dedup->sources[source].index, chunk + 1) == NULL;
	*out = (struct chunk_place){.pack = dedup->sources[source].index->pack, .chunk = chunk};
	return true;
}

/* Finds a chunk of the open shared pack, which is not in the chunk index. */
static bool dedup_find_shared(
	struct dedup *dedup, const struct chunk_id *id, struct chunk_place *out)
{
	struct chunk_place place;
	struct error ignored = {0};
	if (!shared_pack_find(dedup->store, id, &place) || !dedup_refer(dedup, &place.pack))
		return false;
	struct chunk_entry entry;
	if (pack_store_chunk_entry(dedup->store, &place.pack, place.chunk, &entry, &ignored) != 0 ||
		!chunk_id_equal(&entry.id, id))
		return false;
	*out = place;
	return true;
}

static bool dedup_refer(struct dedup *dedup, const struct pack_id *pack)
{
	const size_t count = dedup->referred_count;
	if (count > 0 && pack_id_equal(&dedup->referred[count - 1], pack))
		return true;
	if (!pack_cache_refer(dedup->store->cache, pack))
		return false;
	dedup->referred = memory_grow(dedup->referred, count + 1, sizeof(*dedup->referred));
	dedup->referred[dedup->referred_count++] = *pack;
	return true;
}

/* Follows a place of the chunk index. It may be stale, so the pack must be known and not retiring,
 * and its index must have the id there. */
static bool dedup_follow(struct dedup *dedup, const struct chunk_place *place,
	const struct chunk_id *id, struct chunk_place *out)
{
	struct error ignored = {0}; /* to find nothing is always right */
	if (!dedup_refer(dedup, &place->pack))
		return false;
	const bool is_far = pack_store_is_far(dedup->store);
	struct pack *const pinned = is_far
		? pack_cache_pin_near(dedup->store->cache, &place->pack, false)
		: pack_cache_pin(dedup->store->cache, &place->pack, false, &ignored);
	if (pinned == NULL && is_far)
		dedup_miss(dedup, place);
	return pinned != NULL && dedup_enter(dedup, pinned, place->chunk, id, out);
}

/* Loads the index of a pack, which is unpinned if the chunk is not there. `id` NULL: any chunk. */
static bool dedup_enter(struct dedup *dedup, struct pack *pinned, uint32_t chunk,
	const struct chunk_id *id, struct chunk_place *out)
{
	const struct pack_index *const index = pack_cache_sealed_index(dedup->store->cache, pinned);
	const struct pack_entry *const entry = index != NULL ? pack_index_find(index, chunk) : NULL;
	if (entry == NULL || (id != NULL && !chunk_id_equal(&entry->id, id))) {
		pack_cache_unpin(dedup->store->cache, pinned);
		return false;
	}
	return dedup_found(dedup, dedup_load(dedup, pinned, index), chunk, out);
}

static void dedup_miss(struct dedup *dedup, const struct chunk_place *place)
{
	dedup->is_left = dedup->lacks_index = !pack_id_equal(&dedup->far.pack, &place->pack);
	dedup->far = *place;
}

/* Follows the hit that was given up, if its index is in memory by now. */
static void dedup_catch_up(struct dedup *dedup)
{
	struct chunk_place ignored;
	struct pack *const pinned =
		pack_cache_pin_near(dedup->store->cache, &dedup->far.pack, false);
	dedup->is_left = false;
	if (pinned != NULL)
		(void)dedup_enter(dedup, pinned, dedup->far.chunk, NULL, &ignored);
}

/* Loads the index of a pinned pack, in place of the one loaded longest ago. */
static size_t dedup_load(struct dedup *dedup, struct pack *pinned, const struct pack_index *index)
{
	size_t at = dedup->source_count;
	if (at < DEDUP_SOURCES) {
		dedup->source_count++;
	} else {
		at = dedup->next_victim;
		dedup->next_victim = (at + 1) % DEDUP_SOURCES;
		source_release(dedup, &dedup->sources[at]);
	}
	struct dedup_source *const source = &dedup->sources[at];
	source->pinned = pinned;
	source->index = index;
	chunk_map_init(&source->map);
	for (uint32_t i = 0; i < index->count; i++)
		chunk_map_add(&source->map, &index->entries[i].id, pack_index_number(index, i));
	return at;
}
