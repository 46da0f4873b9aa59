/* Runs the suites of one folder, or with "I/N" the I-th of N shares of them, so that several processors have work. CK_FORK=no for sanitizers and
 * debuggers. */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdlib.h>

/* "2/3": false for anything else. */
static bool read_share(const char *const text, unsigned long *const out_first, unsigned long *const out_of)
{
	char *end;
	*out_first = strtoul(text, &end, 10);
	if (*end != '/')
		return false;
	*out_of = strtoul(end + 1, &end, 10);
	return *end == '\0' && *out_first >= 1 && *out_first <= *out_of;
}

int main(const int argc, char *const *const argv)
{
	unsigned long first = 1;
	unsigned long of = 1;
	/* Not Check's 4 s: what a test takes on a busy machine says nothing of the code. */
	setenv("CK_DEFAULT_TIMEOUT", "120", 0);
	setenv("CK_TIMEOUT_MULTIPLIER", "4", 0);
	if (argc > 1 && !read_share(argv[1], &first, &of))
		return EXIT_FAILURE;
	SRunner *const runner = srunner_create(NULL);
	for (unsigned long i = 0; unit_suites[i] != NULL; i++)
		if (i % of == first - 1)
			srunner_add_suite(runner, unit_suites[i]());
	char *const seeds = unit_seeds_make();
	srunner_run_all(runner, CK_ENV);
	unit_seeds_remove(seeds);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
