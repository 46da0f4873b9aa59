/* Heals damaged chunks (pack_damage.h) from other copies: another pack that has a chunk of the same
 * id, the page cache, which may still have what the disk has lost, or bytes that a worker has sent
 * (chunk_wants.h). A copy is taken only if its bytes have the chunk's id. The damaged packs are
 * written again (pack_damage_mend). scrub's thread only. Internal to storage. */
#ifndef STORAGE_SCRUB_CHUNK_HEAL_H
#define STORAGE_SCRUB_CHUNK_HEAL_H

#include "storage/core/store.h"
#include "storage/core/work_pace.h"
#include "storage/scrub/chunk_wants.h"

struct chunk_heal_report {
	uint64_t healed;
	/* have a copy, and are healed by a later call: their packs are being sealed, or gc works on
	 * them */
	uint64_t waiting;
	uint64_t failed; /* have a copy, but their pack could not be written again */
};

/* Looks through the indexes of all packs, from the disk where they are not in memory; with `pace`
 * NULL it takes only what workers have sent. Chunks that their pack does not have any more are
 * forgotten. 0, whatever could be healed; busy when it was stopped. */
int chunk_heal_run(struct store *store, struct chunk_wants *wants, const struct work_pace *pace,
	struct chunk_heal_report *out, struct error *err);

#endif
