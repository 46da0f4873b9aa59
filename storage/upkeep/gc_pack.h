/* The way of one pack through gc. Nothing here waits: what must be waited for is looked at again
 * when gc_pack_advance is called again.
 *
 *   look        which chunks do rows of `segments` lead to, or belong to promised xorbs (xorb_row.h)?
 *               none: delete; few: compact; else nothing
 *   begin       retiring: dedup finds nothing in it any more. To be deleted: condemned, committed
 *   references  every ingest that found chunks in it before is through, and its rows are in the
 *               catalog or never will be. From here on the living chunks only become fewer
 *   view        looked at again, in a snapshot: these chunks stay. Some live though it was to be
 *               deleted: it is spared
 *   readers     connections that were out before the snapshot are back: whoever saw more chunks live
 *               holds the pack by now. If one that copies rows does, back to references
 *   reads       those holds are gone
 *   act         looked at once more, for names and promises, in the same change.
 *               delete: the row goes, and those of its xorbs, then the files.
 *               compact: the new file is written and synced, the row names it and xorbs that lack
 *               chunks are forgotten, the cache takes it, then the old files go
 *
 * A crash before the row changed leaves the new file to recovery, one after it the old. gc's thread
 * alone. Internal to storage. */
#ifndef STORAGE_UPKEEP_GC_PACK_H
#define STORAGE_UPKEEP_GC_PACK_H

#include "storage/core/store.h"
#include "storage/packs/pack_rewrite.h"
#include "storage/upkeep/gc.h"

/* What a round works with. */
struct gc_work {
	struct store *store;
	struct gc_report *report;
	unsigned live_percent;
	int64_t promise_ms;
	bool dry_run;
	bool ends_promises; /* none holds */
	/* somebody waits for the space: the open shared pack is sealed when it has dead chunks */
	bool is_asked;
	struct pack_pace pace;
};

enum gc_stage { GC_BEGIN, GC_REFERENCES, GC_VIEW, GC_READERS, GC_READS, GC_ACT, GC_DONE };
struct gc_pack {
	struct gc_pack *next;
	int64_t number;
	struct pack_record record;
	enum gc_stage stage;
	bool deletes;      /* else compacts */
	bool is_condemned; /* in the catalog */
	uint8_t *live;     /* pack_table.h */
	uint32_t live_count;
	uint32_t needed_count; /* of these, by rows and not by promises alone */
	uint64_t readers_mark;
};

/* NULL when there is nothing to do with the pack, or (dry run) nothing is to be done: then the
 * report alone says it. Failures are logged and leave the pack as it is. */
struct gc_pack *gc_pack_look(const struct gc_work *work, int64_t number);
/* One step; false when it must wait. Until stage is GC_DONE. */
bool gc_pack_advance(const struct gc_work *work, struct gc_pack *pack);
/* Frees it. Not done yet: a condemned pack stays so, another becomes as it was; gc looks at it
 * again in its next round. */
void gc_pack_close(const struct gc_work *work, struct gc_pack *pack);

#endif
