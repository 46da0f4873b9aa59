/* A checkpoint made of tensors and small files that lie in memory. It has one shard, as
 * transformers would write it: the reference writer's header with {"format":"pt"}, and behind it
 * the tensors in the order of the header. The tensors stay where they are: nothing is copied but
 * the header and the names. For such a checkpoint checkpoint_file has no full_path, and for the
 * shard neither bytes nor data. All else of checkpoint.h holds. */
#ifndef WEIGHTS_MODEL_MEMORY_CHECKPOINT_H
#define WEIGHTS_MODEL_MEMORY_CHECKPOINT_H

#include "weights/model/checkpoint.h"

struct memory_tensor {
	struct span name;
	enum dtype dtype;
	const uint64_t *shape;
	unsigned rank;
	struct span data; /* row-major, without gaps, at any address */
};
struct memory_file {
	const char *path; /* relative, with '/' between parts */
	struct span bytes;
};
struct memory_parts {
	const struct memory_tensor *tensors; /* in any order */
	size_t tensor_count;
	const struct memory_file *files; /* in any order */
	size_t file_count;
	const char *shard; /* its name, directly in the folder; NULL: "model.safetensors" */
};

/* The bytes of tensors and files are borrowed until checkpoint_close and must not change. invalid
 * with the name of a tensor when its bytes are not as many as dtype and shape say, or when the name
 * is given twice; with the path of a file when the path is not valid, is given twice, leads through
 * another file, or belongs to a shard or an index. */
struct checkpoint *memory_checkpoint_open(const struct memory_parts *parts, struct error *err);

#endif
