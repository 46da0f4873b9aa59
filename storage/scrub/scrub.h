/* scrub reads all packs on the disk, past the page cache, and verifies every record: damage is
 * found before somebody needs the bytes, while there may be another copy. Chunks that it finds
 * damaged are noted as if a reader had met them (pack_damage.h), and are healed where the store has
 * the same bytes once more (chunk_heal.h).
 *
 * scrub has one thread, which starts with the store. A round goes through the sealed packs in the
 * order of their numbers, at a rate that covers the store in the period in any case; its place
 * survives a restart (scrub_state.h). A pack that still grows is reached by a later round. A store
 * that is only read is scrubbed too; then nothing is healed, and the place is not kept. Any
 * thread. */
#ifndef STORAGE_SCRUB_SCRUB_H
#define STORAGE_SCRUB_SCRUB_H

#include "storage/core/call.h"
#include "storage/scrub/chunk_wants.h"
#include "storage/scrub/scrub_state.h"

struct scrub;

struct scrub_options {
	/* A round begins so long after the one before it began; 0: rounds only on request. */
	int64_t period_ms;
	int64_t first_ms; /* after the start, before scrub works by itself */
	/* read and verified; more when the store could not be covered in the period otherwise */
	uint64_t bytes_per_second;
	int64_t watch_ms; /* between two looks at whether there is work; 0: a minute */
};

struct scrub_request {
	bool resumes;              /* goes on with the round that is in progress, if any */
	uint64_t bytes_per_second; /* 0: as fast as it can */
	struct scrub_report report;
	uint64_t damaged_now; /* chunks known to be damaged at the end */
};

struct scrub_status {
	struct scrub_state state;
	uint64_t store_bytes; /* of all packs, when the present round last looked */
	int64_t next_ms;      /* wall time of the next round; 0: only on request */
};

struct scrub *scrub_start(struct store *store, const struct scrub_options *options);
/* From here on requests end with busy, those to come too. Returns at once. */
void scrub_quiesce(struct scrub *scrub);
/* NULL is fine. Must come before the committer and the helpers stop. */
void scrub_stop(struct scrub *scrub);
void scrub_look(struct scrub *scrub, struct scrub_status *out);

/* What workers that hold a step can heal: chunk_wants_ask. */
size_t scrub_ask(struct scrub *scrub, const struct want_place *place, struct chunk_want *out,
	size_t capacity);
/* The same as chunk_wants_take. The chunk is healed soon after, on scrub's thread. */
int scrub_take(struct scrub *scrub, const struct want_place *place, const struct chunk_id *id,
	struct span bytes, struct error *err);

/* A call (storage/core/call.h): the rest of one round. busy: the store is closing; the next round
 * goes on from there. */
struct call *scrub_call(struct scrub *scrub, const struct scrub_request *request);
/* The request with its report, once the call has ended, well or not. It lives as long as the
 * call. */
const struct scrub_request *scrub_result(const struct call *call);
/* The same for a thread that may wait. */
int scrub_run(struct scrub *scrub, struct scrub_request *request, struct error *err);

#endif
