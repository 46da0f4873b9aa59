/* A shard on its way into the store, and the exchange that waits for it: until it is done, or for a
 * while at a time. The exchange may end before the shard, which is given up then. The calls are the
 * exchange's thread's. */
#ifndef API_XET_SHARD_WAIT_H
#define API_XET_SHARD_WAIT_H

#include "api/exchange/exchange.h"
#include "storage/xet/shard_put.h"

struct shard_wait;

/* for the bucket and account of its token */
struct shard_wait *shard_wait_open(struct exchange *exchange);
struct shard_put *shard_wait_put(const struct shard_wait *wait);
/* The shard's body is whole: its call starts. */
void shard_wait_finish(struct shard_wait *wait);
bool shard_wait_is_done(const struct shard_wait *wait);
/* Of the shard's call, once it is done. */
int shard_wait_outcome(const struct shard_wait *wait, struct error *err);
/* For NEXT_WAIT or SOURCE_WAIT, behind finish: exchange_wake comes once, when the shard is done, or
 * after `ms` at the latest (0, and whenever the server is stopping: when it is done), or earlier:
 * look. It may have come when this returns. */
void shard_wait_for(struct shard_wait *wait, int64_t ms);
/* Nobody waits any more: the shard is given up, and the wait ends soon. While the exchange waits;
 * from any thread. */
void shard_wait_hang_up(struct shard_wait *wait);
/* At any time but while the exchange waits. NULL is fine. */
void shard_wait_close(struct shard_wait *wait);

#endif
