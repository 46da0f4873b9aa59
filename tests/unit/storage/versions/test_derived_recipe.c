#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "storage/versions/derived_recipe.h"

enum { ENCODED_MAX = 100000 };

static struct derived_recipe *example(void)
{
	struct derived_recipe *const recipe = derived_recipe_new();
	const size_t base = derived_recipe_source(recipe, 11, 1000);
	const size_t delta = derived_recipe_source(recipe, 12, 300);
	ck_assert_uint_eq(derived_recipe_source(recipe, 11, 1000), base);
	derived_recipe_add_literal(recipe, span_text("header"));
	derived_recipe_add_copy(recipe, base, 6, 94);
	derived_recipe_add_copy(recipe, base, 100, 100); /* it continues where the last one ended */
	derived_recipe_add_copy(recipe, base, 300, 0);
	derived_recipe_add_delta(recipe, DTYPE_BF16,
		&(const struct derived_range){.source = base, .offset = 200, .length = 800},
		&(const struct derived_range){.source = delta, .offset = 0, .length = 300});
	return recipe;
}

START_TEST(test_round_trip)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, ENCODED_MAX);
	struct derived_recipe *const recipe = example();
	ck_assert_uint_eq(derived_recipe_size(recipe), 1000);
	ck_assert_int_eq(derived_recipe_encode(recipe, &bytes, &err), 0);
	ck_assert_uint_eq(bytes.len, 24 + 2 * 16 + 3 * 40 + 6);
	struct derived_recipe *const read = derived_recipe_parse(buffer_span(&bytes), &err);
	ck_assert_msg(read != NULL, "%s", err.text);
	ck_assert_uint_eq(read->source_count, 2);
	ck_assert_int_eq(read->sources[1].version, 12);
	ck_assert_uint_eq(read->piece_count, 3);
	ck_assert_int_eq(read->pieces[0].kind, DERIVED_LITERAL);
	ck_assert_uint_eq(read->pieces[1].end, 200);
	ck_assert_int_eq(read->pieces[2].dtype, DTYPE_BF16);
	ck_assert_uint_eq(read->pieces[2].delta_length, 300);
	ck_assert(span_equal_text(buffer_span(&read->literals), "header"));
	derived_recipe_free(read);
	derived_recipe_free(recipe);
	buffer_release(&bytes);
}
END_TEST

/* Offsets and sizes beyond 32 bits, with bytes before and behind them. */
START_TEST(test_objects_of_many_gigabytes)
{
	enum { GIB_BITS = 30 };
	const uint64_t gib = (uint64_t)1 << GIB_BITS;
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, ENCODED_MAX);
	struct derived_recipe *recipe = derived_recipe_new();
	const size_t base = derived_recipe_source(recipe, ((int64_t)1 << 40) + 11, 9 * gib);
	const size_t delta = derived_recipe_source(recipe, ((int64_t)1 << 40) + 12, 7 * gib);
	derived_recipe_add_copy(recipe, base, 3 * gib + 5, 5 * gib + 2);
	derived_recipe_add_delta(recipe, DTYPE_F32,
		&(const struct derived_range){
			.source = base, .offset = 5 * gib + 4, .length = gib * 4 - 4},
		&(const struct derived_range){
			.source = delta, .offset = 6 * gib + 1, .length = gib - 1});
	ck_assert_int_eq(derived_recipe_encode(recipe, &bytes, &err), 0);
	struct derived_recipe *read = derived_recipe_parse(buffer_span(&bytes), &err);
	ck_assert_msg(read != NULL, "%s", err.text);
	ck_assert_uint_eq(derived_recipe_size(read), 9 * gib - 2);
	ck_assert_int_eq(read->sources[1].version, ((int64_t)1 << 40) + 12);
	ck_assert(read->sources[0].size == 9 * gib && read->sources[1].size == 7 * gib);
	ck_assert(read->pieces[0].offset == 3 * gib + 5 && read->pieces[0].end == 5 * gib + 2);
	ck_assert(read->pieces[1].offset == 5 * gib + 4 && read->pieces[1].end == 9 * gib - 2);
	ck_assert(read->pieces[1].delta_offset == 6 * gib + 1 &&
		read->pieces[1].delta_length == gib - 1);
	ck_assert(read->pieces[1].source == 0 && read->pieces[1].delta == 1);
	ck_assert_uint_eq(derived_recipe_find(read, 5 * gib + 1), 0);
	ck_assert_uint_eq(derived_recipe_find(read, 5 * gib + 2), 1);
	derived_recipe_free(read);
	derived_recipe_free(recipe);
	buffer_release(&bytes);
}
END_TEST

START_TEST(test_pieces_are_found)
{
	struct derived_recipe *const recipe = example();
	static const struct {
		uint64_t offset;
		size_t piece;
	} cases[] = {{0, 0}, {5, 0}, {6, 1}, {199, 1}, {200, 2}, {999, 2}, {1000, 3}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(derived_recipe_find(recipe, cases[i].offset), cases[i].piece);
	derived_recipe_free(recipe);
}
END_TEST

static void check_unsound(struct derived_recipe *recipe)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, ENCODED_MAX);
	ck_assert_int_eq(derived_recipe_encode(recipe, &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_release(&bytes);
	derived_recipe_free(recipe);
}

START_TEST(test_pieces_outside_of_their_sources)
{
	struct derived_recipe *recipe = example();
	derived_recipe_add_copy(recipe, 0, 1, 1000);
	check_unsound(recipe);
	recipe = example();
	derived_recipe_add_copy(recipe, 0, UINT64_MAX, 2);
	check_unsound(recipe);
	recipe = example();
	derived_recipe_add_copy(recipe, 2, 0, 1);
	check_unsound(recipe);
	recipe = example();
	derived_recipe_add_delta(recipe, DTYPE_BF16,
		&(const struct derived_range){.source = 0, .offset = 0, .length = 10},
		&(const struct derived_range){.source = 1, .offset = 300, .length = 1});
	check_unsound(recipe);
	recipe = example();
	derived_recipe_add_delta(recipe, DTYPE_BF16,
		&(const struct derived_range){
			.source = 0, .offset = 0, .length = 11 /* half an element */},
		&(const struct derived_range){.source = 1, .offset = 0, .length = 10});
	check_unsound(recipe);
	recipe = example();
	derived_recipe_settle(recipe, 1, 13, 299);
	check_unsound(recipe);
	recipe = example();
	derived_recipe_add_copy(recipe, 0, 1, 1000);
	/* a right size does not mend the unsound piece */
	derived_recipe_settle(recipe, 1, 13, 300);
	check_unsound(recipe);
	recipe = derived_recipe_new();
	derived_recipe_add_copy(
		recipe, derived_recipe_source(recipe, 0, DERIVED_SIZE_UNKNOWN), 0, 300);
	derived_recipe_add_copy(recipe, 0, 0, 200);
	derived_recipe_settle(recipe, 0, 13, 299); /* the first piece, not the last */
	check_unsound(recipe);
}
END_TEST

START_TEST(test_too_many_sources)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, ENCODED_MAX);
	struct derived_recipe *const recipe = derived_recipe_new();
	for (int64_t i = 0; i <= DERIVED_SOURCES_MAX; i++)
		derived_recipe_add_copy(recipe, derived_recipe_source(recipe, i + 1, 10), 0, 10);
	ck_assert_int_eq(derived_recipe_encode(recipe, &bytes, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	derived_recipe_free(recipe);
	buffer_release(&bytes);
}
END_TEST

/* Parsing bytes that break a rule gives an error and nothing else. The sanitizers see reads out of
 * bounds. */
START_TEST(test_damaged_bytes)
{
	static const struct {
		size_t at;
		unsigned bytes;
		uint64_t value;
	} faults[] = {
		{0, 1, 2},
		{2, 2, 65},
		{2, 2, 1},
		{2, 2, 0},
		{4, 4, 4},
		{4, 4, UINT32_MAX},
		{8, 8, 1001},
		{16, 8, 5},
		{16, 8, UINT64_MAX},
		{24, 8, 12},
		{32, 8, 999},
		{48, 8, 0},
		{56, 8, 0},
		{56, 8, 7},
		{56, 8, 300},
		{64, 1, 3},
		{96 + 10, 2, 2},
		{96 + 16, 8, 900},
		{96 + 16, 8, UINT64_MAX},
		{136, 8, 200},
		{136, 8, INT64_MAX},
		{136 + 9, 1, DTYPE_COUNT},
		{136 + 12, 2, 9},
		{136 + 24, 8, 1},
		{136 + 32, 8, 0},
		{136 + 32, 8, 301},
	};
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, ENCODED_MAX);
	struct derived_recipe *const recipe = example();
	ck_assert_int_eq(derived_recipe_encode(recipe, &bytes, &err), 0);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		uint8_t *const copy = malloc(bytes.len);
		memcpy(copy, bytes.data, bytes.len);
		little_endian_put(copy + faults[i].at, faults[i].value, faults[i].bytes);
		ck_assert_msg(derived_recipe_parse(span_of(copy, bytes.len), &err) == NULL,
			"fault %zu", i);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		free(copy);
	}
	for (size_t len = 0; len < bytes.len; len++)
		ck_assert(derived_recipe_parse(span_of(bytes.data, len), &err) == NULL);
	derived_recipe_free(recipe);
	buffer_release(&bytes);
}
END_TEST

Suite *test_derived_recipe_suite(void);
Suite *test_derived_recipe_suite(void)
{
	Suite *const suite = suite_create("derived_recipe");
	TCase *const tests = tcase_create("derived_recipe");
	tcase_add_test(tests, test_round_trip);
	tcase_add_test(tests, test_objects_of_many_gigabytes);
	tcase_add_test(tests, test_pieces_are_found);
	tcase_add_test(tests, test_pieces_outside_of_their_sources);
	tcase_add_test(tests, test_too_many_sources);
	tcase_add_test(tests, test_damaged_bytes);
	suite_add_tcase(suite, tests);
	return suite;
}
