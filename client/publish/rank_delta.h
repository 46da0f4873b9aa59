/* One rank's part of a step's delta: a file per shard, under the shard's name, in the ulp-class
 * format; and from the rank that holds the index, the delta's index, which places every tensor of
 * the model. */
#ifndef CLIENT_PUBLISH_RANK_DELTA_H
#define CLIENT_PUBLISH_RANK_DELTA_H

#include "weights/delta/delta.h"

struct rank_delta_params {
	const struct file_ops *files;
	const char *base; /* folders of client/publish/rank_share.h */
	const char *next;
	const char *out; /* made anew; what is there is removed */
	uint64_t step;
	unsigned threads;
	const struct schema *schema;          /* of both */
	const struct digest128 *next_digests; /* of next's tensors, in its order */
	/* of all of base's tensors, which nobody has looked at since; NULL: not known */
	const struct digest128 *base_digest;
};

/* wrong_base when the base is not what its digest says; unsupported when a file other than the
 * shards, or a shard's header, is not the base's: only an anchor carries such changes. */
int rank_delta_make(
	const struct rank_delta_params *params, struct delta_stats *out_stats, struct error *err);

#endif
