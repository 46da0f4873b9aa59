#include "tests/unit/unit.h"

Suite *test_configuration_suite(void);
Suite *test_setting_file_suite(void);
Suite *test_data_folder_suite(void);
Suite *test_certificate_suite(void);
Suite *test_listener_socket_suite(void);
Suite *test_root_key_suite(void);
Suite *test_raw_header_suite(void);
Suite *test_raw_chunk_suite(void);
Suite *test_request_target_suite(void);
Suite *test_listener_suite(void);
Suite *test_trusted_proxies_suite(void);
Suite *test_power_server_suite(void);

unit_suite_fn *const unit_suites[] = {
	test_configuration_suite,
	test_setting_file_suite,
	test_data_folder_suite,
	test_certificate_suite,
	test_listener_socket_suite,
	test_root_key_suite,
	test_raw_header_suite,
	test_raw_chunk_suite,
	test_request_target_suite,
	test_trusted_proxies_suite,
	test_listener_suite,
	test_power_server_suite,
	NULL,
};
