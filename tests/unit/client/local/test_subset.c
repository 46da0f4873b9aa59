/* The tensors that belong to a glob or to a rank: all readers and versions must agree on them. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/subset.h"

/* Tensors of 10, 20, 30 and 40 bytes. */
static const char MODEL[] = "a.w\0U8\0"
			    "10\0"
			    "b.w\0U8\0"
			    "20\0"
			    "c.w\0U8\0"
			    "30\0"
			    "d.norm\0U8\0"
			    "40";

static struct schema *schema;

static void set_up(void)
{
	struct error err = {0};
	schema = schema_parse(span_of(MODEL, sizeof MODEL), &err);
	ck_assert_msg(schema != NULL, "%s", err.text);
}

static void tear_down(void)
{
	schema_free(schema);
}

static const struct {
	const char *glob, *rank;
	const char *chosen; /* '+' for each tensor that belongs to it; "": none does */
	const char *text;
} CASES[] = {
	{NULL, NULL, "++++", NULL},
	{NULL, "0/1", "++++", "rank 0/1"},
	{NULL, "0/2", "+++-", "rank 0/2"},
	{NULL, "1/2", "---+", "rank 1/2"},
	{NULL, "0/4", "++--", "rank 0/4"},
	{NULL, "1/4", "--+-", "rank 1/4"},
	{NULL, "2/4", "", "rank 2/4"},
	{NULL, "3/4", "---+", "rank 3/4"},
	{"*.w", NULL, "+++-", "*.w"},
	{"a.*,d.norm", NULL, "+--+", "a.*,d.norm"},
	{",c.w,", NULL, "--+-", ",c.w,"},
	{"[b-c].?", NULL, "-++-", "[b-c].?"},
	{"a", NULL, "", "a"}, /* the whole name, not a piece of it */
	{"w", NULL, "", "w"},
};

START_TEST(a_subset_has_its_tensors)
{
	struct error err = {0};
	struct subset subset;
	ck_assert_int_eq(subset_init(&subset, CASES[_i].glob, CASES[_i].rank, &err), 0);
	if (CASES[_i].text == NULL)
		ck_assert_ptr_null(subset.text);
	else
		ck_assert_str_eq(subset.text, CASES[_i].text);
	bool *const chosen = subset_select(&subset, schema, &err);
	ck_assert((chosen != NULL) == (CASES[_i].chosen[0] != '\0'));
	ck_assert(chosen != NULL ||
		(err.kind == ERROR_NOT_FOUND && strstr(err.text, CASES[_i].text) != NULL));
	for (size_t i = 0; i < 4 && chosen != NULL; i++)
		ck_assert_msg(chosen[i] == (CASES[_i].chosen[i] == '+'), "tensor %zu", i);
	free(chosen);
	subset_release(&subset);
}
END_TEST

/* Models with three tensors each. */
static const unsigned SIZES[][3] = {
	{10, 20, 0},
	{30, 0, 0},
	{0, 10, 20},
	{10, 0, 20},
	{0, 0, 0},
};

static struct schema *schema_of(const unsigned sizes[3])
{
	static const char *const NAMES[] = {"a", "b", "c"};
	struct error err = {0};
	struct buffer text;
	buffer_init(&text, 1000);
	for (size_t i = 0; i < 3; i++) {
		buffer_add(&text, NAMES[i], sizeof "a");
		buffer_add(&text, "U8", sizeof "U8");
		buffer_format(&text, "%u", sizes[i]);
		buffer_add(&text, "", 1);
	}
	struct schema *const made = schema_parse(buffer_span(&text), &err);
	ck_assert_msg(made != NULL, "%s", err.text);
	buffer_release(&text);
	return made;
}

static void count_owners(const struct schema *model, const char *rank, unsigned owners[3])
{
	struct error err = {0};
	struct subset subset;
	ck_assert_int_eq(subset_init(&subset, NULL, rank, &err), 0);
	bool *const chosen = subset_select(&subset, model, &err);
	for (size_t i = 0; i < 3 && chosen != NULL; i++)
		owners[i] += chosen[i] ? 1 : 0;
	free(chosen);
	subset_release(&subset);
}

/* Together the ranks have the whole model, including tensors without bytes in any place. */
START_TEST(each_tensor_belongs_to_one_rank)
{
	struct schema *const model = schema_of(SIZES[_i]);
	for (unsigned ranks = 1; ranks <= 4; ranks++) {
		unsigned owners[3] = {0};
		for (unsigned i = 0; i < ranks; i++) {
			char rank[16];
			snprintf(rank, sizeof rank, "%u/%u", i, ranks);
			count_owners(model, rank, owners);
		}
		for (size_t i = 0; i < 3; i++)
			ck_assert_msg(
				owners[i] == 1, "tensor %zu of %u ranks: %u", i, ranks, owners[i]);
	}
	schema_free(model);
}
END_TEST

static const struct {
	const char *text;
	bool is_good;
	uint64_t rank, ranks;
} RANKS[] = {
	{"0/1", true, 0, 1},
	{"7/8", true, 7, 8},
	{"65535/65536", true, 65535, 65536},
	{"0/65537", false, 0, 0},
	{"8/8", false, 0, 0},
	{"0/0", false, 0, 0},
	{"/8", false, 0, 0},
	{"1/", false, 0, 0},
	{"1", false, 0, 0},
	{"", false, 0, 0},
	{"-1/8", false, 0, 0},
	{"1/8/9", false, 0, 0},
	{"a/8", false, 0, 0},
};

START_TEST(a_rank_is_one_of_so_many)
{
	uint64_t rank = 0;
	uint64_t ranks = 0;
	ck_assert(subset_parse_rank(RANKS[_i].text, &rank, &ranks) == RANKS[_i].is_good);
	ck_assert(!RANKS[_i].is_good || (rank == RANKS[_i].rank && ranks == RANKS[_i].ranks));
}
END_TEST

Suite *test_subset_suite(void);

Suite *test_subset_suite(void)
{
	Suite *const suite = suite_create("subset");
	TCase *const tests = tcase_create("subset");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_subset_has_its_tensors, 0, sizeof CASES / sizeof CASES[0]);
	tcase_add_loop_test(
		tests, each_tensor_belongs_to_one_rank, 0, sizeof SIZES / sizeof SIZES[0]);
	tcase_add_loop_test(tests, a_rank_is_one_of_so_many, 0, sizeof RANKS / sizeof RANKS[0]);
	suite_add_tcase(suite, tests);
	return suite;
}
