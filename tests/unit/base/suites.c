#include "tests/unit/unit.h"

Suite *test_share_suite(void);
Suite *test_gunzip_suite(void);
unit_suite_fn test_near_word_suite, test_columns_suite, test_fingerprint_suite, test_quantity_suite;
Suite *test_power_disk_suite(void);
Suite *test_file_sync_suite(void);
unit_suite_fn test_error_suite, test_memory_suite, test_span_suite, test_buffer_suite, test_arena_suite, test_encode_suite, test_xxh3_suite,
	test_file_suite, test_file_faults_suite, test_lock_suite, test_worker_thread_suite, test_stream_suite, test_clock_suite, test_random_suite, test_digest_suite, test_compress_suite,
	test_seal_suite, test_json_node_suite, test_json_writer_suite, test_log_suite, test_metrics_suite, test_http_client_suite,
	test_md5_lanes_suite, test_md5_suite, test_crc64_suite, test_checksum_suite,
	test_byte_planes_suite, test_compress_stream_suite, test_blake3_stream_suite, test_checksum_adler_suite;

unit_suite_fn *const unit_suites[] = {
	test_share_suite,
	test_gunzip_suite,
	test_near_word_suite,
	test_columns_suite,
	test_fingerprint_suite,
	test_quantity_suite,
	test_error_suite,
	test_memory_suite,
	test_span_suite,
	test_buffer_suite,
	test_arena_suite,
	test_encode_suite,
	test_xxh3_suite,
	test_stream_suite,
	test_file_suite,
	test_file_faults_suite,
	test_power_disk_suite,
	test_file_sync_suite,
	test_lock_suite,
	test_worker_thread_suite,
	test_clock_suite,
	test_random_suite,
	test_digest_suite,
	test_md5_lanes_suite,
	test_md5_suite,
	test_crc64_suite,
	test_checksum_suite,
	test_compress_suite,
	test_compress_stream_suite,
	test_blake3_stream_suite,
	test_checksum_adler_suite,
	test_byte_planes_suite,
	test_seal_suite,
	test_json_node_suite,
	test_json_writer_suite,
	test_log_suite,
	test_metrics_suite,
	test_http_client_suite,
	NULL,
};
