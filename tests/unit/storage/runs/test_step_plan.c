/* Compares the plan with a search that tries every path, on random graphs. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "storage/runs/step_plan.h"

enum { STEPS_MAX = 14, FOLDS_MAX = 24, GRAPHS = 400 };

struct graph {
	unsigned want;
	bool has_anchor[STEPS_MAX];
	bool has_delta[STEPS_MAX];
	uint64_t anchor[STEPS_MAX];
	uint64_t delta[STEPS_MAX];
	int have; /* -1: nothing */
	size_t fold_count;
	struct {
		unsigned from, to;
		uint64_t bytes;
	} folds[FOLDS_MAX];
};

static uint64_t random_state;

static uint64_t any(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

static void make_graph(struct graph *graph, unsigned seed)
{
	random_state = seed;
	*graph = (struct graph){
		.want = (unsigned)any(STEPS_MAX), .have = (int)any(STEPS_MAX + 1) - 1};
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		graph->has_anchor[i] = any(4) == 0;
		graph->anchor[i] = 200 + any(200);
		graph->has_delta[i] = i > 0 && any(8) != 0;
		graph->delta[i] = any(100);
	}
	for (size_t i = 0; i < any(FOLDS_MAX); i++) {
		const unsigned to = 1 + (unsigned)any(STEPS_MAX - 1);
		graph->folds[graph->fold_count].from = (unsigned)any(to);
		graph->folds[graph->fold_count].to = to;
		graph->folds[graph->fold_count++].bytes = any(200);
	}
}

/* The fewest bytes from `at` to the wanted step; UINT64_MAX: there is no path. */
static uint64_t cheapest(const struct graph *graph, unsigned at)
{
	uint64_t best = at == graph->want ? 0 : UINT64_MAX;
	for (size_t i = 0; i < graph->fold_count; i++) {
		if (graph->folds[i].from != at || graph->folds[i].to > graph->want)
			continue;
		const uint64_t rest = cheapest(graph, graph->folds[i].to);
		if (rest != UINT64_MAX && rest + graph->folds[i].bytes < best)
			best = rest + graph->folds[i].bytes;
	}
	if (at < graph->want && graph->has_delta[at + 1]) {
		const uint64_t rest = cheapest(graph, at + 1);
		if (rest != UINT64_MAX && rest + graph->delta[at + 1] < best)
			best = rest + graph->delta[at + 1];
	}
	return best;
}

static uint64_t cheapest_of_all(const struct graph *graph)
{
	uint64_t best = UINT64_MAX;
	for (unsigned at = 0; at <= graph->want; at++) {
		const uint64_t rest = cheapest(graph, at);
		if (rest == UINT64_MAX)
			continue;
		if (graph->have == (int)at && rest < best)
			best = rest;
		if (graph->has_anchor[at] && rest + graph->anchor[at] < best)
			best = rest + graph->anchor[at];
	}
	return best;
}

static struct step_plan *plan_graph(const struct graph *graph)
{
	struct step_plan *const plan = step_plan_new(graph->want);
	uint64_t last = UINT64_MAX;
	uint64_t step;
	while (step_plan_next(plan, &step)) {
		ck_assert(step < last || last == UINT64_MAX);
		last = step;
		if (graph->have == (int)step)
			step_plan_start(plan, true, 0);
		if (graph->has_anchor[step])
			step_plan_start(plan, false, graph->anchor[step]);
		if (graph->has_delta[step])
			step_plan_edge(plan, step - 1, graph->delta[step], 0);
		for (size_t i = 0; i < graph->fold_count; i++)
			if (graph->folds[i].to == step)
				step_plan_edge(plan, graph->folds[i].from, graph->folds[i].bytes,
					(int64_t)i + 1);
	}
	return plan;
}

/* The sum of the links that the plan names. */
static uint64_t walk(const struct graph *graph, const struct step_plan *plan,
	const struct step_plan_start *start)
{
	uint64_t bytes = start->from_have ? 0 : graph->anchor[start->step];
	unsigned links = 0;
	ck_assert(start->from_have ? graph->have == (int)start->step
				   : graph->has_anchor[start->step]);
	for (uint64_t at = start->step; at != graph->want; links++) {
		int64_t fold;
		const uint64_t to = step_plan_link(plan, at, &fold);
		ck_assert(to > at && to <= graph->want);
		if (fold == 0) {
			ck_assert(to == at + 1 && graph->has_delta[to]);
			bytes += graph->delta[to];
		} else {
			ck_assert(graph->folds[fold - 1].from == at &&
				graph->folds[fold - 1].to == to);
			bytes += graph->folds[fold - 1].bytes;
		}
		at = to;
	}
	ck_assert_uint_eq(links, start->links);
	return bytes;
}

START_TEST(the_way_found_is_the_cheapest_there_is)
{
	struct graph graph;
	unsigned found = 0;
	for (unsigned i = 0; i < GRAPHS; i++) {
		struct step_plan_start start;
		make_graph(&graph, (unsigned)_i * GRAPHS + i);
		struct step_plan *const plan = plan_graph(&graph);
		const uint64_t best = cheapest_of_all(&graph);
		ck_assert(step_plan_best(plan, &start) == (best != UINT64_MAX));
		if (best != UINT64_MAX) {
			ck_assert_uint_eq(start.bytes, best);
			ck_assert_uint_eq(walk(&graph, plan, &start), best);
			found++;
		}
		step_plan_free(plan);
	}
	ck_assert(found > GRAPHS / 4 && found < GRAPHS);
}
END_TEST

START_TEST(steps_that_cannot_become_cheaper_are_not_looked_at)
{
	struct step_plan *const plan = step_plan_new(1000000);
	uint64_t step;
	unsigned looked = 0;
	while (step_plan_next(plan, &step)) {
		looked++;
		if (step == 999990)
			step_plan_start(plan, false, 5);
		step_plan_edge(plan, step - 1, 1, 0);
	}
	/* 11 steps down to the anchor; for 4 more the sum stays below the path that was found */
	ck_assert_uint_eq(looked, 15);
	step_plan_free(plan);
}
END_TEST

START_TEST(ways_are_at_most_so_long)
{
	struct step_plan *plan = step_plan_new(3 * STEP_LINKS_MAX);
	struct step_plan_start start;
	uint64_t step;
	while (step_plan_next(plan, &step))
		if (step > 0)
			step_plan_edge(plan, step - 1, 1, 0);
		else
			step_plan_start(plan, false, 1);
	ck_assert(!step_plan_best(plan, &start));
	step_plan_free(plan);
	plan = step_plan_new(3 * STEP_LINKS_MAX);
	while (step_plan_next(plan, &step))
		if (step >= 16)
			step_plan_edge(plan, step - 16, 1, 7);
		else
			step_plan_start(plan, false, 1);
	ck_assert(step_plan_best(plan, &start));
	ck_assert_uint_eq(start.links, 3 * STEP_LINKS_MAX / 16);
	step_plan_free(plan);
	plan = step_plan_new((uint64_t)STEP_PLAN_STEPS_MAX + 2);
	ck_assert(step_plan_next(plan, &step));
	step_plan_edge(plan, 1, 1, 3);
	ck_assert(!step_plan_next(plan, &step));
	step_plan_free(plan);
}
END_TEST

Suite *test_step_plan_suite(void);
Suite *test_step_plan_suite(void)
{
	Suite *const suite = suite_create("step_plan");
	TCase *const tests = tcase_create("step_plan");
	tcase_add_loop_test(tests, the_way_found_is_the_cheapest_there_is, 0, 5);
	tcase_add_test(tests, steps_that_cannot_become_cheaper_are_not_looked_at);
	tcase_add_test(tests, ways_are_at_most_so_long);
	suite_add_tcase(suite, tests);
	return suite;
}
