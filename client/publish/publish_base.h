/* What the next delta is made from: the committed step's tensors and files, opened. Either the
 * trainer's own checkpoint of that step, where it still lies unchanged, or what the state folder
 * has: a copy of the base and the deltas behind it, laid over it while they are read. Whether the
 * tensors are the committed step's is for the reader to prove by their digest. */
#ifndef CLIENT_PUBLISH_PUBLISH_BASE_H
#define CLIENT_PUBLISH_PUBLISH_BASE_H

#include "client/publish/publish_state.h"
#include "weights/delta/delta_stack.h"
#include "weights/delta/model_files.h"
#include "weights/model/checkpoint.h"

struct publish_base {
	struct tensor_source *tensors; /* of the committed step */
	const struct model_files *files;
	struct checkpoint *checkpoint; /* the rest is publish_base_close's */
	struct tensor_source *level_0;
	struct model_files files_0;
	struct delta_stack *stack;
};

/* False when the trainer's own checkpoint is gone or changed. */
bool publish_base_find(struct publish_base *base, const struct publish_state *state);
/* From the state folder; wrong_base when it has nothing whole. */
int publish_base_open(
	struct publish_base *base, const struct publish_state *state, struct error *err);
void publish_base_close(struct publish_base *base); /* a zeroed one is fine */

#endif
