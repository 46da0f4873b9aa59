/* What every unit test shares: the suite list of a folder's test program and a scratch folder. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>

/* Given by tests/unit/<folder>/suites.c, ended by NULL: one suite per module, in layer order. */
typedef Suite *unit_suite_fn(void);
extern unit_suite_fn *const unit_suites[];

/* A new empty folder below $TMPDIR, removed by unit_scratch_remove. The path is the caller's to free. */
char *unit_scratch_make(void);
/* Another one, with all that lies in `folder`. */
char *unit_scratch_copy(const char *folder);
void unit_scratch_remove(char *folder); /* frees it too */

/* The step of a loop that a plain build walks one by one. A build with a sanitizer, in which each round costs many times as much, may leap: it looks
 * for wrong accesses, not for wrong results at one round more. */
int unit_stride(int leap);

#endif
