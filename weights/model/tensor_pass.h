/* One walk over all tensors of a source, or of two sources of one schema side by side, on many
 * threads. Threads share out the tensors. A tensor that would keep one thread busy after the others
 * have ended is split into its blocks. Digests are made in passing, while the bytes are in the
 * cache; threads that share a tensor take turns at its digest, in order of the blocks. */
#ifndef WEIGHTS_MODEL_TENSOR_PASS_H
#define WEIGHTS_MODEL_TENSOR_PASS_H

#include "weights/model/tensor_source.h"
#include "weights/model/work_watch.h"

struct tensor_block {
	size_t tensor;
	uint64_t number;  /* of the block in the tensor */
	uint64_t at;      /* its first byte in the tensor */
	struct span base; /* empty without a base */
	struct span next; /* both are valid until the function returns */
};
/* `worker` is the number of the thread, from 0; callers use it to find the thread's own memory. */
typedef int tensor_pass_fn(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);

struct tensor_pass {
	struct tensor_source *base; /* NULL: walk only `next` */
	struct tensor_source *next;
	unsigned threads; /* 0: one per core */
	/* one thread walks each tensor, from front to back; otherwise the blocks of a large tensor
	 * come in any order */
	bool keeps_tensors;
	tensor_pass_fn *block; /* called for each block; NULL: only make digests */
	/* a block is hashed before `block` gets it, for functions that overwrite the base's bytes;
	 * otherwise a block for which `block` fails is not hashed */
	bool hashes_first;
	void *state;
	struct work_watch *watch; /* gets the counts of bytes of `next`; NULL: none */
	/* true for tensors whose bytes are the same in `base` and `next`, so that `next` is not
	 * hashed; NULL: unknown */
	const bool *same;
	/* digests of the base that are proven already; NULL: none */
	const struct digest128 *known_base;
	/* results in schema order; NULL: not wanted. base_digests is not written when known_base
	 * is given */
	struct digest128 *base_digests;
	struct digest128 *next_digests;
};

unsigned tensor_pass_workers(const struct tensor_pass *pass);
/* The error is that of the first block that failed, in order of tensors and blocks. */
int tensor_pass_run(const struct tensor_pass *pass, struct error *err);

#endif
