/* The step that a stepper holds, for its caller: facts, tensors without a copy, and what changed.
 * In a folder it keeps its generation mapped, so it stays valid when later steps come. In memory
 * later steps change its tensors, and it has none any more. It may outlive the stepper. One thread
 * at a time. */
#ifndef CLIENT_FOLLOW_HELD_STEP_H
#define CLIENT_FOLLOW_HELD_STEP_H

#include "client/follow/stepper.h"
#include "weights/model/schema.h"

struct held_step_facts {
	uint64_t number;
	struct digest128 digest;
	char *label;        /* "" when it has none */
	int64_t created_ms; /* since 1970; 0: not known */
	uint64_t newest;    /* of the run, as far as known */
	char *path;         /* the checkpoint's folder; "" when it is in memory */
	char **deltas;      /* paths of those that led here from the step before, in order */
	size_t delta_count; /* 0: it came whole */
	uint64_t fetched_bytes;
};

struct held_step;

/* After a round that succeeded. */
struct held_step *held_step_new(
	struct stepper *stepper, const struct stepper_round *round, struct error *err);
void held_step_free(struct held_step *step); /* NULL is fine */

const struct held_step_facts *held_step_facts(const struct held_step *step);
const struct schema *held_step_schema(const struct held_step *step);
/* The bytes of tensor `index` of the schema; NULL when a later step has changed them. */
const void *held_step_tensor(const struct held_step *step, size_t index);

struct held_step_changes {
	uint64_t *positions; /* rising; they count elements, or bytes where elements are smaller */
	uint8_t *values;     /* the new elements, one after the other */
	size_t count;
};
/* The elements of tensor `index` that differ from the step before. Both arrays are on the heap, the
 * caller's. In a folder the first call opens the generation before, which the step then keeps, too.
 * unsupported when the step came whole, and in memory without keeps_changes; not_found when later
 * steps have come before the first call, and what is needed is gone. */
int held_step_changes(
	struct held_step *step, size_t index, struct held_step_changes *out, struct error *err);

#endif
