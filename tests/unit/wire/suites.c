#include "tests/unit/unit.h"

unit_suite_fn test_step_message_suite, test_step_content_suite, test_run_message_suite, test_path_message_suite,
	test_run_settings_message_suite, test_replica_message_suite, test_part_message_suite;

unit_suite_fn *const unit_suites[] = {
	test_step_message_suite,
	test_step_content_suite,
	test_run_message_suite,
	test_run_settings_message_suite,
	test_replica_message_suite,
	test_part_message_suite,
	test_path_message_suite,
	NULL,
};
