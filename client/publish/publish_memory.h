/* Publishing tensors in memory (order->memory). A step that needs only a delta is encoded straight
 * from the caller's tensors: no copy of them is made, and each is read once for the delta and once
 * more for the digest of its file. Afterwards what changed is written over the copy in the state
 * folder, which the delta was made against, so that the copy is the next baseline. Any other step
 * is written into the state folder first, which then is what is uploaded and the next baseline. */
#ifndef CLIENT_PUBLISH_PUBLISH_MEMORY_H
#define CLIENT_PUBLISH_PUBLISH_MEMORY_H

#include "client/publish/publisher.h"

enum { PUBLISH_MEMORY_WHOLE = 2 };

/* invalid when tensors or files break a rule of memory_checkpoint.h. */
int publish_memory_check(const struct publish_order *order, struct error *err);
/* Publishes the order's tensors as a delta against the committed step. 1 when the head has moved.
 * PUBLISH_MEMORY_WHOLE, with nothing sent, when the step must go whole, or may be there already:
 * then publish_memory_take. */
int publish_memory_delta(struct publisher *publisher, struct error *err);
/* Writes the order's tensors to publish_state_new_path, for publish_source_take_copy. */
int publish_memory_take(struct publisher *publisher, struct error *err);

#endif
