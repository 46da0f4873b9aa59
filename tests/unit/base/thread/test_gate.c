#include "base/thread/gate.h"

#include <stddef.h>

#include "tests/unit/unit.h"

Suite *test_gate_suite(void);

struct visitor {
	struct gate_visitor base; /* must be first */
	bool passed;
	bool was_turned_away;
};

static void pass(struct gate_visitor *visitor)
{
	((struct visitor *)visitor)->passed = true;
}

static void turn_away(struct gate_visitor *visitor)
{
	((struct visitor *)visitor)->was_turned_away = true;
}

START_TEST(the_first_that_came_is_the_next)
{
	struct gate gate;
	struct visitor visitors[5];
	gate_init(&gate, 2);
	for (size_t i = 0; i < 5; i++) {
		visitors[i] = (struct visitor){.base.pass = pass};
		gate_enter(&gate, &visitors[i].base);
	}
	for (size_t inside = 2; inside <= 5; inside++) {
		for (size_t i = 0; i < 5; i++)
			ck_assert(visitors[i].passed == (i < inside));
		gate_leave(&gate);
	}
	struct visitor late = {.base.pass = pass};
	gate_leave(&gate);
	gate_enter(&gate, &late.base);
	ck_assert(late.passed);
	gate_leave(&gate);
	gate_release(&gate);
}
END_TEST

START_TEST(a_closed_gate_turns_away)
{
	struct gate gate;
	struct visitor visitors[6];
	gate_init(&gate, 2);
	ck_assert(!gate_is_closed(&gate));
	for (size_t i = 0; i < 6; i++)
		visitors[i] = (struct visitor){.base = {.pass = pass, .turn_away = turn_away}};
	for (size_t i = 0; i < 4; i++)
		gate_enter(&gate, &visitors[i].base);
	gate_close(&gate);
	ck_assert(gate_is_closed(&gate));
	gate_enter(&gate, &visitors[4].base);
	gate_leave(&gate);
	gate_close(&gate);
	gate_enter(&gate, &visitors[5].base); /* there would be room */
	gate_leave(&gate);
	for (size_t i = 0; i < 6; i++) {
		ck_assert(visitors[i].passed == (i < 2));
		ck_assert(visitors[i].was_turned_away == (i >= 2));
	}
	gate_release(&gate);
}
END_TEST

START_TEST(who_waits_may_withdraw)
{
	struct gate gate;
	struct visitor visitors[5];
	gate_init(&gate, 1);
	for (size_t i = 0; i < 4; i++) {
		visitors[i] = (struct visitor){.base = {.pass = pass, .turn_away = turn_away}};
		gate_enter(&gate, &visitors[i].base);
	}
	ck_assert(!gate_withdraw(&gate, &visitors[0].base)); /* it is inside */
	ck_assert(gate_withdraw(&gate, &visitors[2].base));  /* in the middle */
	ck_assert(gate_withdraw(&gate, &visitors[3].base));  /* the last */
	ck_assert(!gate_withdraw(&gate, &visitors[3].base));
	visitors[4] = (struct visitor){.base = {.pass = pass, .turn_away = turn_away}};
	gate_enter(&gate, &visitors[4].base);
	gate_leave(&gate);
	ck_assert(visitors[1].passed && !visitors[4].passed);
	gate_leave(&gate);
	ck_assert(visitors[4].passed && !visitors[2].passed && !visitors[3].passed);
	gate_leave(&gate);
	gate_release(&gate);
}
END_TEST

Suite *test_gate_suite(void)
{
	Suite *const suite = suite_create("gate");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, the_first_that_came_is_the_next);
	tcase_add_test(all, a_closed_gate_turns_away);
	tcase_add_test(all, who_waits_may_withdraw);
	suite_add_tcase(suite, all);
	return suite;
}
