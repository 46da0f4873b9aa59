#include "storage/xet/reconstruction_plan.h"

#include <string.h>

#include "tests/unit/unit.h"

enum { CHUNK = 2048, RUNS_MAX = 4 };

struct run {
	uint8_t xorb; /* 0: the end of the list */
	uint32_t first;
	uint32_t end;
};
/* hub-xet.md 3.5: every chunk has 2048 bytes. */
struct plan_case {
	struct run segments[RUNS_MAX];
	uint64_t from;
	uint64_t to; /* 0: all */
	struct run terms[RUNS_MAX];
	uint64_t skip;
	struct run ranges[RUNS_MAX];
};
static const struct plan_case cases[] = {
	{{{1, 0, 2}, {1, 2, 4}}, 0, 0, {{1, 0, 2}, {1, 2, 4}}, 0, {{1, 0, 4}}},
	{{{1, 0, 3}, {1, 1, 4}}, 0, 0, {{1, 0, 3}, {1, 1, 4}}, 0, {{1, 0, 4}}},
	{{{1, 0, 5}, {1, 1, 3}}, 0, 0, {{1, 0, 5}, {1, 1, 3}}, 0, {{1, 0, 5}}},
	{{{1, 0, 2}, {1, 1, 4}, {1, 3, 6}}, 0, 0, {{1, 0, 2}, {1, 1, 4}, {1, 3, 6}}, 0,
		{{1, 0, 6}}},
	{{{1, 0, 2}, {1, 4, 6}}, 0, 0, {{1, 0, 2}, {1, 4, 6}}, 0, {{1, 0, 2}, {1, 4, 6}}},
	{{{1, 2, 5}, {1, 2, 5}, {1, 2, 5}}, 0, 0, {{1, 2, 5}, {1, 2, 5}, {1, 2, 5}}, 0,
		{{1, 2, 5}}},
	{{{1, 0, 3}, {1, 2, 4}, {1, 6, 8}, {1, 7, 10}}, 0, 0,
		{{1, 0, 3}, {1, 2, 4}, {1, 6, 8}, {1, 7, 10}}, 0, {{1, 0, 4}, {1, 6, 10}}},
	{{{1, 0, 3}, {2, 0, 2}, {1, 3, 5}}, 0, 0, {{1, 0, 3}, {2, 0, 2}, {1, 3, 5}}, 0,
		{{1, 0, 5}, {2, 0, 2}}},
	{{{1, 0, 5}}, 2548, 10240, {{1, 1, 5}}, 500, {{1, 1, 5}}},
	{{{1, 0, 5}}, 4096, 10240, {{1, 2, 5}}, 0, {{1, 2, 5}}},
	{{{1, 0, 5}}, 0, 4596, {{1, 0, 3}}, 0, {{1, 0, 3}}},
	{{{1, 0, 5}}, 4196, 4596, {{1, 2, 3}}, 100, {{1, 2, 3}}},
	{{{1, 0, 5}}, 1948, 2148, {{1, 0, 2}}, 1948, {{1, 0, 2}}},
	{{{1, 0, 5}}, 5120, 10240, {{1, 2, 5}}, 1024, {{1, 2, 5}}},
	{{{1, 0, 4}, {2, 0, 4}}, 2548, 16384, {{1, 1, 4}, {2, 0, 4}}, 500, {{1, 1, 4}, {2, 0, 4}}},
	{{{1, 0, 4}, {2, 0, 4}}, 2048, 6144, {{1, 1, 3}}, 0, {{1, 1, 3}}},
	{{{1, 0, 4}, {2, 0, 4}}, 10240, 14336, {{2, 1, 3}}, 0, {{2, 1, 3}}},
	{{{1, 0, 4}, {2, 0, 4}}, 4096, 12788, {{1, 2, 4}, {2, 0, 3}}, 0, {{1, 2, 4}, {2, 0, 3}}},
};

static struct reconstruction_term term_of(const struct run *run, uint8_t pack)
{
	return (struct reconstruction_term){.xorb = {{run->xorb}},
		.first = run->first,
		.end = run->end,
		.place = {.pack = {{pack}}, .base = 100, .count = 10}};
}

static void add_run(struct reconstruction *plan, struct reconstruction_walk *walk,
	const struct run *run, uint8_t pack)
{
	uint32_t sizes[16];
	for (size_t i = 0; i < 16; i++)
		sizes[i] = CHUNK;
	struct error err = {0};
	const struct reconstruction_term term = term_of(run, pack);
	ck_assert_int_eq(reconstruction_add(plan, walk, &term, sizes, &err), 0);
}

static size_t runs_of(const struct run runs[RUNS_MAX])
{
	size_t count = 0;
	while (count < RUNS_MAX && runs[count].xorb != 0)
		count++;
	return count;
}

START_TEST(the_table_of_the_protocol_holds)
{
	const struct plan_case *const test = &cases[_i];
	struct reconstruction plan = {0};
	struct reconstruction_walk walk = {
		.start = test->from, .end = test->to != 0 ? test->to : UINT64_MAX};
	for (size_t i = 0; i < runs_of(test->segments); i++)
		add_run(&plan, &walk, &test->segments[i], 1);
	reconstruction_merge(&plan);
	ck_assert_uint_eq(walk.skip, test->skip);
	ck_assert_uint_eq(plan.term_count, runs_of(test->terms));
	for (size_t i = 0; i < plan.term_count; i++) {
		ck_assert_uint_eq(plan.terms[i].xorb.bytes[0], test->terms[i].xorb);
		ck_assert_uint_eq(plan.terms[i].first, test->terms[i].first);
		ck_assert_uint_eq(plan.terms[i].end, test->terms[i].end);
		ck_assert_uint_eq(plan.terms[i].bytes,
			CHUNK * (uint64_t)(test->terms[i].end - test->terms[i].first));
	}
	ck_assert_uint_eq(plan.range_count, runs_of(test->ranges));
	for (size_t i = 0; i < plan.range_count; i++) {
		ck_assert_uint_eq(plan.ranges[i].xorb.bytes[0], test->ranges[i].xorb);
		ck_assert_uint_eq(plan.ranges[i].first, test->ranges[i].first);
		ck_assert_uint_eq(plan.ranges[i].end, test->ranges[i].end);
		ck_assert_uint_eq(plan.ranges[i].piece_count, 1);
	}
	reconstruction_release(&plan);
}
END_TEST

/* The same xorb in two packs gives one range. Its pieces adjoin, and each has only chunks that the
 * terms want from its pack. */
START_TEST(a_xorb_of_two_packs_is_one_range_of_pieces)
{
	static const struct run runs[] = {{1, 0, 3}, {1, 2, 6}, {1, 1, 3}, {1, 6, 8}};
	static const uint8_t packs[] = {1, 2, 2, 1};
	struct reconstruction plan = {0};
	struct reconstruction_walk walk = {.end = UINT64_MAX};
	for (size_t i = 0; i < 4; i++)
		add_run(&plan, &walk, &runs[i], packs[i]);
	reconstruction_merge(&plan);
	ck_assert_uint_eq(plan.range_count, 1);
	ck_assert_uint_eq(plan.ranges[0].first, 0);
	ck_assert_uint_eq(plan.ranges[0].end, 8);
	ck_assert_uint_eq(plan.ranges[0].piece_count, 3);
	static const struct run expected[] = {{1, 0, 3}, {2, 3, 6}, {1, 6, 8}};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(plan.pieces[i].place.pack.bytes[0], expected[i].xorb);
		ck_assert_uint_eq(plan.pieces[i].first, expected[i].first);
		ck_assert_uint_eq(plan.pieces[i].end, expected[i].end);
	}
	reconstruction_release(&plan);
}
END_TEST

/* Two files in one plan have their own terms and share ranges. */
START_TEST(files_share_ranges)
{
	static const struct run first = {1, 0, 4};
	static const struct run second = {1, 2, 6};
	struct reconstruction plan = {0};
	struct reconstruction_walk one = {.start = 100, .end = UINT64_MAX};
	struct reconstruction_walk other = {.start = CHUNK + 7, .end = UINT64_MAX};
	add_run(&plan, &one, &first, 1);
	ck_assert_uint_eq(plan.term_count, 1);
	add_run(&plan, &other, &second, 1);
	reconstruction_merge(&plan);
	ck_assert_uint_eq(one.skip, 100);
	ck_assert_uint_eq(other.skip, 7);
	ck_assert_uint_eq(plan.term_count, 2);
	ck_assert_uint_eq(plan.terms[1].first, 3);
	ck_assert_uint_eq(plan.range_count, 1);
	ck_assert_uint_eq(plan.ranges[0].end, 6);
	reconstruction_release(&plan);
}
END_TEST

START_TEST(too_many_places_are_refused)
{
	struct reconstruction plan = {0};
	struct reconstruction_walk walk = {.end = UINT64_MAX};
	const struct run run = {1, 0, 1};
	for (size_t i = 0; i < RECONSTRUCTION_TERMS_MAX; i++)
		add_run(&plan, &walk, &run, 1);
	const uint32_t size = CHUNK;
	const struct reconstruction_term term = term_of(&run, 1);
	struct error err = {0};
	ck_assert_int_eq(reconstruction_add(&plan, &walk, &term, &size, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	reconstruction_merge(&plan);
	ck_assert_uint_eq(plan.range_count, 1);
	reconstruction_release(&plan);
}
END_TEST

Suite *test_reconstruction_plan_suite(void);
Suite *test_reconstruction_plan_suite(void)
{
	Suite *const suite = suite_create("reconstruction_plan");
	TCase *const plain = tcase_create("plain");
	tcase_add_loop_test(
		plain, the_table_of_the_protocol_holds, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(plain, a_xorb_of_two_packs_is_one_range_of_pieces);
	tcase_add_test(plain, files_share_ranges);
	tcase_add_test(plain, too_many_places_are_refused);
	suite_add_tcase(suite, plain);
	return suite;
}
