/* The body of a shard on its way in: kept in memory up to SHARD_SPOOL_MEMORY_BYTES, larger ones in a file of their own in DIR/scratch, which helpers write.
 * The calls are one thread's, all but `ready`. */
#ifndef STORAGE_SHARD_SPOOL_H
#define STORAGE_SHARD_SPOOL_H

#include "base/stream.h"
#include "storage/store.h"

enum { SHARD_SPOOL_MEMORY_BYTES = 1024 * 1024 };

struct shard_spool;

/* `room`: a write that answered SINK_WAIT may be tried again. From a helper; never after free. */
struct shard_spool *shard_spool_new(struct store *store, void (*room)(void *owner), void *owner);
/* too_large over SHARD_MAX_BYTES; a file that could not be written. */
enum sink_result shard_spool_write(struct shard_spool *spool, struct span bytes, struct error *err);
/* The body is whole: `ready` comes once, on a helper. */
void shard_spool_finish(struct shard_spool *spool, void (*ready)(void *owner));
/* Whether the body is over SHARD_SPOOL_MEMORY_BYTES. */
bool shard_spool_is_large(const struct shard_spool *spool);
/* Once ready: the bytes, until free. Waits for the disk. */
int shard_spool_bytes(struct shard_spool *spool, struct span *out, struct error *err);
/* Before finish, or once ready; leaves to a helper what waits for the disk. NULL is fine. */
void shard_spool_free(struct shard_spool *spool);

#endif
