/* The cheapest way over steps, in bytes: found from the wanted step downwards. Deltas and folds
 * lead upwards, so each step is settled once all steps above it were; what cannot become cheaper
 * than the best start is followed no further. Pure: it knows no catalog. One thread's. */
#ifndef STORAGE_RUNS_STEP_PLAN_H
#define STORAGE_RUNS_STEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/step_message.h"

enum { STEP_PLAN_STEPS_MAX = 1 << 20 }; /* how far below the wanted step a way may begin */

struct step_plan;
struct step_plan *step_plan_new(uint64_t want);
void step_plan_free(struct step_plan *plan);

/* The next step to look at, the highest that leads to `want` and was not looked at; false: there is
 * none left, the plan is done. */
bool step_plan_next(struct step_plan *plan, uint64_t *out_step);
/* All of the step that step_plan_next gave. `bytes`: what starting there costs (a held step: 0). */
void step_plan_start(struct step_plan *plan, bool from_have, uint64_t bytes);
/* A delta (fold 0) or fold that turns `from`, below the step, into it. One that leads to no cheaper
 * way, lies too far below or would make the way longer than STEP_LINKS_MAX is not taken. */
void step_plan_edge(struct step_plan *plan, uint64_t from, uint64_t bytes, int64_t fold);

/* What was found: the start, and then the links upwards. */
struct step_plan_start {
	bool from_have; /* else from the anchor of `step` */
	uint64_t step;
	uint64_t bytes; /* of the whole way */
	uint32_t links; /* behind the start */
};
bool step_plan_best(const struct step_plan *plan, struct step_plan_start *out);
/* The link that begins at `at`, a step of the way below `want`: where it leads, and the fold that
 * it is (0: the delta). */
uint64_t step_plan_link(const struct step_plan *plan, uint64_t at, int64_t *out_fold);

#endif
