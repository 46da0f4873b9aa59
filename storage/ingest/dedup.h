/* Chunks that the store has already, as one stream meets them. A sampled id, the first of the
 * stream and the one behind a pack's last are looked up; a hit holds that pack and loads its index,
 * where the neighbours are found without further lookups. What it gives out is compared by id with
 * the pack's own index, and its pack is held until release (invariant 5). One thread at a time. */
#ifndef STORAGE_INGEST_DEDUP_H
#define STORAGE_INGEST_DEDUP_H

#include "storage/packs/pack_store_parts.h"

enum { DEDUP_SOURCES = 4 };

struct dedup_source { /* a pack whose index is at hand */
	struct pack *pinned;
	const struct pack_index *index;
	struct chunk_map map;
};
struct dedup {
	struct pack_store *store;
	struct dedup_source sources[DEDUP_SOURCES];
	size_t source_count;
	size_t next_victim;
	size_t last;       /* source of the last find */
	uint32_t expected; /* the chunk behind it */
	bool at_end;       /* there is none: the next may be the first of another pack */
	struct pack_id *held;
	size_t held_count;
};

void dedup_init(struct dedup *dedup, struct pack_store *store);
/* `keep_holds`: a commit in doubt may yet name the packs, so they stay held until the process
 * ends. */
void dedup_release(struct dedup *dedup, bool keep_holds);
/* Damaged: the chunk is here, and known not to be right: its bytes are to be stored anew. */
enum dedup_found { DEDUP_UNKNOWN, DEDUP_FOUND, DEDUP_DAMAGED };
enum dedup_found dedup_find(struct dedup *dedup, const struct chunk_id *id, bool is_first,
	struct chunk_place *out_place);

#endif
