/* Lets a stream out of packs in a far place (backend.h) wait where it would block: for the index
 * and the file of a pack, which a helper loads, and for bytes, which the place fetches. Embed it in
 * the stream, zeroed. One thread at a time, beside the wake. Internal to storage. */
#ifndef STORAGE_PACKS_PACK_WAIT_H
#define STORAGE_PACKS_PACK_WAIT_H

#include "base/stream.h"
#include "base/thread/helpers.h"
#include "storage/packs/pack_cache.h"
#include "storage/packs/pack_store.h"

struct pack_wait {
	struct helper_job job; /* first: loads the pack */
	struct helper_lane lane;
	struct pack_store *store; /* NULL: reads block */
	source_wake_fn *wake;
	void *owner;
	/* Set by the stream before a read: it has no bytes to give yet, so a wait may begin. Else a
	 * read that would block only says so. */
	bool may_begin;
	struct pack_id pack;
	struct pack *pinned; /* from the wait to the read after it; NULL: none */
	struct error error;  /* the pack could not be loaded */
	/* the bytes of its file that were fetched for the next read, and the record there that is
	 * read once more */
	uint64_t from;
	uint64_t to;
	uint64_t again;
};
/* What reads return that would block. If `may_begin` is set, wake(owner) comes once, after which
 * the read must be repeated, and the wait must stay until then. */
enum { PACK_WAITS = 1 };

/* From now on reads with this wait do not block. */
void pack_wait_let(
	struct pack_wait *wait, struct pack_store *store, source_wake_fn *wake, void *owner);
void pack_wait_release(struct pack_wait *wait);

/* For all of these `wait` NULL: the caller may block. Pins a pack with its index and file, until
 * pack_wait_unpin. Returns 0, PACK_WAITS or -1. */
int pack_wait_pin(struct pack_wait *wait, struct pack_store *store, const struct pack_id *pack,
	struct pack **out_pinned, struct error *err);
void pack_wait_unpin(struct pack_wait *wait, struct pack_store *store, struct pack *pinned);
/* Before bytes of the pinned pack's file are read. Returns 0 or PACK_WAITS. */
int pack_wait_fetch(struct pack_wait *wait, struct pack *pinned, uint64_t offset, uint64_t length);
/* After a record that lies there was found wrong, the first of a read: what was sent may be wrong
 * and not what is stored, so it is read once more. Returns 0 when the caller must read it again
 * now, PACK_WAITS, or -1 when the failure stands. */
int pack_wait_retry(struct pack_wait *wait, struct pack *pinned, const struct pack_entry *entry,
	const struct error *err);

#endif
