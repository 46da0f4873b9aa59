#include "tests/unit/unit.h"

unit_suite_fn test_exit_code_suite, test_options_suite, test_output_suite, test_retry_suite, test_run_name_suite, test_listing_suite,
	test_remote_error_suite, test_folder_files_suite, test_part_journal_suite, test_anchor_policy_suite, test_publish_state_suite,
	test_snapshot_suite, test_follow_folder_suite, test_hook_suite, test_transfer_suite, test_catch_up_suite, test_sync_plan_suite,
	test_file_chunks_suite, test_hash_cache_suite, test_upload_plan_suite, test_file_map_suite, test_fetch_plan_suite,
	test_part_file_suite;

unit_suite_fn *const unit_suites[] = {
	test_exit_code_suite,
	test_options_suite,
	test_output_suite,
	test_retry_suite,
	test_run_name_suite,
	test_listing_suite,
	test_remote_error_suite,
	test_folder_files_suite,
	test_part_file_suite,
	test_part_journal_suite,
	test_anchor_policy_suite,
	test_publish_state_suite,
	test_snapshot_suite,
	test_follow_folder_suite,
	test_hook_suite,
	test_transfer_suite,
	test_catch_up_suite,
	test_sync_plan_suite,
	test_file_chunks_suite,
	test_hash_cache_suite,
	test_upload_plan_suite,
	test_file_map_suite,
	test_fetch_plan_suite,
	NULL,
};
