/* Runs the suites of one folder; with names, those suites; with "I/N", the I-th of N shares of
 * them, so that several processors have work. CK_FORK=no for debuggers, CK_RUN_CASE=NAME for one
 * case. Ends with `N passed, N failed, N skipped`. Each suite has a runner of its own: one that
 * runs no check is a failure, unless CK_RUN_SUITE or CK_RUN_CASE choose others. */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sums {
	int passed;
	int failed;
};

/* "2/3": false for anything else. */
static bool read_share(const char *text, unsigned long *out_first, unsigned long *out_of)
{
	char *end;
	const unsigned long first = strtoul(text, &end, 10);
	if (end == text || *end != '/')
		return false;
	const unsigned long of = strtoul(end + 1, &end, 10);
	if (*end != '\0' || first < 1 || first > of)
		return false;
	*out_first = first;
	*out_of = of;
	return true;
}

static void run_suite(Suite *suite, unsigned long number, struct sums *sums)
{
	const bool chosen = getenv("CK_RUN_SUITE") != NULL || getenv("CK_RUN_CASE") != NULL;
	SRunner *const runner = srunner_create(suite);
	srunner_run_all(runner, CK_SILENT);
	const int failed = srunner_ntests_failed(runner);
	const int run = srunner_ntests_run(runner);
	if (failed > 0)
		srunner_print(runner, CK_NORMAL);
	srunner_free(runner);
	sums->passed += run - failed;
	sums->failed += failed;
	if (run > 0 || chosen)
		return;
	printf("ERROR: suite %lu of unit_suites has no test that runs\n", number + 1);
	sums->failed++;
}

static bool is_named(const char *name, int count, char *const *names)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* A mistyped name would run nothing, and pass. */
static bool knows_names(int count, char *const *names)
{
	for (int i = 0; i < count; i++) {
		bool known = false;
		for (const struct unit_suite *suite = unit_suites; suite->name != NULL; suite++)
			known = known || strcmp(suite->name, names[i]) == 0;
		if (!known) {
			printf("ERROR: there is no suite %s\n", names[i]);
			return false;
		}
	}
	return true;
}

int main(int argc, char *const *argv)
{
	unsigned long first = 1;
	unsigned long of = 1;
	struct sums sums = {0};
	/* Not Check's 4 s: what a test takes on a busy machine says nothing of the code. */
	setenv("CK_DEFAULT_TIMEOUT", "120", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "4", 0);
	const bool by_name = argc > 1 && !read_share(argv[1], &first, &of);
	if (by_name && !knows_names(argc - 1, argv + 1))
		return EXIT_FAILURE;
	char *const seeds = unit_seeds_make();
	for (unsigned long i = 0; unit_suites[i].name != NULL; i++)
		if (by_name ? is_named(unit_suites[i].name, argc - 1, argv + 1)
			    : i % of == first - 1)
			run_suite(unit_suites[i].make(), i, &sums);
	unit_seeds_remove(seeds);
	printf("%d passed, %d failed, 0 skipped\n", sums.passed, sums.failed);
	return sums.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
