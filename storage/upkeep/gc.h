/* Space comes back: packs that nothing leads to are deleted, packs of which little lives are
 * written anew without the rest (invariants 4, 5). Sealed packs only. The chunks of a xorb that is
 * promised (storage/xet/xorb.h) count as needed: once that is over, the next look at all packs
 * finds it. One thread of its own, started with the store; it looks around now and then, at packs
 * that lost references alone, and at all packs after each start and once a day. What it does is
 * bounded in bytes a second, and any part of it may be cut off at any moment: the next start finds
 * everything again. gc_pack.h tells how one pack goes. Any thread. */
#ifndef STORAGE_UPKEEP_GC_H
#define STORAGE_UPKEEP_GC_H

#include "storage/core/call.h"

struct gc;

struct gc_options {
	unsigned interval_s;       /* between two looks around; 0: only when asked */
	uint64_t bytes_per_second; /* read and written; 0: as fast as it goes */
	unsigned live_percent; /* packs with less of their bytes alive are written anew; 0: 50 */
	/* packs younger than this stay as they are: whoever was told of their chunks may still
	 * count on them */
	int64_t promise_ms;
};

/* What was freed, or would be. Bytes are those of pack files; what catalog and indexes give back
 * comes on top. */
struct gc_report {
	uint64_t packs; /* looked at */
	uint64_t packs_deleted;
	uint64_t packs_compacted;
	/* to be deleted or compacted once uploads and reads that use them are through: gc comes
	 * back to them */
	uint64_t packs_waiting;
	uint64_t bytes; /* of the packs looked at, before */
	uint64_t bytes_freed;
	/* of the catalog, found on the way and set aside; asked rounds alone */
	uint64_t rows_damaged;
	/* of files that Hub clients have sent and no bucket holds (any more): kept for a day
	 * (xet_file.h), unless ends_promises. Asked rounds alone */
	uint64_t bytes_registered;
	/* about: nothing needs them, but they are promised to Hub clients (xorb.h). Asked rounds
	 * alone */
	uint64_t bytes_promised;
	/* kinds of leftovers that could not be swept, as the log says, so that their packs may live
	 * on; likewise */
	uint64_t sweeps_failed;
};

struct gc_request {
	bool dry_run; /* looks and counts, no more */
	/* What Hub clients sent and no version needs goes too, registered files (xet_file.h) and
	 * promised xorbs: who counts on it must send it again. A dry run counts the files in
	 * bytes_registered alone. */
	bool ends_promises;
	unsigned live_percent; /* 0: 90, since whoever asks wants the space */
	struct gc_report report;
};

struct gc *gc_start(struct store *store, const struct gc_options *options);
/* Requests, those to come too, end with busy from here on. */
void gc_quiesce(struct gc *gc);
void gc_stop(struct gc *gc); /* NULL is fine; before the committer and the helpers stop */

/* A call (storage/core/call.h): a whole round, through all packs. busy: the store is closing. */
struct call *gc_call(struct gc *gc, const struct gc_request *request);
/* After its end, failed or not: the request with its report. It lives as long as the call. */
const struct gc_request *gc_result(const struct call *call);
/* The same, waiting. */
int gc_run(struct gc *gc, struct gc_request *request, struct error *err);

#endif
