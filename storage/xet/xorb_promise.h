/* Xorbs are promised: until then at least they stay whole and are found by their hashes. What an
 * answer about a chunk names, and what a client is told it need not send. Durable once the call has
 * ended. */
#ifndef STORAGE_XET_XORB_PROMISE_H
#define STORAGE_XET_XORB_PROMISE_H

#include "storage/core/call.h"
#include "storage/xet/xorb.h"

enum { XORB_PROMISE_MAX = 1000 };

/* `places` (copied, up to XORB_PROMISE_MAX) are whole runs that an upload or an ingest has made
 * into xorbs of these hashes; a hash that has a row already keeps its place. not_found: a pack is
 * going, or lacks chunks, and none of them is promised. */
struct call *xorb_promise_call(
	struct store *store, const struct xorb_place *places, size_t count, int64_t until_ms);
/* A xorb that is stored is promised as if it were uploaded now, once a helper has read and verified
 * all of it: not_found also when it is damaged. NULL with not_found when it is not stored. */
struct call *xorb_promise_renew_call(
	struct store *store, const struct chunk_id *hash, struct error *err);

#endif
