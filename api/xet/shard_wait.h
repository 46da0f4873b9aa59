/* An exchange's wait for the upload of a shard, until the shard is done or for some time. The
 * exchange may end before the shard, which is then given up. Only the exchange's thread makes the
 * calls, unless one says otherwise. */
#ifndef API_XET_SHARD_WAIT_H
#define API_XET_SHARD_WAIT_H

#include "api/exchange/exchange.h"
#include "storage/xet/shard_put.h"

struct shard_wait;

/* Opens an upload for the bucket and the account of the exchange's token. */
struct shard_wait *shard_wait_open(struct exchange *exchange);
struct shard_put *shard_wait_put(const struct shard_wait *wait);
/* Starts the shard's call, when its body is whole. */
void shard_wait_finish(struct shard_wait *wait);
bool shard_wait_is_done(const struct shard_wait *wait);
/* The outcome of the shard's call, once it is done. */
int shard_wait_outcome(const struct shard_wait *wait, struct error *err);
/* Waits, for NEXT_WAIT or SOURCE_WAIT; after shard_wait_finish. exchange_wake is called once: when
 * the shard is done, after `ms` at the latest, or earlier, so look again. With 0, and whenever the
 * server is stopping, only when the shard is done. It may have been called before this returns. */
void shard_wait_for(struct shard_wait *wait, int64_t ms);
/* Gives the shard up, so that the wait ends soon. While the exchange waits; any thread. */
void shard_wait_hang_up(struct shard_wait *wait);
/* Gives up a shard that is not done. Not while the exchange waits. NULL is fine. */
void shard_wait_close(struct shard_wait *wait);

#endif
