/* The content of one pack: its xorbs, and its chunk entries with their offsets. In memory, and as
 * the sidecar file beside a sealed pack; it can be made again from the pack's footers. A compacted
 * pack lacks chunks and has its index in itself (pack_table.h). docs/FORMAT.md, "Pack index". Its
 * owner locks it. */
#ifndef STORAGE_PACKS_PACK_INDEX_H
#define STORAGE_PACKS_PACK_INDEX_H

#include "storage/packs/backend.h"
#include "storage/packs/pack_format.h"

struct pack_xorb {
	struct chunk_id hash;
	uint32_t first; /* chunk number in the pack */
	uint32_t count; /* as it was written; some chunks may be gone */
};
struct pack_index {
	struct pack_id pack;
	struct pack_id file; /* the pack's id, or another id once the pack was compacted */
	uint64_t length;     /* of the file, up to the end of the last footer */
	/* chunk numbers of the entries, rising; NULL: the number of an entry is its place in the
	 * list */
	uint32_t *numbers;
	struct pack_entry *entries;
	uint32_t count;
	uint32_t capacity;
	struct pack_xorb *xorbs;
	uint32_t xorb_count;
	uint32_t xorb_capacity;
};

/* The index of a pack that has only a header. */
struct pack_index *pack_index_new(const struct pack_id *pack);
void pack_index_free(struct pack_index *index); /* NULL is fine */
size_t pack_index_memory(const struct pack_index *index);
/* The entry of a chunk; NULL when the pack does not have this chunk, or not any more. */
const struct pack_entry *pack_index_find(const struct pack_index *index, uint32_t chunk);
/* The place in the list of the first entry with this number or a higher one; `count` when there is
 * none. */
uint32_t pack_index_at(const struct pack_index *index, uint32_t chunk);
/* The same in a list of rising chunk numbers. */
uint32_t pack_numbers_at(const uint32_t *numbers, uint32_t count, uint32_t chunk);
/* The chunk number of entry `at`. */
uint32_t pack_index_number(const struct pack_index *index, uint32_t at);

/* Adds a xorb after the last one: copies its entries, computes their offsets, and moves the length
 * behind its footer. */
void pack_index_add_xorb(struct pack_index *index, const struct chunk_id *hash,
	const struct pack_entry *entries, uint32_t count);
/* Drops the xorbs from chunk `chunks` on, which must be the end of a xorb. */
void pack_index_cut(struct pack_index *index, uint32_t chunks);

/* The sidecar's bytes, and back. corrupt when anything does not add up. */
void pack_index_encode(const struct pack_index *index, struct buffer *out);
struct pack_index *pack_index_decode(struct span bytes, struct error *err);

/* Makes the index from the footers of an open file, of which the first `length` bytes count.
 * corrupt when these are not a whole pack. */
struct pack_index *pack_index_walk(
	struct backend_file *file, const struct pack_id *pack, uint64_t length, struct error *err);
/* Takes the sidecar if it is right, else walks the pack; *out_walked then tells that the index
 * should be saved. For packs that were never compacted. */
struct pack_index *pack_index_load(struct backend *backend, const struct pack_id *pack,
	uint64_t length, bool *out_walked, struct error *err);
int pack_index_save(const struct pack_index *index, struct backend *backend, struct error *err);

#endif
