/* Promises of xorbs: a promised xorb stays whole, and is found by its hash, at least until the
 * promise ends. Promises are given to xorbs that an answer about a chunk names, and to xorbs that a
 * client is told it need not send. A promise is durable once the call has ended. */
#ifndef STORAGE_XET_XORB_PROMISE_H
#define STORAGE_XET_XORB_PROMISE_H

#include "storage/core/call.h"
#include "storage/xet/xorb.h"

enum { XORB_PROMISE_MAX = 1000 };

/* Promises the xorbs in `places` (copied, 1 to XORB_PROMISE_MAX), which are the whole runs that an
 * upload or an ingest has made into xorbs of these hashes. A hash that has a row already keeps its
 * place. not_found: a pack is being deleted or lacks chunks; then none is promised. */
struct call *xorb_promise_call(
	struct store *store, const struct xorb_place *places, size_t count, int64_t until_ms);
/* Promises a stored xorb as if it were uploaded now, after a helper has read and verified all of
 * it; not_found also when it is damaged. NULL with not_found when it is not stored. */
struct call *xorb_promise_renew_call(
	struct store *store, const struct chunk_id *hash, struct error *err);

#endif
