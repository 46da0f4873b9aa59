/* Segments grow while neighbours in a pack follow each other. A chunk that gets another place later
 * only marks the segments as torn; part_builder_join makes them again from the places, once, behind
 * the last replacement. */
#include "storage/ingest/part_builder.h"

#include <stdlib.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "storage/packs/pack_format.h"

/* Each segment costs a row of the catalog, and readers a seek. The first PART_FREE_SEGMENTS are
 * free; a longer stream may have one more for so many chunks. */
enum { PART_FREE_SEGMENTS = 512, PART_CHUNKS_PER_SEGMENT = 64, PART_CHUNKS_PER_FEW = 1024 };

static void part_add_chunk(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place);
static void part_join_chunk(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place);
static bool part_extends(const struct part_builder *builder, const struct chunk_place *place);
static void part_add_segment(struct part_builder *builder, const struct chunk_place *place);

void part_builder_init(struct part_builder *builder)
{
	*builder = (struct part_builder){0};
	chunk_map_init(&builder->map);
}

void part_builder_release(struct part_builder *builder)
{
	free(builder->chunks);
	free(builder->places);
	free(builder->segments);
	chunk_map_release(&builder->map);
	part_builder_init(builder);
}

void part_builder_add(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place)
{
	if (builder->count < CHUNK_MAP_MAX)
		chunk_map_add(&builder->map, &chunk->id, (uint32_t)builder->count);
	part_add_chunk(builder, chunk, place);
	part_join_chunk(builder, chunk, place);
}

void part_builder_replace(
	struct part_builder *builder, size_t index, const struct chunk_place *place)
{
	ASSERT(index < builder->count);
	builder->places[index] = *place;
	builder->is_torn = true;
}

void part_builder_join(struct part_builder *builder)
{
	if (!builder->is_torn)
		return;
	builder->segment_count = 0;
	for (size_t i = 0; i < builder->count; i++)
		part_join_chunk(builder, &builder->chunks[i], &builder->places[i]);
	builder->is_torn = false;
}

void part_builder_add_inline(struct part_builder *builder, const struct chunk_entry *chunk)
{
	const struct chunk_place nowhere = {0};
	part_add_chunk(builder, chunk, &nowhere);
}

bool part_builder_find(const struct part_builder *builder, const struct chunk_id *id,
	struct chunk_place *out_place)
{
	uint32_t number;
	if (!chunk_map_find(&builder->map, id, &number))
		return false;
	ASSERT(number < builder->count);
	if (!chunk_id_equal(&builder->chunks[number].id, id))
		return false;
	*out_place = builder->places[number];
	return true;
}

bool part_builder_accepts(const struct part_builder *builder, const struct chunk_place *place)
{
	const size_t chunks =
		builder->has_few_segments ? PART_CHUNKS_PER_FEW : PART_CHUNKS_PER_SEGMENT;
	return part_extends(builder, place) ||
		builder->segment_count < PART_FREE_SEGMENTS + builder->count / chunks;
}

void part_builder_move(
	struct part_builder *builder, const struct pack_id *from, const struct chunk_place *to)
{
	ASSERT(!builder->is_torn);
	for (size_t i = 0; i < builder->segment_count; i++) {
		struct segment *const segment = &builder->segments[i];
		if (!pack_id_equal(&segment->pack, from))
			continue;
		segment->pack = to->pack;
		segment->first += to->chunk;
	}
}

struct chunk_id part_builder_file_hash(const struct part_builder *builder)
{
	return chunk_hash_file(builder->chunks, builder->count);
}

static void part_add_chunk(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place)
{
	size_t capacity = builder->capacity; /* of both lists */
	builder->chunks = memory_make_room(
		builder->chunks, builder->count, &capacity, sizeof(*builder->chunks));
	builder->places = memory_make_room(
		builder->places, builder->count, &builder->capacity, sizeof(*builder->places));
	builder->chunks[builder->count] = *chunk;
	builder->places[builder->count++] = *place;
}

static void part_join_chunk(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place)
{
	if (!part_extends(builder, place))
		part_add_segment(builder, place);
	struct segment *last = &builder->segments[builder->segment_count - 1];
	last->count++;
	last->bytes += chunk->size;
}

static bool part_extends(const struct part_builder *builder, const struct chunk_place *place)
{
	if (builder->segment_count == 0)
		return false;
	const struct segment *const last = &builder->segments[builder->segment_count - 1];
	return place->chunk == last->first + last->count &&
		pack_id_equal(&place->pack, &last->pack);
}

static void part_add_segment(struct part_builder *builder, const struct chunk_place *place)
{
	builder->segments = memory_make_room(builder->segments, builder->segment_count,
		&builder->segment_capacity, sizeof(*builder->segments));
	builder->segments[builder->segment_count++] =
		(struct segment){.pack = place->pack, .first = place->chunk};
}
