/* A copy on disk of a checkpoint that lies in memory. What the folder has already is used again: a
 * shard with the right header is written in place, and only the tensors that differ. */
#ifndef CLIENT_LOCAL_MEMORY_COPY_H
#define CLIENT_LOCAL_MEMORY_COPY_H

#include "base/file.h"
#include "client/local/kept_mapping.h"
#include "weights/model/checkpoint.h"

struct memory_copy {
	const struct file_ops *files;
	const struct checkpoint *from; /* of memory_checkpoint_open */
	const char *folder;            /* made if needed */
	/* in schema order: the tensors whose bytes are right in a shard that has the right header;
	 * NULL: none is known to be */
	const bool *same;
	/* for folders in memory: a shard that is there is written through it, not through `files`;
	 * NULL: none */
	struct kept_mapping *mapping;
	unsigned threads;         /* 0: one per core */
	struct work_watch *watch; /* counts the bytes of the tensors; NULL: none */
};

/* Makes the folder hold the checkpoint's files and no others. Nothing is synced. After a failure
 * the folder may hold anything. */
int memory_copy_make(const struct memory_copy *copy, struct error *err);

#endif
