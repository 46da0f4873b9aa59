/* Shortest paths in a graph without cycles: links lead only upwards, so going through the steps in
 * falling order settles each of them, and no queue is needed. The array is indexed by the distance
 * from the wanted step and grows as links lead farther down. */
#include "storage/runs/step_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct place {            /* of one step */
	uint64_t bytes;   /* from here to the wanted step */
	int64_t fold;     /* of the link that begins here; 0: a delta */
	uint32_t towards; /* distance of the step that the link leads to */
	uint32_t links;   /* from here to the wanted step */
	bool reached;     /* a path leads from here; the fields above are set */
};

struct step_plan {
	uint64_t want;
	struct place *places; /* index: distance from the wanted step */
	size_t capacity;
	size_t at;      /* distance of the step that step_plan_next gave last */
	size_t reached; /* places that are reached and were not given yet */
	bool begun;     /* step_plan_next gave a step */
	bool found;     /* `best` is set */
	struct step_plan_start best;
};

static uint64_t sum(uint64_t left, uint64_t right);
static bool is_too_expensive(const struct step_plan *plan, uint64_t bytes);
static void make_room(struct step_plan *plan, size_t distance);

struct step_plan *step_plan_new(uint64_t want)
{
	struct step_plan *const plan = memory_new(sizeof(*plan));
	plan->want = want;
	plan->capacity = 64;
	plan->places = memory_new_array(plan->capacity, sizeof(*plan->places));
	plan->places[0].reached = true;
	plan->reached = 1;
	return plan;
}

void step_plan_free(struct step_plan *plan)
{
	if (plan == NULL)
		return;
	free(plan->places);
	free(plan);
}

bool step_plan_next(struct step_plan *plan, uint64_t *out_step)
{
	for (size_t at = plan->begun ? plan->at + 1 : 0; plan->reached > 0; at++) {
		ASSERT(at < plan->capacity);
		if (!plan->places[at].reached)
			continue;
		plan->begun = true;
		plan->at = at;
		plan->reached--;
		*out_step = plan->want - at;
		return true;
	}
	return false;
}

void step_plan_start(struct step_plan *plan, bool from_have, uint64_t bytes)
{
	ASSERT(plan->begun);
	const struct place *const place = &plan->places[plan->at];
	const uint64_t all = sum(place->bytes, bytes);
	if (is_too_expensive(plan, all))
		return;
	plan->found = true;
	plan->best = (struct step_plan_start){.from_have = from_have,
		.step = plan->want - plan->at,
		.bytes = all,
		.links = place->links};
}

void step_plan_edge(struct step_plan *plan, uint64_t from, uint64_t bytes, int64_t fold)
{
	ASSERT(plan->begun && from < plan->want - plan->at);
	const struct place here = plan->places[plan->at];
	const uint64_t all = sum(here.bytes, bytes);
	const uint64_t distance = plan->want - from;
	if (is_too_expensive(plan, all) || distance > STEP_PLAN_STEPS_MAX ||
		here.links + 1 >= STEP_LINKS_MAX)
		return;
	make_room(plan, (size_t)distance);
	struct place *const place = &plan->places[distance];
	if (place->reached && place->bytes <= all)
		return;
	plan->reached += !place->reached;
	*place = (struct place){.bytes = all,
		.fold = fold,
		.towards = (uint32_t)plan->at,
		.links = here.links + 1,
		.reached = true};
}

bool step_plan_best(const struct step_plan *plan, struct step_plan_start *out)
{
	*out = plan->best;
	return plan->found;
}

uint64_t step_plan_link(const struct step_plan *plan, uint64_t at, int64_t *out_fold)
{
	ASSERT(at < plan->want && plan->places[plan->want - at].reached);
	const struct place *const place = &plan->places[plan->want - at];
	ASSERT(place->towards < plan->want - at);
	*out_fold = place->fold;
	return plan->want - place->towards;
}

static uint64_t sum(uint64_t left, uint64_t right)
{
	uint64_t bytes;
	return __builtin_add_overflow(left, right, &bytes) ? UINT64_MAX : bytes;
}

static bool is_too_expensive(const struct step_plan *plan, uint64_t bytes)
{
	return plan->found && bytes >= plan->best.bytes;
}

static void make_room(struct step_plan *plan, size_t distance)
{
	size_t capacity = plan->capacity;
	ASSERT(distance <= STEP_PLAN_STEPS_MAX);
	while (capacity <= distance)
		capacity *= 2;
	if (capacity == plan->capacity)
		return;
	plan->places = memory_grow(plan->places, capacity, sizeof(*plan->places));
	memset(plan->places + plan->capacity, 0,
		(capacity - plan->capacity) * sizeof(*plan->places));
	plan->capacity = capacity;
}
