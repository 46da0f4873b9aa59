/* A request's body on its way in, for what is read only when it is whole: kept in memory up to
 * BODY_SPOOL_MEMORY_BYTES, a larger one in a file of its own in DIR/scratch, which helpers write.
 * The calls are one thread's, all but `ready`. Internal to storage. */
#ifndef STORAGE_OBJECTS_BODY_SPOOL_H
#define STORAGE_OBJECTS_BODY_SPOOL_H

#include "base/stream.h"
#include "storage/core/store.h"

enum { BODY_SPOOL_MEMORY_BYTES = 1024 * 1024 };

struct body_spool;
struct body_spool_params {
	const char *what; /* for errors: "A shard"; a literal */
	size_t bytes_max;
	/* a write that answered SINK_WAIT may be tried again. From a helper; never after free */
	void (*room)(void *owner);
	void *owner; /* of room, and of finish's `ready` */
};

struct body_spool *body_spool_new(struct store *store, const struct body_spool_params *params);
/* too_large over bytes_max; a file that could not be written. */
enum sink_result body_spool_write(struct body_spool *spool, struct span bytes, struct error *err);
/* The body is whole: `ready` comes once, on a helper. */
void body_spool_finish(struct body_spool *spool, void (*ready)(void *owner));
/* Whether the body is over BODY_SPOOL_MEMORY_BYTES. */
bool body_spool_is_large(const struct body_spool *spool);
/* Once ready: the bytes, until free. Waits for the disk. */
int body_spool_bytes(struct body_spool *spool, struct span *out, struct error *err);
/* Before finish, or once ready; leaves to a helper what waits for the disk. NULL is fine. */
void body_spool_free(struct body_spool *spool);

#endif
