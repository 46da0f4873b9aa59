/* The lease that ends first is always on top. */
#include "tests/unit/unit.h"

#include "storage/run_tables/lease_heap.h"

enum { MANY = 200, ENDS = 61 /* so that some end together */ };

static struct lease_heap heap;
static struct lease leases[MANY];

static int64_t end_of(int i)
{
	return i * 7919 % ENDS;
}

/* Takes all out. Returns how many there were, in the order of their ends. */
static int drain(void)
{
	int taken = 0;
	int64_t before = -1;
	for (struct lease *first; (first = lease_heap_first(&heap)) != NULL; taken++) {
		ck_assert_int_ge(first->end_ms, before);
		before = first->end_ms;
		lease_heap_remove(&heap, first);
		ck_assert_uint_eq(first->place, 0);
	}
	ck_assert_uint_eq(heap.count, 0);
	return taken;
}

static void fill(void)
{
	for (int i = 0; i < MANY; i++)
		lease_heap_set(&heap, &leases[i], end_of(i));
}

START_TEST(leases_come_in_the_order_of_their_ends)
{
	fill();
	ck_assert_int_eq(drain(), MANY);
	lease_heap_release(&heap);
}
END_TEST

START_TEST(a_lease_that_is_renewed_or_removed_keeps_the_order)
{
	fill();
	for (int i = 0; i < MANY; i += 3)
		lease_heap_set(&heap, &leases[i], ENDS + end_of(i * 2));
	for (int i = 1; i < MANY; i += 3)
		lease_heap_set(&heap, &leases[i], end_of(i) / 2);
	for (int i = 0; i < MANY; i += 5)
		lease_heap_remove(&heap, &leases[i]);
	lease_heap_remove(&heap, &leases[0]); /* it is not there: nothing happens */
	ck_assert_int_eq(drain(), MANY - MANY / 5);
	lease_heap_release(&heap);
}
END_TEST

Suite *test_lease_heap_suite(void);
Suite *test_lease_heap_suite(void)
{
	Suite *const suite = suite_create("lease_heap");
	TCase *const tests = tcase_create("lease_heap");
	tcase_add_test(tests, leases_come_in_the_order_of_their_ends);
	tcase_add_test(tests, a_lease_that_is_renewed_or_removed_keeps_the_order);
	suite_add_tcase(suite, tests);
	return suite;
}
