/* For faults of the program itself: the function must end its process by abort. Works with and
 * without CK_FORK. */
#ifndef TESTS_UNIT_BASE_ABORT_CHECK_H
#define TESTS_UNIT_BASE_ABORT_CHECK_H

void abort_check(void (*run)(void *argument), void *argument);

#endif
