/* Xorbs are promised: until then at least they stay whole and are found by their hashes. What an
 * answer about a chunk names, and what a client is told it need not send. Durable once the outcome
 * is known. */
#ifndef STORAGE_XET_XORB_PROMISE_H
#define STORAGE_XET_XORB_PROMISE_H

#include "storage/xet/xorb.h"

enum { XORB_PROMISE_MAX = 1000 };

struct xorb_promise;
/* `places` (copied, up to XORB_PROMISE_MAX) are whole runs that an upload or an ingest has made
 * into xorbs of these hashes; a hash that has a row already keeps its place. done comes once, from
 * the committer or before start returns. */
struct xorb_promise *xorb_promise_start(struct store *store, const struct xorb_place *places,
	size_t count, int64_t until_ms, void (*done)(void *owner), void *owner);
/* A xorb that is stored is promised as if it were uploaded now, once a helper has read and verified
 * all of it: a damaged one counts as missing. NULL with not_found when it is not stored. */
struct xorb_promise *xorb_promise_renew(struct store *store, const struct chunk_id *hash,
	void (*done)(void *owner), void *owner, struct error *err);
/* After done. 0: all of them are promised. not_found: a pack is going, lacks chunks or (renewed) is
 * damaged, and none is. */
int xorb_promise_outcome(const struct xorb_promise *promise, struct error *err);
void xorb_promise_free(struct xorb_promise *promise); /* after done; NULL is fine */

#endif
