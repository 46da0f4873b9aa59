#include "tests/unit/unit.h"

#include <stddef.h>

Suite *test_dtype_suite(void);
Suite *test_json_scan_suite(void);
Suite *test_safetensors_suite(void);
Suite *test_element_scan_suite(void);
Suite *test_index_code_suite(void);
Suite *test_gap_code_suite(void);
Suite *test_block_code_suite(void);
Suite *test_parallel_suite(void);
Suite *test_schema_suite(void);
Suite *test_checkpoint_suite(void);
Suite *test_delta_reader_suite(void);
Suite *test_delta_suite(void);
Suite *test_delta_manifest_suite(void);
Suite *test_pulse_suite(void);
Suite *test_delta_series_suite(void);
Suite *test_tensor_pass_suite(void);
Suite *test_delta_source_suite(void);
Suite *test_delta_container_suite(void);
Suite *test_slime_suite(void);
Suite *test_spool_suite(void);
Suite *test_fold_suite(void);
Suite *test_power_weights_suite(void);
Suite *test_staging_suite(void);

unit_suite_fn *const unit_suites[] = {
	test_dtype_suite,
	test_json_scan_suite,
	test_safetensors_suite,
	test_element_scan_suite,
	test_index_code_suite,
	test_gap_code_suite,
	test_block_code_suite,
	test_parallel_suite,
	test_schema_suite,
	test_checkpoint_suite,
	test_delta_reader_suite,
	test_delta_suite,
	test_delta_manifest_suite,
	test_pulse_suite,
	test_delta_series_suite,
	test_tensor_pass_suite,
	test_delta_source_suite,
	test_delta_container_suite,
	test_slime_suite,
	test_spool_suite,
	test_fold_suite,
	test_power_weights_suite,
	test_staging_suite,
	NULL,
};
