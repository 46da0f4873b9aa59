/* What a publish from memory (publish_memory.c) shares with one from a path (publisher.c). */
#ifndef CLIENT_PUBLISH_PUBLISHER_INTERNAL_H
#define CLIENT_PUBLISH_PUBLISHER_INTERNAL_H

#include "client/publish/publish_forms.h"
#include "client/publish/publisher.h"

uint64_t publisher_next_step(const struct publish_state *state);
/* step_differs or precondition when the order's step or label cannot be the next step's. */
int publisher_check_next(struct publisher *publisher, struct error *err);
int publisher_set_pending(
	struct publisher *publisher, const struct snapshot *snapshot, struct error *err);
/* Sends the pending step, which has these forms, and commits it. 1 when the head has moved, see
 * publish_head_open. Sets the outcome. */
int publisher_send(struct publisher *publisher, const struct snapshot *snapshot,
	struct publish_forms *forms, struct error *err);
/* Notes that the committed step has no copy, because of `failure`. */
void publisher_say_no_copy(const struct publisher *publisher, const struct error *failure);

#endif
