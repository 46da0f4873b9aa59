/* Finds chunks of one stream that the store already has. Three kinds of chunk are looked up in the
 * chunk index: sampled ones, the first of the stream, and the one behind the last chunk of a pack.
 * A hit refers to its pack and loads the pack's index, in which the neighbours are found without
 * further lookups. Each id is compared with the pack's own index before its place is given out, and
 * the pack stays referred until release (invariant 5). One thread at a time. */
#ifndef STORAGE_INGEST_DEDUP_H
#define STORAGE_INGEST_DEDUP_H

#include "storage/packs/pack_store_parts.h"

enum { DEDUP_SOURCES = 4 };

struct dedup_source { /* a pack whose index is loaded */
	struct pack *pinned;
	const struct pack_index *index;
	struct chunk_map map;
};
struct dedup {
	struct pack_store *store;
	struct dedup_source sources[DEDUP_SOURCES];
	size_t source_count;
	size_t next_victim;
	size_t last;       /* the source of the last find */
	uint32_t expected; /* the chunk behind that one */
	bool at_end;       /* there is none behind it: the next may be the first of another pack */
	/* The last hit in a far place (storage/packs/backend.h) that was not followed, because the
	 * index of its pack is not in memory. Once it is loaded, the chunks behind are found. */
	struct chunk_place far;
	bool lacks_index;         /* it must be loaded; the caller resets this */
	bool is_left;             /* the next search follows the hit */
	struct pack_id *referred; /* packs that must not go before release */
	size_t referred_count;
};

void dedup_init(struct dedup *dedup, struct pack_store *store);
/* Gives up the references. `keeps_references`: a commit in doubt may still name the packs, so they
 * stay referred until the process ends. */
void dedup_release(struct dedup *dedup, bool keeps_references);
/* DEDUP_DAMAGED: the store has the chunk, but it is known to be damaged, so its bytes must be
 * stored again. */
enum dedup_found { DEDUP_UNKNOWN, DEDUP_FOUND, DEDUP_DAMAGED };
enum dedup_found dedup_find(struct dedup *dedup, const struct chunk_id *id, bool is_first,
	struct chunk_place *out_place);

#endif
