/* Makes the part of a step that a sharded engine holds, from the part that it already holds and the
 * deltas since then, or from an anchor. The result is a folder with model.safetensors (the chosen
 * tensors), every file of the step that is not a shard (a .safetensors only from a subfolder), and
 * .schema: the names, dtypes and shapes of the whole model (weights/model/schema.h), which the next
 * step needs. Every tensor is proven by its own digest in the step's manifest. */
#ifndef CLIENT_TRANSFER_SUBSET_MAKE_H
#define CLIENT_TRANSFER_SUBSET_MAKE_H

#include "base/file.h"
#include "client/local/subset.h"
#include "wire/step_message.h"

struct subset_make_params {
	const struct file_ops *files;
	const struct subset *subset;
	/* at least one link; its files are in `work` (client/transfer/path_fetch.h) */
	const struct path_message *path;
	const char *work;
	/* a folder that subset_make made; NULL when the path begins with an anchor */
	const char *base;
	struct digest128 base_digest; /* of the whole checkpoint that `base` is a part of */
	/* of the step that the path leads to: 16 bytes for each tensor, in schema order */
	struct span tensor_digests;
	unsigned threads;
};

/* `to` must not exist. Its content is synced, its name is not. Fails with wrong_base,
 * digest_mismatch, corrupt or invalid for the same reasons as delta_apply, naming tensor and step;
 * with unsupported when the step was published without digests of its tensors. */
int subset_make(const struct subset_make_params *params, const char *to, struct error *err);

#endif
