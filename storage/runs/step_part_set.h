/* The parts of a step, made one manifest. Internal to storage; one thread at a time. */
#ifndef STORAGE_RUNS_STEP_PART_SET_H
#define STORAGE_RUNS_STEP_PART_SET_H

#include "weights/model/schema.h"
#include "wire/part_message.h"

struct step_part_set;

/* All memory is the arena's; what it cannot hold is too_large in the end. NULL when there is none
 * for the set itself. */
struct step_part_set *step_part_set_new(uint64_t parts, struct arena *arena);
/* Parts in rising order. `part` and its texts stay alive. parts_mismatch when it has other forms
 * than the parts before. */
int step_part_set_add(struct step_part_set *set, uint64_t number, const struct part_message *part,
	struct error *err);
/* The step without digest and tensor digests: label and metadata of the first part; the objects of
 * all, no name twice; the files of all, a path twice only when it says the same. parts_mismatch. */
int step_part_set_merge(struct step_part_set *set, struct step_message *out, struct error *err);
/* Tensor digests in the schema's order and the checkpoint's digest. schema_mismatch naming the
 * first tensor that two parts have, that none has or that is not in the schema. */
int step_part_set_fill(struct step_part_set *set, const struct schema *schema,
	struct step_message *step, struct error *err);

#endif
