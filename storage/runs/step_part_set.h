/* The parts of a step, merged into one manifest. Internal to storage; one thread at a time. */
#ifndef STORAGE_RUNS_STEP_PART_SET_H
#define STORAGE_RUNS_STEP_PART_SET_H

#include "weights/model/schema.h"
#include "wire/part_message.h"

struct step_part_set;

/* All memory comes from the arena; if it runs out, a later call fails with too_large. NULL when
 * there is no room for the set itself. */
struct step_part_set *step_part_set_new(uint64_t parts, struct arena *arena);
/* Adds the parts in rising order of their numbers. `part` and its texts must stay alive.
 * parts_mismatch when it has other forms than the parts before. */
int step_part_set_add(struct step_part_set *set, uint64_t number, const struct part_message *part,
	struct error *err);
/* Merges the parts into a step without digest and tensor digests. Label and metadata are those of
 * the first part. No two objects may have one name; two files may have one path if they are the
 * same. Fails with parts_mismatch, or busy when parts are missing. */
int step_part_set_merge(struct step_part_set *set, struct step_message *out, struct error *err);
/* Fills in the tensor digests, in the schema's order, and the checkpoint's digest. schema_mismatch
 * names the first tensor that two parts have, that no part has or that is not in the schema. */
int step_part_set_fill(struct step_part_set *set, const struct schema *schema,
	struct step_message *step, struct error *err);

#endif
