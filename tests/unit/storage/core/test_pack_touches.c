#include "storage/core/pack_touches.h"

#include "tests/unit/unit.h"

static size_t due(struct pack_touches *touches, int64_t out[8])
{
	return pack_touches_due(touches, 0, out, 8);
}

START_TEST(packs_are_due_when_much_may_be_gone)
{
	int64_t packs[8];
	struct pack_touches *const touches = pack_touches_new();
	ck_assert_uint_eq(due(touches, packs), 0);
	pack_touches_add(touches, 7, 1); /* never looked at */
	pack_touches_add(touches, 3, 1);
	ck_assert_uint_eq(due(touches, packs), 2);
	ck_assert(packs[0] == 3 && packs[1] == 7);
	ck_assert_uint_eq(pack_touches_due(touches, 3, packs, 8), 1);
	ck_assert_uint_eq(pack_touches_due(touches, 0, packs, 1), 1);
	pack_touches_look(touches, 3);
	pack_touches_look(touches, 7);
	pack_touches_looked(touches, 3, 160);
	pack_touches_looked(touches, 7, 5);
	ck_assert_uint_eq(due(touches, packs), 0);
	pack_touches_add(touches, 3, 9);
	ck_assert_uint_eq(due(touches, packs), 0);
	pack_touches_add(touches, 3, 1); /* a sixteenth */
	pack_touches_add(touches, 7, 1);
	ck_assert_uint_eq(due(touches, packs), 2);
	pack_touches_look(touches, 3);
	pack_touches_add(touches, 3, 10); /* while gc looks */
	pack_touches_looked(touches, 3, 150);
	pack_touches_forget(touches, 7);
	ck_assert_uint_eq(due(touches, packs), 1);
	pack_touches_look(touches, 3);
	pack_touches_looked(touches, 3, 150);
	ck_assert_uint_eq(due(touches, packs), 0);
	uint32_t live;
	ck_assert(pack_touches_live(touches, 3, 200, &live) && live == 150);
	pack_touches_add(touches, 3, 4);
	ck_assert(pack_touches_live(touches, 3, 200, &live) && live == 146);
	pack_touches_add(touches, 3, 1000);
	ck_assert(pack_touches_live(touches, 3, 200, &live) && live == 0);
	ck_assert(!pack_touches_live(touches, 4, 200, &live) && live == 200);
	pack_touches_look(touches, 3);
	pack_touches_again(touches, 3);
	ck_assert(!pack_touches_live(touches, 3, 200, &live) && live == 200);
	ck_assert_uint_eq(due(touches, packs), 1);
	pack_touches_add(NULL, 1, 1);
	pack_touches_free(touches);
}
END_TEST

START_TEST(many_packs_stay_in_order)
{
	int64_t packs[8];
	struct pack_touches *const touches = pack_touches_new();
	for (int64_t i = 1; i <= 1000; i++)
		pack_touches_add(touches, i * 7919 % 1009, 1);
	int64_t after = 0;
	size_t seen = 0;
	for (size_t count; (count = pack_touches_due(touches, after, packs, 8)) > 0; seen += count)
		for (size_t i = 0; i < count; i++) {
			ck_assert_int_gt(packs[i], after);
			after = packs[i];
		}
	ck_assert_uint_eq(seen, 1000);
	pack_touches_free(touches);
}
END_TEST

Suite *test_pack_touches_suite(void);
Suite *test_pack_touches_suite(void)
{
	Suite *const suite = suite_create("pack_touches");
	TCase *const one = tcase_create("pack_touches");
	tcase_add_test(one, packs_are_due_when_much_may_be_gone);
	tcase_add_test(one, many_packs_stay_in_order);
	suite_add_tcase(suite, one);
	return suite;
}
