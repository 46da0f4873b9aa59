/* One rank's part of a step's delta: a file for each shard, with the shard's name, in the format
 * ulp-class. The rank that holds the checkpoint's index also makes the delta's index, which says
 * which file holds which tensor of the model. */
#ifndef CLIENT_PUBLISH_RANK_DELTA_H
#define CLIENT_PUBLISH_RANK_DELTA_H

#include "client/publish/rank_memory.h"
#include "weights/delta/delta.h"

struct rank_delta_params {
	const struct file_ops *files;
	const char *base; /* folder that rank_share_copy made, of the step before */
	const char *next; /* the same, of this step; NULL: it is `memory` */
	const struct rank_memory *memory;
	const char *out; /* folder to make; an old one is removed */
	uint64_t step;
	unsigned threads;
	const struct schema *schema;          /* of base and of next */
	const struct digest128 *next_digests; /* of next's tensors, in schema order */
	/* of all of base's tensors, as they were published; NULL: not known */
	const struct digest128 *base_digest;
	/* the caller's array: of base's tensors, in schema order; NULL: not wanted */
	struct digest128 *out_base_digests;
	struct work_watch *watch; /* counts the bytes of next's shards; NULL: none */
};

/* wrong_base when the base does not have its digest; unsupported when a shard's header or a file
 * other than the shards differs from the base's: only an anchor can carry such a change. */
int rank_delta_make(
	const struct rank_delta_params *params, struct delta_stats *out_stats, struct error *err);

#endif
