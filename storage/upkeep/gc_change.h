/* The changes that gc makes to one pack's rows. Each looks once more whether something leads to the
 * pack, or a xorb of it is promised, because that may have come since gc looked. gc's thread, which
 * waits for the committer. Internal to storage. */
#ifndef STORAGE_UPKEEP_GC_CHANGE_H
#define STORAGE_UPKEEP_GC_CHANGE_H

#include "storage/db/db.h"
#include "storage/upkeep/gc_pack.h"

struct gc_marks {
	uint8_t *live;   /* a bit for each chunk (pack_table.h), zeros at first */
	uint32_t needed; /* how many rows of `segments` lead to */
	size_t rows;     /* that were read */
};
/* Sets the bits of the chunks that must stay: rows lead to them, or they belong to promised xorbs.
 * Readers may be used too. */
int gc_change_mark(const struct gc_work *work, const struct gc_pack *pack, struct db *db,
	struct gc_marks *marks, struct error *err);

/* GC_REMOVE also removes the rows of the pack's xorbs. GC_SEAL is for the open shared pack. */
enum gc_act { GC_CONDEMN, GC_SPARE, GC_REMOVE, GC_MOVE, GC_SEAL };
/* *out_named: something leads to the pack, or may yet, so nothing was done (GC_REMOVE: the pack was
 * spared). Any act but GC_MOVE. */
int gc_change_run(const struct gc_work *work, struct gc_pack *pack, enum gc_act act,
	bool *out_named, struct error *err);

/* Moves the pack to the new file. Xorbs that are not whole in it are forgotten. */
struct gc_move {
	const struct pack_index *to;
	bool is_named; /* out: as above */
	bool in_doubt; /* out, after a failure: the catalog may yet come to name the new file */
};
int gc_change_move(
	const struct gc_work *work, struct gc_pack *pack, struct gc_move *move, struct error *err);

#endif
