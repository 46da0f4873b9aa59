/* What an applied delta must produce: every file of the result, where its bytes come from, and where each tensor goes. Making one proves
 * all that can be proven before a byte is written. Read-only once made. */
#ifndef WEIGHTS_RESULT_PLAN_H
#define WEIGHTS_RESULT_PLAN_H

#include "weights/delta_reader.h"

struct result_file {
	struct span path;
	uint64_t size;
	bool is_shard;
	uint8_t length[8];   /* of a shard: what stands before its JSON */
	struct span json;
	struct span bytes;   /* of another file */
	bool is_mapped;      /* `bytes` is ours to unmap */
	struct safetensors *parsed; /* of a shard */
};

struct result_place {
	size_t file;
	uint64_t at; /* absolute */
};

struct result_plan {
	bool is_folder;
	struct result_file *files;
	size_t file_count;
	struct result_place *places; /* in schema order */
};

/* wrong_base when the base lacks a file that the result takes from it, or has another one; digest_mismatch when a file that comes with the
 * delta is not what it should be; invalid when the result would not have the base's tensors. *plan needs result_plan_release in any case.
 * The base and the reader must outlive it. */
int result_plan_make(struct result_plan *plan, const struct checkpoint *base, const struct delta_reader *reader, const char *delta_path,
	struct error *err);
void result_plan_release(struct result_plan *plan);
uint64_t result_plan_bytes(const struct result_plan *plan);

#endif
