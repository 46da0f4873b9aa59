/* What one of N ranks publishes from memory: a checkpoint with one shard, which is named after the
 * rank as transformers would name it ("model-00001-of-00002.safetensors" is that of rank 0 of 2),
 * and on rank 0 the files beside it. One of these may be the index of all shards; it is kept apart,
 * because the checkpoint of one rank lacks the shards that it names. Deltas need it, so rank 0 of
 * several must have it; that of a single rank is made here. */
#ifndef CLIENT_PUBLISH_RANK_MEMORY_H
#define CLIENT_PUBLISH_RANK_MEMORY_H

#include "client/publish/publisher.h"
#include "client/publish/rank_publisher.h"

struct rank_memory { /* stays in its place: its parts point to each other */
	struct memory_parts parts;
	struct memory_file *files;
	char shard[64];
	bool has_index;
	struct span index;
	struct buffer made; /* the index that was made here */
};

/* `given` is borrowed. invalid when tensors or files break a rule of memory_checkpoint.h, and when
 * the index is missing or does not name the shard for one of its tensors. Release it also after a
 * failure. */
int rank_memory_init(struct rank_memory *memory, const struct memory_parts *given,
	const struct rank_order *rank, struct error *err);
void rank_memory_release(struct rank_memory *memory); /* a zeroed one is fine */

/* Finds the bytes of a file beside the shard by the name that it has in a copy (rank_share.h):
 * RANK_SHARE_INDEX is that of the index. NULL when there is none. */
const struct span *rank_memory_file(const struct rank_memory *memory, const char *name);
size_t rank_memory_file_count(const struct rank_memory *memory);
/* Opens the shard alone, as a checkpoint of one file. */
struct checkpoint *rank_memory_open_shard(const struct rank_memory *memory, struct error *err);

struct rank_memory_copy {
	const struct file_ops *files;
	const char *folder; /* made if needed */
	/* see memory_copy.h */
	const bool *same;
	struct kept_mapping *mapping;
	unsigned threads;
	struct work_watch *watch;
};
/* Makes the folder the copy that rank_share.h describes. Nothing is synced. */
int rank_memory_write(
	const struct rank_memory *memory, const struct rank_memory_copy *copy, struct error *err);

#endif
