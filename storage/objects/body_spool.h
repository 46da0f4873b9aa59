/* The body of a request that can be read only when it is whole. Up to BODY_SPOOL_MEMORY_BYTES it
 * stays in memory; a larger one goes into a file in a folder of DIR/scratch, which helpers write.
 * All functions are called by one thread; `room` and `ready` run on helpers. Internal to
 * storage. */
#ifndef STORAGE_OBJECTS_BODY_SPOOL_H
#define STORAGE_OBJECTS_BODY_SPOOL_H

#include "base/stream.h"
#include "storage/core/store.h"

enum { BODY_SPOOL_MEMORY_BYTES = 1024 * 1024 };

struct body_spool;
struct body_spool_params {
	const char *what; /* for messages, such as "A shard"; a literal */
	size_t bytes_max;
	/* A write that answered SINK_WAIT may be tried again. Called on a helper, never after
	 * free. */
	void (*room)(void *owner);
	void *owner; /* of `room` and of finish's `ready` */
};

struct body_spool *body_spool_new(struct store *store, const struct body_spool_params *params);
/* SINK_WAIT while the piece before is being written. Fails with too_large over bytes_max, or when
 * the file could not be written. */
enum sink_result body_spool_write(struct body_spool *spool, struct span bytes, struct error *err);
/* The body is whole. `ready` comes once, on a helper. */
void body_spool_finish(struct body_spool *spool, void (*ready)(void *owner));
/* Whether the body is over BODY_SPOOL_MEMORY_BYTES. */
bool body_spool_is_large(const struct body_spool *spool);
/* After `ready`: gives the bytes, which live until free; -1 when the body could not be stored.
 * Reading them may wait for the disk. */
int body_spool_bytes(struct body_spool *spool, struct span *out, struct error *err);
/* Before finish, or after `ready`. Leaves to a helper everything that waits for the disk. NULL is
 * fine. */
void body_spool_free(struct body_spool *spool);

#endif
