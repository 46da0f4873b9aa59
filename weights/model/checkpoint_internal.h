/* What a checkpoint is made of, for the two that make one: checkpoint.c from files,
 * memory_checkpoint.c from tensors in memory. */
#ifndef WEIGHTS_MODEL_CHECKPOINT_INTERNAL_H
#define WEIGHTS_MODEL_CHECKPOINT_INTERNAL_H

#include "base/buffer.h"
#include "weights/model/checkpoint.h"

#define CHECKPOINT_SINGLE_NAME "model.safetensors" /* of the only shard */
enum { CHECKPOINT_FILES_MAX = 30000 };

struct checkpoint_entry {
	struct checkpoint_file file; /* the callers' view; its texts are those below */
	char *path;
	char *full_path;
	uint64_t size; /* when the folder was walked */
	struct safetensors *shard;
	bool is_shard;
};

struct checkpoint {
	bool is_folder;
	bool is_in_memory; /* nothing is mapped: the bytes of all files are borrowed */
	const struct checkpoint_choice *choice; /* valid during opening; NULL: all files */
	char *pickle;                           /* the first file like a pickle; NULL: none */
	struct checkpoint_entry *entries;       /* sorted by path */
	size_t count;
	struct schema *schema;
	struct span *tensors; /* in schema order */
	uint64_t bytes;
	struct buffer header; /* in memory only: of the shard */
};

int checkpoint_order_by_path(const void *left, const void *right); /* of entries, for qsort */
/* NULL when there is no such file. The entries must be sorted. */
struct checkpoint_entry *checkpoint_find_entry(
	const struct checkpoint *checkpoint, struct span path);

#endif
