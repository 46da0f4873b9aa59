/* damaged places --index--> ids --the indexes of all packs--> copies --> a patch for each pack
 *
 * The chunk index knows only sampled chunks, and deduplication leaves few second copies. So all
 * indexes are looked through: they are small (48 bytes a chunk), and damage is rare. */
#include "storage/scrub/chunk_heal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "chunker/chunk_hash.h"
#include "storage/packs/pack_rewrite.h"

enum { PATCH_MAX_BYTES = 64 * 1024 * 1024 };

struct wanted {
	struct chunk_id id;
	struct chunk_place place; /* of the damaged record */
	struct chunk_place copy;
	bool has_copy; /* at `copy`, or */
	bool was_sent; /* by a worker */
};
struct healing {
	struct store *store;
	struct pack_store *packs;
	struct chunk_wants *wants;
	const struct work_pace *pace; /* NULL: no pack is looked into */
	struct wanted *wanted;        /* sorted by id, then by place */
	size_t count;
	struct codec_context *codec;
	struct xorb_builder record; /* of one chunk */
	uint8_t bytes[CHUNK_MAX_BYTES];
};
struct patch { /* of one pack, while it grows */
	uint32_t *numbers;
	struct pack_entry *entries;
	uint32_t count;
	struct buffer bytes;
};

static void take_damage(struct healing *healing, const struct chunk_place *places, size_t count);
static int find_entry(
	const struct healing *healing, const struct chunk_place *place, struct pack_entry *out);
static int chunk_heal_compare_ids(const void *a, const void *b);
static int read_sent(struct healing *healing, const struct wanted *wanted, size_t *out);
static void try_copy(struct healing *healing, struct wanted *wanted, const struct chunk_place *at);
static int read_right(struct healing *healing, const struct chunk_place *place,
	struct wanted *wanted, size_t *out);
static int look_for_copies(struct healing *healing, struct error *err);
static int look_into(struct healing *healing, const struct pack_id *pack, struct error *err);
static void offer(
	struct healing *healing, const struct chunk_id *id, const struct chunk_place *place);
static bool chunk_heal_is_before(const void *element, const void *id);
static int chunk_heal_compare_places(const void *a, const void *b);
static void mend_all(struct healing *healing, struct chunk_heal_report *out);
static size_t count_of_pack(const struct healing *healing, size_t from);
static void mend_pack(struct healing *healing, struct wanted *wanted, size_t count,
	struct chunk_heal_report *out);
static void add_record(struct healing *healing, struct wanted *wanted, struct patch *patch);
static void healing_free(struct healing *healing);

int chunk_heal_run(struct store *store, struct chunk_wants *wants, const struct work_pace *pace,
	struct chunk_heal_report *out, struct error *err)
{
	struct pack_store *const packs = store_packs(store);
	size_t count;
	*out = (struct chunk_heal_report){0};
	struct chunk_place *const places = pack_damage_list(packs->damage, &count);
	if (count == 0)
		return 0;
	struct healing *const healing = memory_new(sizeof(*healing));
	healing->store = store;
	healing->packs = packs;
	healing->wants = wants;
	healing->pace = pace;
	healing->codec = codec_context_new();
	xorb_builder_init(&healing->record);
	take_damage(healing, places, count);
	free(places);
	const int result = look_for_copies(healing, err);
	mend_all(healing, out); /* what was found before a stop, too */
	healing_free(healing);
	return result;
}

static void take_damage(struct healing *healing, const struct chunk_place *places, size_t count)
{
	size_t len;
	healing->wanted = memory_new_array(count, sizeof(*healing->wanted));
	for (size_t i = 0; i < count; i++) {
		struct pack_entry entry;
		const int found = find_entry(healing, &places[i], &entry);
		struct wanted *const wanted = &healing->wanted[healing->count];
		*wanted = (struct wanted){.id = entry.id, .place = places[i]};
		healing->count += found == 1;
		if (found == 0)
			pack_damage_forget(
				healing->packs->damage, &places[i].pack, places[i].chunk, 1);
	}
	if (healing->count > 0)
		qsort(healing->wanted, healing->count, sizeof(*healing->wanted),
			chunk_heal_compare_ids);
	for (size_t i = 0; i < healing->count; i++) {
		struct wanted *const wanted = &healing->wanted[i];
		wanted->was_sent = read_sent(healing, wanted, &len) == 0;
		if (!wanted->was_sent && healing->pace != NULL)
			try_copy(healing, wanted, &wanted->place);
	}
}

/* 1 and the entry; 0 when gc has dropped the chunk or its pack, so that nothing leads to it; -1
 * when that cannot be told. */
static int find_entry(
	const struct healing *healing, const struct chunk_place *place, struct pack_entry *out)
{
	struct pack_cache *const cache = healing->packs->cache;
	struct error ignored = {0};
	uint32_t from = place->chunk;
	*out = (struct pack_entry){0};
	if (!pack_cache_knows(cache, &place->pack))
		return 0;
	struct pack *const pinned = pack_cache_pin(cache, &place->pack, false, &ignored);
	if (pinned == NULL)
		return -1;
	const size_t found =
		pack_cache_copy_present(cache, pinned, &from, place->chunk + 1, out, 1);
	pack_cache_unpin(cache, pinned);
	return found == 1;
}

static int chunk_heal_compare_ids(const void *a, const void *b)
{
	const int order = memcmp(((const struct wanted *)a)->id.bytes,
		((const struct wanted *)b)->id.bytes, CHUNK_ID_BYTES);
	return order != 0 ? order : chunk_heal_compare_places(a, b);
}

/* The same as read_right for bytes that a worker has sent. */
static int read_sent(struct healing *healing, const struct wanted *wanted, size_t *out)
{
	if (!chunk_wants_copy(healing->wants, &wanted->id, healing->bytes, out))
		return -1;
	const struct chunk_id id = chunk_hash(span_of(healing->bytes, *out));
	return chunk_id_equal(&id, &wanted->id) ? 0 : -1;
}

static void try_copy(struct healing *healing, struct wanted *wanted, const struct chunk_place *at)
{
	size_t len;
	if (wanted->has_copy || wanted->was_sent || read_right(healing, at, wanted, &len) != 0)
		return;
	wanted->copy = *at;
	wanted->has_copy = true;
}

/* Reads the chunk to healing->bytes and compares its id. */
static int read_right(struct healing *healing, const struct chunk_place *place,
	struct wanted *wanted, size_t *out)
{
	struct error ignored = {0};
	if (pack_store_read_chunk(
		    healing->packs, place, healing->codec, healing->bytes, out, &ignored) != 0)
		return -1;
	const struct chunk_id id = chunk_hash(span_of(healing->bytes, *out));
	return chunk_id_equal(&id, &wanted->id) ? 0 : -1;
}

static int look_for_copies(struct healing *healing, struct error *err)
{
	struct pack_id *packs = NULL;
	int result = 0;
	if (healing->count == 0 || healing->pace == NULL)
		return 0;
	const size_t count = pack_cache_list(healing->packs->cache, &packs);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = look_into(healing, &packs[i], err);
	free(packs);
	return result;
}

/* Of a growing pack nothing is taken, because its end may be cut off again. */
static int look_into(struct healing *healing, const struct pack_id *pack, struct error *err)
{
	struct pack_cache *const cache = healing->packs->cache;
	struct error unreadable = {0};
	struct pack *const pinned = pack_cache_pin(cache, pack, false, &unreadable);
	if (pinned == NULL)
		return 0; /* scrub and fsck tell of it */
	const struct pack_index *const index = pack_cache_sealed_index(cache, pinned);
	const uint32_t count = index != NULL ? index->count : 0;
	const bool goes_on =
		healing->pace->spend(healing->pace->owner, (size_t)count * PACK_ENTRY_BYTES);
	for (uint32_t at = 0; goes_on && at < count; at++) {
		const struct chunk_place place = {
			.pack = *pack, .chunk = pack_index_number(index, at)};
		offer(healing, &index->entries[at].id, &place);
	}
	pack_cache_unpin(cache, pinned);
	return goes_on ? 0 : error_set(err, ERROR_BUSY, "The store is closing.");
}

static void offer(
	struct healing *healing, const struct chunk_id *id, const struct chunk_place *place)
{
	size_t at = search_lower_bound(healing->wanted, healing->count, sizeof(*healing->wanted),
		chunk_heal_is_before, id);
	for (; at < healing->count && chunk_id_equal(&healing->wanted[at].id, id); at++)
		if (!healing->wanted[at].has_copy &&
			!pack_damage_has(healing->packs->damage, &place->pack, place->chunk, 1))
			try_copy(healing, &healing->wanted[at], place);
}

static bool chunk_heal_is_before(const void *element, const void *id)
{
	return memcmp(((const struct wanted *)element)->id.bytes,
		       ((const struct chunk_id *)id)->bytes, CHUNK_ID_BYTES) < 0;
}

static int chunk_heal_compare_places(const void *a, const void *b)
{
	const struct chunk_place *const left = &((const struct wanted *)a)->place;
	const struct chunk_place *const right = &((const struct wanted *)b)->place;
	const int order = memcmp(left->pack.bytes, right->pack.bytes, PACK_ID_BYTES);
	return order != 0 ? order : (left->chunk > right->chunk) - (left->chunk < right->chunk);
}

static void mend_all(struct healing *healing, struct chunk_heal_report *out)
{
	if (healing->count > 0)
		qsort(healing->wanted, healing->count, sizeof(*healing->wanted),
			chunk_heal_compare_places);
	for (size_t from = 0, count; from < healing->count; from += count) {
		count = count_of_pack(healing, from);
		mend_pack(healing, healing->wanted + from, count, out);
	}
}

static size_t count_of_pack(const struct healing *healing, size_t from)
{
	size_t end = from + 1;
	while (end < healing->count &&
		pack_id_equal(&healing->wanted[end].place.pack, &healing->wanted[from].place.pack))
		end++;
	return end - from;
}

static void mend_pack(
	struct healing *healing, struct wanted *wanted, size_t count, struct chunk_heal_report *out)
{
	struct error err = {0};
	struct patch patch = {.numbers = memory_new_array(count, sizeof(*patch.numbers)),
		.entries = memory_new_array(count, sizeof(*patch.entries))};
	buffer_init(&patch.bytes, PATCH_MAX_BYTES);
	for (size_t i = 0; i < count; i++)
		if (wanted[i].has_copy || wanted[i].was_sent)
			add_record(healing, &wanted[i], &patch);
	const struct pack_patch whole = {.numbers = patch.numbers,
		.count = patch.count,
		.entries = patch.entries,
		.bytes = buffer_span(&patch.bytes)};
	const int result = patch.count == 0
		? 0
		: pack_damage_mend(healing->packs->damage, &wanted->place.pack, &whole, &err);
	if (result == 0)
		out->healed += patch.count;
	else if (err.kind == ERROR_BUSY)
		out->waiting += patch.count;
	else {
		out->failed += patch.count;
		log_failure(store_log(healing->store), LOG_WARNING, NULL, "pack_mend", &err);
	}
	buffer_release(&patch.bytes);
	free(patch.numbers);
	free(patch.entries);
}

/* A copy that cannot be read any more, or that does not fit, is left to the next call. */
static void add_record(struct healing *healing, struct wanted *wanted, struct patch *patch)
{
	struct error ignored = {0};
	size_t len;
	if (patch->bytes.len + PACK_RECORD_HEADER_BYTES + PACK_STORED_MAX_BYTES > PATCH_MAX_BYTES)
		return;
	if ((wanted->was_sent ? read_sent(healing, wanted, &len)
			      : read_right(healing, &wanted->copy, wanted, &len)) != 0)
		return;
	xorb_builder_reset(&healing->record);
	if (xorb_builder_add(&healing->record, healing->codec, &wanted->id,
		    span_of(healing->bytes, len), &ignored) != 0)
		return;
	patch->numbers[patch->count] = wanted->place.chunk;
	patch->entries[patch->count] = healing->record.entries[0];
	patch->entries[patch->count].offset = (uint32_t)patch->bytes.len;
	buffer_add_span(&patch->bytes, buffer_span(&healing->record.bytes));
	patch->count++;
}

static void healing_free(struct healing *healing)
{
	xorb_builder_release(&healing->record);
	codec_context_free(healing->codec);
	free(healing->wanted);
	free(healing);
}
