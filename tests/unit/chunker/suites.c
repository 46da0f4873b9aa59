#include "tests/unit/unit.h"

#include <stddef.h>

Suite *test_chunk_suite(void);
Suite *test_gear_suite(void);
Suite *test_gear_marks_suite(void);
Suite *test_chunk_hash_suite(void);
Suite *test_merkle_suite(void);
Suite *test_chunk_stream_suite(void);
Suite *test_codec_lz4_suite(void);
Suite *test_codec_planes_suite(void);
Suite *test_codec_trial_suite(void);
Suite *test_codec_suite(void);
Suite *test_xorb_parse_suite(void);
Suite *test_shard_suite(void);

unit_suite_fn *const unit_suites[] = {
	test_chunk_suite,
	test_gear_suite,
	test_gear_marks_suite,
	test_chunk_hash_suite,
	test_merkle_suite,
	test_chunk_stream_suite,
	test_codec_lz4_suite,
	test_codec_planes_suite,
	test_codec_trial_suite,
	test_codec_suite,
	test_xorb_parse_suite,
	test_shard_suite,
	NULL,
};
