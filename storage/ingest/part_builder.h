/* The chunks of one stream in order, and where each lies: gives the segments, the file hash and the
 * repeats within the stream. Takes about 80 bytes per chunk, that is 1.3 MB per GiB. One thread at
 * a time. */
#ifndef STORAGE_INGEST_PART_BUILDER_H
#define STORAGE_INGEST_PART_BUILDER_H

#include "storage/packs/chunk_index.h"
#include "storage/packs/chunk_map.h"

struct part_builder {
	struct chunk_entry *chunks;
	struct chunk_place *places;
	size_t count;
	size_t capacity;
	struct chunk_map map; /* by id, into the lists above */
	struct segment *segments;
	size_t segment_count;
	size_t segment_capacity;
	bool is_torn;          /* a chunk was replaced: the segments do not show it yet */
	bool has_few_segments; /* fewer than are good for readers */
};

void part_builder_init(struct part_builder *builder);
void part_builder_release(struct part_builder *builder);
void part_builder_add(struct part_builder *builder, const struct chunk_entry *chunk,
	const struct chunk_place *place);
/* A chunk of an inline stream: counts for the file hash, lies nowhere. */
void part_builder_add_inline(struct part_builder *builder, const struct chunk_entry *chunk);
/* Where the same bytes came before in this stream. */
bool part_builder_find(const struct part_builder *builder, const struct chunk_id *id,
	struct chunk_place *out_place);
/* Whether a chunk found there is worth taking: repeats that would cut the stream into too many
 * segments are stored again. */
bool part_builder_accepts(const struct part_builder *builder, const struct chunk_place *place);
/* Chunk number `index` of the stream lies elsewhere after all; segments are right again after
 * part_builder_join. */
void part_builder_replace(
	struct part_builder *builder, size_t index, const struct chunk_place *place);
void part_builder_join(struct part_builder *builder);
/* The chunks planned for pack `from` came to lie in `to`. */
void part_builder_move(
	struct part_builder *builder, const struct pack_id *from, const struct chunk_place *to);
struct chunk_id part_builder_file_hash(const struct part_builder *builder);

#endif
