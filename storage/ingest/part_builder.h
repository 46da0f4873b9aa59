/* The chunks of one stream in order, with their places. Gives the segments, the file hash, and
 * repeats within the stream. It takes about 80 bytes per chunk, which is 1.3 MB per GiB. One thread
 * at a time. */
#ifndef STORAGE_INGEST_PART_BUILDER_H
#define STORAGE_INGEST_PART_BUILDER_H

#include "storage/packs/chunk_index.h"
#include "storage/packs/chunk_map.h"

struct part_builder {
	struct chunk_entry *chunks;
	struct chunk_place *places;
	size_t count;
	size_t capacity;
	struct chunk_map map; /* from an id to its index in the lists above */
	struct segment *segments;
	size_t segment_count;
	size_t segment_capacity;
	bool is_torn;          /* a chunk was replaced, and the segments do not show it yet */
	bool has_few_segments; /* fewer than readers would like */
};

void part_builder_init(struct part_builder *builder);
void part_builder_release(struct part_builder *builder);
void part_builder_add(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place);
/* Adds a chunk of an inline stream: it counts for the file hash and has no place. */
void part_builder_add_inline(struct part_builder *builder, const struct chunk_entry *chunk);
/* The place of the same chunk earlier in this stream. */
bool part_builder_find(const struct part_builder *builder, const struct chunk_id *id,
	struct chunk_place *out_place);
/* Whether a chunk that was found there is worth taking. Repeats that would cut the stream into too
 * many segments are stored again. */
bool part_builder_accepts(const struct part_builder *builder, const struct chunk_place *place);
/* Gives chunk number `index` of the stream another place. The segments are right again after
 * part_builder_join. */
void part_builder_replace(
	struct part_builder *builder, size_t index, const struct chunk_place *place);
void part_builder_join(struct part_builder *builder);
/* The chunks that were planned for pack `from` are in `to`. */
void part_builder_move(
	struct part_builder *builder, const struct pack_id *from, const struct chunk_place *to);
struct chunk_id part_builder_file_hash(const struct part_builder *builder);

#endif
