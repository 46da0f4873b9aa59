#include "tests/unit/unit.h"

Suite *test_body_work_suite(void);
Suite *test_error_map_suite(void);
Suite *test_long_wait_suite(void);
Suite *test_exchange_suite(void);
Suite *test_router_suite(void);
Suite *test_identify_suite(void);
Suite *test_signature_v4_suite(void);
Suite *test_presigned_v4_suite(void);
Suite *test_signature_v2_suite(void);
Suite *test_keyring_suite(void);
Suite *test_body_filter_suite(void);
Suite *test_aws_chunked_suite(void);
Suite *test_payload_suite(void);
Suite *test_signing_key_suite(void);
Suite *test_byte_range_suite(void);
Suite *test_conditional_suite(void);
Suite *test_object_reply_suite(void);
Suite *test_checksum_headers_suite(void);
Suite *test_s3_xml_writer_suite(void);
Suite *test_s3_xml_reader_suite(void);
Suite *test_authorise_suite(void);
Suite *test_s3_acl_suite(void);
Suite *test_s3_bucket_settings_suite(void);
Suite *test_s3_form_data_suite(void);
Suite *test_s3_post_policy_suite(void);
Suite *test_s3_buckets_suite(void);
Suite *test_s3_policy_document_suite(void);
Suite *test_s3_cors_suite(void);
Suite *test_s3_lifecycle_suite(void);
Suite *test_plain_query_suite(void);
Suite *test_routes_suite(void);
Suite *test_s3_xml_tree_suite(void);
Suite *test_s3_objects_suite(void);
Suite *test_s3_list_suite(void);
Suite *test_s3_uploads_suite(void);
Suite *test_copy_source_suite(void);
Suite *test_tagging_suite(void);
Suite *test_hot_load_request_suite(void);
Suite *test_delete_list_suite(void);
Suite *test_s3_object_requests_suite(void);
Suite *test_hub_name_suite(void);
Suite *test_hub_access_suite(void);
Suite *test_hub_buckets_suite(void);
Suite *test_hub_events_suite(void);
Suite *test_xet_token_suite(void);
Suite *test_fetch_token_suite(void);
Suite *test_xet_xorbs_suite(void);
Suite *test_xet_shards_suite(void);
Suite *test_batch_lines_suite(void);
Suite *test_xet_fetch_suite(void);
Suite *test_steps_suite(void);

unit_suite_fn *const unit_suites[] = {
	test_body_work_suite,
	test_long_wait_suite,
	test_error_map_suite,
	test_exchange_suite,
	test_router_suite,
	test_identify_suite,
	test_signature_v4_suite,
	test_presigned_v4_suite,
	test_signature_v2_suite,
	test_keyring_suite,
	test_body_filter_suite,
	test_aws_chunked_suite,
	test_payload_suite,
	test_signing_key_suite,
	test_byte_range_suite,
	test_conditional_suite,
	test_object_reply_suite,
	test_checksum_headers_suite,
	test_s3_xml_writer_suite,
	test_s3_xml_reader_suite,
	test_authorise_suite,
	test_s3_acl_suite,
	test_s3_bucket_settings_suite,
	test_s3_form_data_suite,
	test_s3_post_policy_suite,
	test_s3_buckets_suite,
	test_s3_policy_document_suite,
	test_s3_cors_suite,
	test_s3_lifecycle_suite,
	test_plain_query_suite,
	test_routes_suite,
	test_s3_xml_tree_suite,
	test_s3_objects_suite,
	test_s3_list_suite,
	test_s3_uploads_suite,
	test_copy_source_suite,
	test_tagging_suite,
	test_hot_load_request_suite,
	test_delete_list_suite,
	test_s3_object_requests_suite,
	test_hub_access_suite, test_hub_buckets_suite, test_hub_events_suite, test_hub_name_suite,
	test_xet_token_suite,
	test_fetch_token_suite,
	test_xet_xorbs_suite,
	test_xet_shards_suite,
	test_batch_lines_suite,
	test_xet_fetch_suite,
	test_steps_suite,
	NULL,
};
