/* gc gives space back: it deletes packs that nothing leads to, and writes packs with few live
 * chunks again without the rest (invariants 4, 5). It works on sealed packs; the open shared pack
 * is sealed first where much of it is dead. The chunks of a promised xorb (storage/xet/xorb.h)
 * count as needed; once the promise is over, the next round over all packs finds the pack.
 *
 * gc has one thread, which starts with the store. Its rounds look only at packs that lost
 * references, and after each start and once a day at all packs. It keeps to a rate in bytes a
 * second. Any part of its work may be cut off at any moment: the next start finds everything again.
 * gc_pack.h describes the way of one pack. Any thread. */
#ifndef STORAGE_UPKEEP_GC_H
#define STORAGE_UPKEEP_GC_H

#include "storage/core/call.h"

struct gc;

struct gc_options {
	unsigned interval_s;       /* between two rounds; 0: only on request */
	uint64_t bytes_per_second; /* read and written; 0: as fast as it can */
	unsigned live_percent; /* packs with less of their bytes alive are written again; 0: 50 */
	/* Packs younger than this stay as they are: clients that were told of their chunks may
	 * still count on them. */
	int64_t promise_ms;
};

/* The space that was freed, or would be in a dry run. Bytes are those of pack files; what the
 * catalog and the indexes give back comes on top. */
struct gc_report {
	uint64_t packs; /* looked at */
	uint64_t packs_deleted;
	uint64_t packs_compacted;
	/* To be deleted or compacted once uploads and reads that use them have ended: gc comes back
	 * to them. */
	uint64_t packs_waiting;
	uint64_t bytes; /* of the packs looked at, before the round */
	uint64_t bytes_freed;
	/* Damaged rows of the catalog, found on the way and set aside. Only in requested rounds. */
	uint64_t rows_damaged;
	/* Files that Hub clients have sent and no bucket holds, or no bucket any more. They are
	 * kept for a day (xet_file.h), unless ends_promises. Only in requested rounds. */
	uint64_t bytes_registered;
	/* An estimate: chunks that nothing needs, but that are promised to Hub clients (xorb.h).
	 * Only in requested rounds. */
	uint64_t bytes_promised;
	/* Kinds of leftovers that could not be swept (the log says why), so that their packs may
	 * stay. Only in requested rounds. */
	uint64_t sweeps_failed;
};

struct gc_request {
	bool dry_run; /* looks and counts, and changes nothing */
	/* Also ends what Hub clients sent and no version needs: registered files (xet_file.h) and
	 * promised xorbs. Clients that count on them must send them again. A dry run only counts
	 * the files, in bytes_registered. */
	bool ends_promises;
	unsigned live_percent; /* 0: 90, since the requester wants the space */
	struct gc_report report;
};

struct gc *gc_start(struct store *store, const struct gc_options *options);
/* From here on requests end with busy, those to come too. Returns at once. */
void gc_quiesce(struct gc *gc);
void gc_stop(
	struct gc *gc); /* NULL is fine. Must come before the committer and the helpers stop. */

/* A call (storage/core/call.h): one round, through all packs. busy: the store is closing. */
struct call *gc_call(struct gc *gc, const struct gc_request *request);
/* The request with its report, once the call has ended, well or not. It lives as long as the
 * call. */
const struct gc_request *gc_result(const struct call *call);
/* The last round that ended well since the start, its own or a requested one but no dry run, and
 * when. False when there is none yet. */
bool gc_last(struct gc *gc, struct gc_request *out, int64_t *out_ended_ms);
/* The same as gc_call for a thread that may wait. */
int gc_run(struct gc *gc, struct gc_request *request, struct error *err);

#endif
