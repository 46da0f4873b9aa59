/* What gc changes in the catalog of one pack. Each looks once more whether something leads to the
 * pack, or is promised of it: that may have come since gc looked. gc's thread, which waits for the
 * committer. Internal to storage. */
#ifndef STORAGE_UPKEEP_GC_CHANGE_H
#define STORAGE_UPKEEP_GC_CHANGE_H

#include "storage/db/db.h"
#include "storage/upkeep/gc_pack.h"

/* Sets in `live`, of zeros, the bits of the chunks that must stay: rows lead to them (*out_needed
 * of them; it may be NULL), or they belong to xorbs that are promised. With readers too. */
int gc_change_mark(const struct gc_work *work, const struct gc_pack *pack, struct db *db,
	uint8_t *live, uint32_t *out_needed, size_t *out_rows, struct error *err);

/* GC_REMOVE takes the rows of the pack's xorbs along. GC_SEAL is for the open shared pack. */
enum gc_act { GC_CONDEMN, GC_SPARE, GC_REMOVE, GC_MOVE, GC_SEAL };
/* *out_named: nothing was done (a removal: it is spared) because something leads to the pack, or
 * may yet. */
int gc_change_run(const struct gc_work *work, struct gc_pack *pack, enum gc_act act,
	bool *out_named, struct error *err);

/* The pack lies in the new file; xorbs that are not whole in it are forgotten. */
struct gc_move {
	const struct pack_index *to;
	bool is_named; /* out: as above */
	bool in_doubt; /* out, of a failure: the catalog may yet come to name the new file */
};
int gc_change_move(
	const struct gc_work *work, struct gc_pack *pack, struct gc_move *move, struct error *err);

#endif
