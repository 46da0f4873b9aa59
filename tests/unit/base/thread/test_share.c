#include "base/thread/share.h"
#include "tests/unit/unit.h"

#include <string.h>

Suite *test_share_suite(void);

enum { LIMIT = 8, RESERVE = 2, STRANGERS = 4, HOLDS = 20 };

struct holder {
	struct share_hold hold; /* must be first */
	int displaced;
};

static const struct share_caller one = {1, SHARE_KEY}, other = {2, SHARE_KEY},
				 third = {3, SHARE_KEY}, root = {4, SHARE_ROOT},
				 stranger = {5, SHARE_STRANGER},
				 another_stranger = {6, SHARE_STRANGER};
static struct share_pool *pool;
static struct metrics *metrics;
static struct holder holders[HOLDS];

static void count_displaced(struct share_hold *hold)
{
	((struct holder *)hold)->displaced++;
}

static void set_up(void)
{
	metrics = metrics_new();
	const struct share_options options = {.limit = LIMIT,
		.reserve = RESERVE,
		.strangers = STRANGERS,
		.metrics = metrics,
		.held = METRIC_WAITS,
		.refused = METRIC_WAITS_REFUSED,
		.displaced = METRIC_WAITS_DISPLACED};
	pool = share_pool_new(&options);
	memset(holders, 0, sizeof(holders));
	for (size_t i = 0; i < HOLDS; i++)
		holders[i].hold.displace = count_displaced;
}

static void tear_down(void)
{
	for (size_t i = 0; i < HOLDS; i++)
		share_give(pool, &holders[i].hold);
	ck_assert_uint_eq(share_held(pool), 0);
	ck_assert_uint_eq(share_displaced(pool), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_WAITS), 0);
	share_pool_free(pool);
	metrics_free(metrics);
}

static bool take(size_t index, struct share_caller caller)
{
	return share_take(pool, &holders[index].hold, caller, 1);
}

/* Takes this number of holds for the caller, from that index on. */
static void fill(size_t from, size_t count, struct share_caller caller)
{
	for (size_t i = from; i < from + count; i++)
		ck_assert_msg(take(i, caller), "the hold %zu was refused", i);
}

static size_t count_displaced_of(size_t from, size_t count)
{
	size_t displaced = 0;
	for (size_t i = from; i < from + count; i++)
		displaced += (size_t)holders[i].displaced;
	return displaced;
}

START_TEST(one_alone_may_have_everything)
{
	fill(0, LIMIT, one);
	ck_assert(!take(LIMIT, one));
	ck_assert_uint_eq(share_held(pool), LIMIT);
	ck_assert_uint_eq(count_displaced_of(0, LIMIT), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_WAITS_REFUSED), 1);
	share_give(pool, &holders[3].hold);
	ck_assert(take(LIMIT, one));
}
END_TEST

/* The second owner gets half, and then each keeps what it has. */
START_TEST(two_end_with_a_half_each)
{
	fill(0, LIMIT, one);
	fill(LIMIT, LIMIT / 2, other);
	ck_assert(!take(LIMIT + LIMIT / 2, other));
	ck_assert_uint_eq(count_displaced_of(0, LIMIT), LIMIT / 2);
	for (size_t i = 0; i < LIMIT / 2; i++)
		ck_assert_msg(holders[i].displaced == 1, "the oldest go first, and %zu did not", i);
	ck_assert(!take(LIMIT + LIMIT / 2, one));
	ck_assert_uint_eq(share_held(pool), LIMIT);
	ck_assert_uint_eq(share_displaced(pool), LIMIT / 2);
	ck_assert_int_eq(metrics_get(metrics, METRIC_WAITS), LIMIT);
	ck_assert_int_eq(metrics_get(metrics, METRIC_WAITS_DISPLACED), LIMIT / 2);
}
END_TEST

START_TEST(the_largest_makes_room)
{
	fill(0, 5, one);
	fill(5, 3, other);
	fill(8, 2, third);
	ck_assert_uint_eq(count_displaced_of(0, 5), 2);
	ck_assert_uint_eq(count_displaced_of(5, 3), 0);
	ck_assert(!take(10, third));
}
END_TEST

START_TEST(what_is_displaced_counts_no_more_and_grows_no_more)
{
	fill(0, LIMIT, one);
	ck_assert(take(LIMIT, other));
	ck_assert_int_eq(holders[0].displaced, 1);
	ck_assert(!take(0, one));
	share_give(pool, &holders[0].hold);
	ck_assert_uint_eq(share_displaced(pool), 0);
	ck_assert(!take(LIMIT + 1, one)); /* its place belongs to the other */
}
END_TEST

/* Displaced holds still exist: together they may be as much as the limit, also for the root key. */
START_TEST(what_is_displaced_and_stays_has_an_end)
{
	fill(0, LIMIT, stranger);
	fill(8, 4, one);
	fill(12, 2, other);
	fill(14, 2, third);
	ck_assert_uint_eq(share_displaced(pool), LIMIT);
	fill(16, RESERVE, root);
	ck_assert(!take(18, root));
	ck_assert(share_is_displaced(pool, &holders[0].hold));
	share_give(pool, &holders[0].hold);
	ck_assert(!share_is_displaced(pool, &holders[18].hold));
	ck_assert(take(18, root));
}
END_TEST

START_TEST(a_hold_grows_and_is_given_back_whole)
{
	ck_assert(share_take(pool, &holders[0].hold, one, 3));
	ck_assert(share_take(pool, &holders[0].hold, one, 4));
	ck_assert(!share_take(pool, &holders[0].hold, one, 2));
	ck_assert_uint_eq(share_held(pool), 7);
	ck_assert(share_take(pool, &holders[1].hold, other, 2)); /* one hold of seven goes for it */
	ck_assert_int_eq(holders[0].displaced, 1);
	ck_assert_uint_eq(share_held(pool), 2);
	share_give(pool, &holders[0].hold);
	share_give(pool, &holders[0].hold);
	ck_assert_uint_eq(share_held(pool), 2);
}
END_TEST

/* The hold that grew last is the youngest. */
START_TEST(what_has_long_not_grown_goes_first)
{
	fill(0, 4, one);
	ck_assert(take(0, one));
	fill(4, 3, other);
	ck_assert(take(7, third));
	ck_assert_int_eq(holders[0].displaced, 0);
	ck_assert_int_eq(holders[1].displaced, 1);
}
END_TEST

START_TEST(more_than_there_is_is_refused)
{
	ck_assert(!share_take(pool, &holders[0].hold, one, LIMIT + 1));
	ck_assert(!share_take(pool, &holders[0].hold, one, UINT64_MAX));
	ck_assert_uint_eq(share_held(pool), 0);
}
END_TEST

START_TEST(root_finds_a_reserve_and_keeps_what_it_has)
{
	fill(0, LIMIT, one);
	fill(LIMIT, RESERVE, root);
	ck_assert_uint_eq(count_displaced_of(0, LIMIT), 0);
	ck_assert(take(LIMIT + RESERVE, root)); /* beyond the reserve others make room */
	ck_assert_uint_eq(count_displaced_of(0, LIMIT), 1);
	for (size_t i = 0; i < LIMIT; i++)
		share_give(pool, &holders[i].hold);
	fill(1, LIMIT - 3, root); /* all but the displaced one */
	ck_assert(!take(LIMIT + 3, one));
	ck_assert_uint_eq(count_displaced_of(LIMIT, 3), 0);
}
END_TEST

START_TEST(strangers_make_room_first)
{
	fill(0, 5, stranger);
	ck_assert(take(5, another_stranger));
	fill(6, 2, one);
	/* strangers hold more than their part, so the largest of them makes room */
	ck_assert(take(8, one));
	ck_assert_uint_eq(count_displaced_of(0, 5), 1);
	fill(9, 1, one);
	ck_assert_uint_eq(count_displaced_of(0, 6), 2);
	ck_assert(!take(10, one)); /* now they do not, and the key is the largest */
}
END_TEST

/* They count as one owner, however few holds each has. */
START_TEST(a_key_comes_before_many_strangers)
{
	for (size_t i = 0; i < LIMIT - 2; i++)
		ck_assert(take(i, (struct share_caller){100 + i, SHARE_STRANGER}));
	fill(LIMIT - 2, 2, one);
	ck_assert(take(LIMIT, one));
	ck_assert_uint_eq(count_displaced_of(0, LIMIT - 2), 1);
	ck_assert(!take(LIMIT + 1, stranger));
}
END_TEST

START_TEST(a_key_and_an_address_of_one_number_are_two)
{
	const struct share_caller alike = {one.id, SHARE_STRANGER};
	fill(0, 4, one);
	fill(4, 4, alike);
	ck_assert(!take(8, one));
	ck_assert(!take(8, alike));
}
END_TEST

/* Connections exist before anybody knows their owner. */
START_TEST(room_is_made_among_those_at_rest_first)
{
	for (size_t i = 0; i < 4; i++)
		share_count(pool, &holders[i].hold, stranger, 1);
	share_move(pool, &holders[0].hold, stranger, true);
	ck_assert(share_make_room(pool));
	ck_assert_int_eq(holders[1].displaced, 1);
	share_move(pool, &holders[2].hold, one, true);
	ck_assert(share_make_room(pool));
	ck_assert_int_eq(holders[3].displaced, 1);
	ck_assert(share_make_room(pool));
	ck_assert_int_eq(holders[0].displaced + holders[2].displaced, 1);
	ck_assert(share_make_room(pool));
	ck_assert(!share_make_room(pool));
	share_move(pool, &holders[0].hold, one, false); /* a displaced hold stays displaced */
	ck_assert(!share_make_room(pool));
	ck_assert_uint_eq(share_displaced(pool), 4);
}
END_TEST

START_TEST(connections_are_counted_beyond_the_limit)
{
	for (size_t i = 0; i < LIMIT + 2; i++)
		share_count(pool, &holders[i].hold, one, 1);
	ck_assert_uint_eq(share_held(pool), LIMIT + 2);
	share_count(pool, &holders[LIMIT + 2].hold, root, 1);
	while (share_make_room(pool))
		;
	ck_assert_uint_eq(share_held(pool), 1);
}
END_TEST

Suite *test_share_suite(void)
{
	Suite *const suite = suite_create("share");
	TCase *const all = tcase_create("all");
	tcase_add_checked_fixture(all, set_up, tear_down);
	tcase_add_test(all, one_alone_may_have_everything);
	tcase_add_test(all, two_end_with_a_half_each);
	tcase_add_test(all, the_largest_makes_room);
	tcase_add_test(all, what_is_displaced_counts_no_more_and_grows_no_more);
	tcase_add_test(all, what_is_displaced_and_stays_has_an_end);
	tcase_add_test(all, a_hold_grows_and_is_given_back_whole);
	tcase_add_test(all, what_has_long_not_grown_goes_first);
	tcase_add_test(all, more_than_there_is_is_refused);
	tcase_add_test(all, root_finds_a_reserve_and_keeps_what_it_has);
	tcase_add_test(all, strangers_make_room_first);
	tcase_add_test(all, a_key_comes_before_many_strangers);
	tcase_add_test(all, a_key_and_an_address_of_one_number_are_two);
	tcase_add_test(all, room_is_made_among_those_at_rest_first);
	tcase_add_test(all, connections_are_counted_beyond_the_limit);
	suite_add_tcase(suite, all);
	return suite;
}
