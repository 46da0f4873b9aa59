/* The end of a compacted pack: the chunks that still live in it, under the numbers they always had.
 * gc writes such a pack at once from another file of the same pack; it never grows. docs/FORMAT.md,
 * "Compacted packs". Pure except for pack_table_save and pack_table_load; not locked. */
#ifndef STORAGE_PACKS_PACK_TABLE_H
#define STORAGE_PACKS_PACK_TABLE_H

#include "storage/packs/pack_index.h"

enum {
	PACK_TABLE_ENTRY_BYTES = 4 + PACK_ENTRY_BYTES,
	PACK_TABLE_XORB_BYTES = CHUNK_ID_BYTES + 8,
	PACK_TABLE_TAIL_BYTES = 32
};

/* Makes the index of the file `file` that will hold those chunks of `from` whose bit in `live` is
 * set (bit number % 8 of byte number / 8, for all chunk numbers of the pack). The records must be
 * written in this order, then the table. At least one chunk must live. */
struct pack_index *pack_table_select(
	const struct pack_index *from, const struct pack_id *file, const uint8_t *live);

/* The length that this file would have; 0 when no chunk lives. */
uint64_t pack_table_length(const struct pack_index *from, const uint8_t *live);

void pack_table_encode(const struct pack_index *index, struct buffer *out);
/* The size of the table from its last PACK_TABLE_TAIL_BYTES; 0 when these cannot be its end. */
size_t pack_table_size(const uint8_t tail[PACK_TABLE_TAIL_BYTES]);
/* Reads a whole table. corrupt when anything does not add up. */
struct pack_index *pack_table_decode(struct span bytes, const struct pack_id *pack,
	const struct pack_id *file, struct error *err);

/* Reads the table at the end of an open file, whose length the catalog knows. corrupt, unsupported,
 * or the failure of reading. */
struct pack_index *pack_table_read(struct backend_file *file, const struct pack_id *pack,
	const struct pack_id *name, uint64_t length, struct error *err);
/* How an open file describes itself: by its table, or by its footers if the pack was never
 * compacted. Fails as above. */
struct pack_index *pack_own_index(struct backend_file *file, const struct pack_id *pack,
	const struct pack_id *name, uint64_t length, struct error *err);
/* Saves the copy beside the pack, which is used when the pack's own table is damaged. */
int pack_table_save(const struct pack_index *index, struct backend *backend, struct error *err);
/* Reads the table from the file, whose length the catalog knows, or from the copy. corrupt,
 * unsupported, or the failure of reading. */
struct pack_index *pack_table_load(struct backend *backend, const struct pack_id *pack,
	const struct pack_id *file, uint64_t length, struct error *err);

static inline bool pack_table_lives(const uint8_t *live, uint32_t chunk)
{
	return (live[chunk / 8] >> (chunk % 8) & 1) != 0;
}

static inline uint32_t pack_table_count(const uint8_t *live, uint32_t chunks)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < chunks; i++)
		count += pack_table_lives(live, i);
	return count;
}

#endif
