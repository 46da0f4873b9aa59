#include "storage/gate.h"

#include <stddef.h>

#include "tests/unit/unit.h"

Suite *test_gate_suite(void);

struct visitor {
	struct gate_visitor base; /* first */
	bool passed;
};

static void pass(struct gate_visitor *const visitor)
{
	((struct visitor *)visitor)->passed = true;
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

Suite *test_gate_suite(void)
{
	Suite *const suite = suite_create("gate");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, the_first_that_came_is_the_next);
	suite_add_tcase(suite, all);
	return suite;
}
