/* What every unit test shares: the suite list of a folder's test program and a scratch folder. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>

/* Of one folder of tests/unit, ended by a name NULL; made by setup/suites. */
typedef Suite *unit_suite_fn(void);
struct unit_suite {
	const char *name; /* "x" of tests/unit/ROOM/test_x.c */
	unit_suite_fn *make;
};
extern const struct unit_suite unit_suites[];

/* A new empty folder below $TMPDIR, removed by unit_scratch_remove. The path is the caller's to
 * free. */
char *unit_scratch_make(void);
/* Another one, with all that lies in `folder`. */
char *unit_scratch_copy(const char *folder);
void unit_scratch_remove(char *folder); /* frees it too */

/* Puts a file of that name into `folder`: a copy of one that `make` made at its first use. Programs
 * that share $DELTABUCKET_UNIT_SEEDS may ask for it at once. */
struct error;
typedef int unit_make_fn(const char *path, struct error *err);
void unit_scratch_seed(const char *folder, const char *name, unit_make_fn *make);
/* Before the first test and after the last: the folder of what is made once, whose path tests find
 * in $DELTABUCKET_UNIT_SEEDS; NULL when that is set already, and the folder is its owner's. */
char *unit_seeds_make(void);
void unit_seeds_remove(char *folder);

/* The step of a loop that a plain build walks one by one. A build with a sanitizer, in which each
 * round costs many times as much, may leap: it looks for wrong accesses, not for wrong results at
 * one round more. So does any build with $DELTABUCKET_UNIT_LEAPS, for valgrind. */
int unit_stride(int leap);

#endif
