/* Runs the suites of one folder. CK_FORK=no for sanitizers and debuggers. */
#include "tests/unit/unit.h"

#include <stdlib.h>

int main(void)
{
	SRunner *const runner = srunner_create(NULL);
	for (unit_suite_fn *const *make = unit_suites; *make != NULL; make++)
		srunner_add_suite(runner, (*make)());
	srunner_run_all(runner, CK_ENV);
	const int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
