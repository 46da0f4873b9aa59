/* The opened tensors and files of the committed step, which the next delta is made against. They
 * come from the trainer's own checkpoint of that step if it still lies there unchanged. Otherwise
 * they come from the state folder: a copy of the base, and the deltas behind it, which are applied
 * while the tensors are read. The reader must prove by the digest that the tensors are the
 * committed step's. */
#ifndef CLIENT_PUBLISH_PUBLISH_BASE_H
#define CLIENT_PUBLISH_PUBLISH_BASE_H

#include "client/publish/publish_state.h"
#include "weights/delta/delta_stack.h"
#include "weights/delta/model_files.h"
#include "weights/model/checkpoint.h"

struct publish_base {
	struct tensor_source *tensors; /* of the committed step */
	const struct model_files *files;
	struct checkpoint *checkpoint; /* from here on: owned, publish_base_close frees it */
	struct tensor_source *level_0;
	struct model_files files_0;
	struct delta_stack *stack;
};

/* Opens the trainer's own checkpoint. False when it is gone or has changed. The state must have a
 * committed step. */
bool publish_base_find(struct publish_base *base, const struct publish_state *state);
/* Opens the copy in the state folder, which must have a committed step; wrong_base when the folder
 * has no usable copy. */
int publish_base_open(
	struct publish_base *base, const struct publish_state *state, struct error *err);
void publish_base_close(struct publish_base *base); /* a zeroed one is fine */

#endif
