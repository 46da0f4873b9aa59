/* Which keys of which buckets a batch may take bytes from. What takes questions to the store is
 * asked beforehand where one answer is enough; the rest is asked key by key, up to a bound, since
 * the committer waits. */
#ifndef API_HUB_SOURCE_ACCESS_H
#define API_HUB_SOURCE_ACCESS_H

#include "api/exchange/exchange.h"
#include "api/hub/batch_lines.h"

struct source_access;
/* For the bucket of the request and those that lines copy from, which get the ids of the buckets
 * that are judged; lies in the exchange's arena. NULL: no_memory. */
struct source_access *source_access_new(
	struct exchange *exchange, const struct batch_lines *lines, struct error *err);
/* Whether the caller may read the key, or its older versions: 1, 0, -1 when it cannot be told. By
 * one thread at a time, while the exchange waits. */
int source_access_allows(struct source_access *access, struct bucket_ref bucket, struct span key,
	bool is_current, struct error *err);

#endif
