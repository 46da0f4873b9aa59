/* A file is planned in two passes over its chunks. The first finds the place of each chunk in the
 * table and makes short runs of known chunks between new ones new as well (fill_holes). The second
 * gives each new chunk a place in the last new xorb, or the place that it already has there, and
 * joins neighbouring places to terms. New chunks are found by id in a hash table with open
 * addressing; the xorb of a chunk's number is found by binary search. */
#include "client/transfer/upload_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"

static const struct table_place NOWHERE = {.xorb = CHUNK_TABLE_NOWHERE};

struct planner {
	struct upload_plan *plan;
	const struct file_chunks *files;
	uint64_t xorb_bytes;
	size_t chunk_capacity, term_capacity;
	struct chunk_entry *entries; /* the ids and sizes of plan->chunks */
	uint32_t *slots;             /* the number of a chunk plus one; 0: free */
	size_t slot_count;           /* a power of two, more than twice the chunks */
};

static void plan_file(struct planner *planner, uint32_t number, struct chunk_table *table);
static struct table_place *find_places(const struct file_chunks *file, struct chunk_table *table);
static void fill_holes(struct table_place *places, size_t count);
static struct table_place place_new(struct planner *planner, const struct upload_chunk *chunk);
static void make_room(struct planner *planner);
static uint32_t *slot_of(const struct planner *planner, const struct chunk_id *id);
static struct upload_xorb *xorb_for(const struct planner *planner, uint64_t size);
static void close_xorb(const struct planner *planner);
static void add_term(struct planner *planner, struct table_place place, bool is_new);
static void hash_ranges(const struct planner *planner, uint32_t number);

void upload_plan_make(const struct file_chunks *files, size_t count, struct chunk_table *table,
	uint64_t xorb_bytes, struct upload_plan *out)
{
	ASSERT(xorb_bytes > 0 && xorb_bytes <= UPLOAD_XORB_MAX_BYTES && count <= UINT32_MAX);
	struct planner planner = {.plan = out, .files = files, .xorb_bytes = xorb_bytes};
	*out = (struct upload_plan){.files = memory_new_array(count + 1, sizeof(*out->files))};
	for (size_t i = 0; i < count; i++) {
		plan_file(&planner, (uint32_t)i, table);
		hash_ranges(&planner, (uint32_t)i);
	}
	close_xorb(&planner);
	free(planner.entries);
	free(planner.slots);
}

void upload_plan_release(struct upload_plan *plan)
{
	free(plan->chunks);
	free(plan->xorbs);
	free(plan->terms);
	free(plan->files);
	*plan = (struct upload_plan){0};
}

static void plan_file(struct planner *planner, uint32_t number, struct chunk_table *table)
{
	struct upload_plan *const plan = planner->plan;
	const struct file_chunks *const file = &planner->files[number];
	struct table_place *const places = find_places(file, table);
	struct upload_terms *const terms = &plan->files[number];
	uint64_t offset = 0;
	terms->first = plan->term_count;
	for (size_t i = 0; i < file->count; i++) {
		const struct upload_chunk chunk = {
			.file = number, .index = (uint32_t)i, .offset = offset};
		const bool is_new = places[i].xorb == CHUNK_TABLE_NOWHERE;
		const struct table_place place = is_new ? place_new(planner, &chunk) : places[i];
		struct upload_term *term = plan->term_count == terms->first
			? NULL
			: &plan->terms[plan->term_count - 1];
		if (term == NULL || term->is_new != is_new || term->xorb != place.xorb ||
			term->end != place.index) {
			add_term(planner, place, is_new);
			term = &plan->terms[plan->term_count - 1];
		}
		term->end++;
		term->bytes += (uint32_t)file->entries[i].size;
		offset += file->entries[i].size;
	}
	terms->count = plan->term_count - terms->first;
	free(places);
}

static struct table_place *find_places(const struct file_chunks *file, struct chunk_table *table)
{
	struct table_place *const places = memory_new_array(file->count + 1, sizeof(*places));
	struct table_place place = NOWHERE;
	for (size_t i = 0; i < file->count; i++) {
		if (!chunk_table_find(table, &file->entries[i].id, place, &place))
			place = NOWHERE;
		places[i] = place;
	}
	fill_holes(places, file->count);
	return places;
}

/* Makes a run of known chunks new when it has new chunks on both sides and is too short to be worth
 * its own term. */
static void fill_holes(struct table_place *places, size_t count)
{
	size_t known = 0; /* the length of the known run so far */
	bool after_new = false;
	for (size_t i = 0; i < count; i++) {
		if (places[i].xorb != CHUNK_TABLE_NOWHERE) {
			known++;
			continue;
		}
		for (size_t back = 1; after_new && known < UPLOAD_HOLE_CHUNKS && back <= known;
			back++)
			places[i - back] = NOWHERE;
		after_new = true;
		known = 0;
	}
}

/* The place of a chunk that the server lacks: the one that it already has in the plan, or the end
 * of the last xorb. */
static struct table_place place_new(struct planner *planner, const struct upload_chunk *chunk)
{
	struct upload_plan *const plan = planner->plan;
	const struct chunk_entry *const entry = &planner->files[chunk->file].entries[chunk->index];
	ASSERT(chunk->index < planner->files[chunk->file].count);
	make_room(planner);
	uint32_t *const slot = slot_of(planner, &entry->id);
	size_t number = *slot;
	if (number == 0) {
		struct upload_xorb *const xorb = xorb_for(planner, entry->size);
		plan->chunks[plan->chunk_count] = *chunk;
		planner->entries[plan->chunk_count] = *entry;
		*slot = (uint32_t)++plan->chunk_count;
		xorb->count++;
		xorb->bytes += entry->size;
		plan->new_bytes += entry->size;
		return (struct table_place){
			.xorb = (uint32_t)plan->xorb_count - 1, .index = xorb->count - 1};
	}
	number--; /* find its xorb: the last one that begins at or before it */
	size_t low = 0;
	size_t high = plan->xorb_count;
	while (high - low > 1) {
		const size_t middle = (low + high) / 2;
		if (plan->xorbs[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	ASSERT(number - plan->xorbs[low].first < plan->xorbs[low].count);
	return (struct table_place){
		.xorb = (uint32_t)low, .index = (uint32_t)(number - plan->xorbs[low].first)};
}

static void make_room(struct planner *planner)
{
	struct upload_plan *const plan = planner->plan;
	if (plan->chunk_count == planner->chunk_capacity) {
		planner->chunk_capacity =
			planner->chunk_capacity == 0 ? 64 : 2 * planner->chunk_capacity;
		plan->chunks =
			memory_grow(plan->chunks, planner->chunk_capacity, sizeof(*plan->chunks));
		planner->entries = memory_grow(
			planner->entries, planner->chunk_capacity, sizeof(*planner->entries));
	}
	if (2 * (plan->chunk_count + 1) < planner->slot_count)
		return;
	free(planner->slots);
	planner->slot_count = planner->slot_count == 0 ? 256 : 2 * planner->slot_count;
	planner->slots = memory_new_array(planner->slot_count, sizeof(*planner->slots));
	for (size_t i = 0; i < plan->chunk_count; i++)
		*slot_of(planner, &planner->entries[i].id) = (uint32_t)i + 1;
	ASSERT(2 * (plan->chunk_count + 1) < planner->slot_count);
}

static uint32_t *slot_of(const struct planner *planner, const struct chunk_id *id)
{
	uint64_t at;
	memcpy(&at, id->bytes, sizeof(at));
	for (;; at++) {
		uint32_t *const slot = &planner->slots[at & (planner->slot_count - 1)];
		if (*slot == 0 || chunk_id_equal(&planner->entries[*slot - 1].id, id))
			return slot;
	}
}

/* The xorb that a new chunk of this size goes to: the last one, or a new one if that is full. */
static struct upload_xorb *xorb_for(const struct planner *planner, uint64_t size)
{
	struct upload_plan *const plan = planner->plan;
	struct upload_xorb *const last =
		plan->xorb_count == 0 ? NULL : &plan->xorbs[plan->xorb_count - 1];
	if (last != NULL && last->count < UPLOAD_XORB_MAX_CHUNKS &&
		last->bytes + size <= planner->xorb_bytes)
		return last;
	close_xorb(planner);
	plan->xorbs = memory_grow(plan->xorbs, plan->xorb_count + 1, sizeof(*plan->xorbs));
	plan->xorbs[plan->xorb_count] = (struct upload_xorb){.first = plan->chunk_count};
	return &plan->xorbs[plan->xorb_count++];
}

static void close_xorb(const struct planner *planner)
{
	struct upload_plan *const plan = planner->plan;
	if (plan->xorb_count == 0)
		return;
	struct upload_xorb *const xorb = &plan->xorbs[plan->xorb_count - 1];
	xorb->hash = chunk_hash_xorb(planner->entries + xorb->first, xorb->count);
}

static void add_term(struct planner *planner, struct table_place place, bool is_new)
{
	struct upload_plan *const plan = planner->plan;
	if (plan->term_count == planner->term_capacity) {
		planner->term_capacity =
			planner->term_capacity == 0 ? 16 : 2 * planner->term_capacity;
		plan->terms =
			memory_grow(plan->terms, planner->term_capacity, sizeof(*plan->terms));
	}
	plan->terms[plan->term_count++] = (struct upload_term){
		.is_new = is_new, .xorb = place.xorb, .first = place.index, .end = place.index};
}

/* Hashes the chunk ids of each term, after all terms of the file have their ends. */
static void hash_ranges(const struct planner *planner, uint32_t number)
{
	struct upload_plan *const plan = planner->plan;
	const struct chunk_entry *entry = planner->files[number].entries;
	for (size_t i = 0; i < plan->files[number].count; i++) {
		struct upload_term *const term = &plan->terms[plan->files[number].first + i];
		ASSERT(term->end > term->first);
		term->range = chunk_hash_range(entry, term->end - term->first);
		entry += term->end - term->first;
	}
}
