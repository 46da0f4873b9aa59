/* Decides from which keys of which buckets a batch may take bytes. Answers that hold for a whole
 * bucket are asked before the batch. The others are asked key by key, up to a limit, because the
 * committer waits for them. */
#ifndef API_HUB_SOURCE_ACCESS_H
#define API_HUB_SOURCE_ACCESS_H

#include "api/exchange/exchange.h"
#include "api/hub/batch_lines.h"

struct source_access;
/* For the bucket of the request and the sources of its lines. Each source gets the id of the bucket
 * that was judged. The result is in the exchange's arena. NULL on failure: no_memory, or the store
 * failed. */
struct source_access *source_access_new(
	struct exchange *exchange, const struct batch_lines *lines, struct error *err);
/* Whether the caller may read the key, or its older versions: 1, 0, or -1 when that could not be
 * found out. One thread at a time, while the exchange waits. */
int source_access_allows(struct source_access *access, struct bucket_ref bucket, struct span key,
	bool is_current, struct error *err);

#endif
