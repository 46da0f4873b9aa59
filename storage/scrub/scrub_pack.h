/* One pack of an open store under scrub: reads its records on the disk, notes those that are
 * damaged (pack_damage.h), and forgets damage that is not there any more. It holds the pack only
 * while it reads, so that gc never waits for the rate of scrub. scrub's thread only. Internal to
 * storage. */
#ifndef STORAGE_SCRUB_SCRUB_PACK_H
#define STORAGE_SCRUB_SCRUB_PACK_H

#include "storage/core/store.h"
#include "storage/core/work_pace.h"
#include "storage/scrub/scrub_state.h"

struct scrub_work {
	struct store *store;
	struct work_pace pace;
	/* Chunks of the pack before this number were looked at. */
	void (*passed)(void *owner, uint32_t chunk);
	void *owner;
	struct scrub_report *report; /* counts bytes and damaged chunks */
};

/* Scans the sealed pack from chunk number `from` on. Returns 1 when it was scanned to its end, or
 * is gone or not sealed yet; 0 when it was written again meanwhile, so that the rest must be
 * scanned in its new file. -1: busy, or why it could not be read. */
int scrub_pack_scan(const struct scrub_work *work, const struct pack_id *pack, uint32_t from,
	struct error *err);

#endif
