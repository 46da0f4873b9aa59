/* The way of one pack through gc. Nothing here waits for uploads or reads: gc_pack_advance returns
 * false instead, and looks again when it is called again.
 *
 *   look        finds the chunks that rows of `segments` lead to, and those of promised xorbs
 *               (xorb_row.h). None: delete. Few: compact. Else nothing is to be done
 *   begin       the pack retires: dedup finds nothing in it any more. A pack that is to be deleted
 *               is condemned in the catalog
 *   references  waits until every ingest that found chunks in it before has ended, so that its rows
 *               are in the catalog or never will be. From here on live chunks only become fewer
 *   view        looks again, in a snapshot: these chunks stay. A pack that was to be deleted but
 *               has live chunks is spared
 *   readers     waits until the connections that were out before the snapshot are back: readers
 *               that saw more live chunks hold the pack by now. If one of them copies rows, the
 *               pack goes back to references
 *   reads       waits until those holds have ended
 *   act         looks once more for rows and promises, inside the change.
 *               delete: removes the pack's row and those of its xorbs, then the files.
 *               compact: writes and syncs the new file; the row names it, and xorbs that lack
 *               chunks are forgotten; the cache takes it; then the old files go
 *
 * After a crash before the row changed, recovery removes the new file; after one behind it, the old
 * one. gc's thread only. Internal to storage. */
#ifndef STORAGE_UPKEEP_GC_PACK_H
#define STORAGE_UPKEEP_GC_PACK_H

#include "storage/core/store.h"
#include "storage/packs/pack_rewrite.h"
#include "storage/upkeep/gc.h"

/* Given to each step of a round. */
struct gc_work {
	struct store *store;
	struct gc_report *report;
	unsigned live_percent;
	int64_t promise_ms;
	bool dry_run;
	bool ends_promises; /* promises count for nothing */
	/* A request waits for the space: the open shared pack is sealed, however small, when few
	 * enough of its chunks live. */
	bool is_asked;
	struct pack_pace pace;
};

enum gc_stage { GC_BEGIN, GC_REFERENCES, GC_VIEW, GC_READERS, GC_READS, GC_ACT, GC_DONE };
struct gc_pack {
	struct gc_pack *next;
	int64_t number;
	struct pack_record record;
	enum gc_stage stage;
	bool deletes;      /* false: it compacts */
	bool is_condemned; /* in the catalog */
	uint8_t *live;     /* pack_table.h */
	uint32_t live_count;
	uint32_t needed_count; /* of these, needed by rows and not by promises alone */
	uint64_t readers_mark; /* store_readers_mark at the view */
};

/* Returns NULL when there is nothing to do with the pack, or when a dry run has counted what there
 * is to do. Failures are logged and leave the pack as it is. */
struct gc_pack *gc_pack_look(const struct gc_work *work, int64_t number);
/* Takes one step; false when it must wait. Only while the stage is not GC_DONE. */
bool gc_pack_advance(const struct gc_work *work, struct gc_pack *pack);
/* Frees it. Before GC_DONE a condemned pack stays condemned, and another becomes as it was; gc
 * looks at it again in its next round. */
void gc_pack_close(const struct gc_work *work, struct gc_pack *pack);

#endif
