/* The search for the cheapest path over steps, in bytes. It goes from the wanted step downwards.
 * Deltas and folds lead upwards, so a step is settled once all steps above it are. A path that
 * cannot become cheaper than the best one so far is not followed. Pure: it knows no catalog. One
 * thread at a time. */
#ifndef STORAGE_RUNS_STEP_PLAN_H
#define STORAGE_RUNS_STEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/step_message.h"

enum { STEP_PLAN_STEPS_MAX = 1 << 20 }; /* how far below the wanted step a path may begin */

struct step_plan;
struct step_plan *step_plan_new(uint64_t want);
void step_plan_free(struct step_plan *plan);

/* Gives the next step to look at: the highest one that leads to `want` and was not given before.
 * False: none is left, the search is complete. */
bool step_plan_next(struct step_plan *plan, uint64_t *out_step);
/* This and step_plan_edge tell the plan about the step that step_plan_next gave last. A path can
 * start there, which costs `bytes` (0 for the step that the reader has). */
void step_plan_start(struct step_plan *plan, bool from_have, uint64_t bytes);
/* A delta (fold 0) or fold turns the lower step `from` into this step. It is ignored when it gives
 * no cheaper path, begins too far below or would make the path longer than STEP_LINKS_MAX. */
void step_plan_edge(struct step_plan *plan, uint64_t from, uint64_t bytes, int64_t fold);

/* The start of the best path. */
struct step_plan_start {
	bool from_have; /* the reader has `step`; otherwise the path begins with its anchor */
	uint64_t step;
	uint64_t bytes; /* of the whole path */
	uint32_t links; /* after the start */
};
bool step_plan_best(const struct step_plan *plan, struct step_plan_start *out);
/* The link of the path that begins at the step `at`, below `want`. Returns the step that it leads
 * to; *out_fold is the fold that it is (0: the delta). */
uint64_t step_plan_link(const struct step_plan *plan, uint64_t at, int64_t *out_fold);

#endif
