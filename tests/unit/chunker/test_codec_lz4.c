#include "chunker/codec_lz4.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_codec_lz4_suite(void);

/* All frames below hold, or pretend to hold, 1000 x 'a'. */
enum { RUN_BYTES = 1000, FRAME_MAX_BYTES = 2048 };

#define MAGIC "04224d18"
#define BLOCK      \
	"0e000000" \
	"1f610100ffffffd2506161616161"
#define TWO_BLOCKS                 \
	"0c000000"                 \
	"1f610100ffdc506161616161" \
	"0b000000"                 \
	"0f0100ffdd506161616161" /* the second reaches back into the first */
#define END         "00000000"
#define BLOCK_SUM   "5a0a6b03"
#define CONTENT_SUM "862be837"

static const char published[] = MAGIC "604082" BLOCK END;

static size_t from_hex(const char *text, uint8_t out[FRAME_MAX_BYTES])
{
	const size_t len = strlen(text) / 2;
	ck_assert_uint_le(len, FRAME_MAX_BYTES);
	ck_assert(decode_hex(span_text(text), out, len));
	return len;
}

/* Decodes between memory of exactly the given sizes, so that a sanitizer sees an access behind
 * it. */
static int decode(struct span frame, uint8_t *into, size_t len, struct error *err)
{
	uint8_t *const exact = memory_copy(frame.data, frame.len);
	uint8_t *const out = malloc(len + 1);
	struct codec_lz4 *const lz4 = codec_lz4_new();
	out[len] = 0x5a;
	const int got = codec_lz4_decode(lz4, span_of(exact, frame.len), out, len, err);
	ck_assert_uint_eq(out[len], 0x5a);
	if (got == 0)
		memcpy(into, out, len);
	codec_lz4_free(lz4);
	free(exact);
	free(out);
	return got;
}

START_TEST(a_run_is_written_as_the_published_frame)
{
	uint8_t content[RUN_BYTES], expected[FRAME_MAX_BYTES], frame[FRAME_MAX_BYTES];
	memset(content, 'a', sizeof(content));
	const size_t expected_len = from_hex(published, expected);
	ck_assert_uint_le(codec_lz4_bound(sizeof(content)), sizeof(frame));
	const size_t len =
		codec_lz4_encode(span_of(content, sizeof(content)), frame, sizeof(frame));
	ck_assert_uint_eq(len, expected_len);
	ck_assert_mem_eq(frame, expected, len);
}
END_TEST

/* Frames as Xet clients and the lz4 program write them, one option at a time. */
static const char *const valid[] = {
	published,
	MAGIC "6440a7" BLOCK END CONTENT_SUM,
	MAGIC "7040ad" BLOCK BLOCK_SUM END,
	MAGIC "6840e803000000000000f1" BLOCK END,
	MAGIC "7c40e8030000000000003d" BLOCK BLOCK_SUM END CONTENT_SUM,
	MAGIC "4070df" TWO_BLOCKS END,
};

START_TEST(valid_frames_decode)
{
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES] = {0}, expected[RUN_BYTES];
	struct error err = {0};
	const size_t len = from_hex(valid[_i], frame);
	memset(expected, 'a', sizeof(expected));
	ck_assert_msg(decode(span_of(frame, len), out, sizeof(out), &err) == 0, "%s", err.text);
	ck_assert_mem_eq(out, expected, sizeof(expected));
}
END_TEST

/* All of these frames are valid and decode to the right content here. */
START_TEST(frames_that_others_read_otherwise_are_known)
{
	static const struct {
		const char *frame;
		bool is_common;
	} cases[] = {
		{published, true},
		{MAGIC "6440a7" BLOCK END CONTENT_SUM, true},
		{MAGIC "6840e803000000000000f1" BLOCK END, true},
		{MAGIC "4070df" TWO_BLOCKS END, true},
		{MAGIC "7040ad" BLOCK BLOCK_SUM END, false},
		{MAGIC "6840000000000000000005" BLOCK END, false},
		{MAGIC "604082"
		       "00000080" BLOCK END,
			false},
		{MAGIC "604082" BLOCK "00000080" END, false},
		{MAGIC "604082"
		       "01000000"
		       "00" BLOCK END,
			false},
		{MAGIC "604082" BLOCK "01000000"
		       "0f" END,
			false},
		{MAGIC "6840e803000000000000f1" BLOCK "00000080" END, false},
	};
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES];
	struct error err = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const size_t len = from_hex(cases[i].frame, frame);
		ck_assert_msg(decode(span_of(frame, len), out, sizeof(out), &err) == 0, "%zu: %s",
			i, err.text);
		ck_assert_msg(
			codec_lz4_is_common(span_of(frame, len)) == cases[i].is_common, "%zu", i);
	}
}
END_TEST

START_TEST(a_frame_with_a_stored_block_decodes)
{
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES];
	struct error err = {0};
	uint8_t *const content = vectors_splitmix(4, RUN_BYTES);
	size_t len = from_hex(MAGIC "604082"
				    "e8030080",
		frame);
	memcpy(frame + len, content, RUN_BYTES);
	len += RUN_BYTES;
	memset(frame + len, 0, 4);
	ck_assert_int_eq(decode(span_of(frame, len + 4), out, sizeof(out), &err), 0);
	ck_assert_mem_eq(out, content, RUN_BYTES);
	free(content);
}
END_TEST

static const struct {
	const char *why;
	const char *frame;
} invalid[] = {
	{"nothing", ""},
	{"another magic", "05224d18604082" BLOCK END},
	{"a skippable frame", "502a4d180400000061626364"},
	{"a skippable frame first", "502a4d180400000061626364" MAGIC "604082" BLOCK END},
	{"a dictionary", MAGIC "614001000000d0" BLOCK END},
	{"dictionary number 0", MAGIC "614000000000a0" BLOCK END},
	{"a reserved flag", MAGIC "6240f0" BLOCK END},
	{"version 0", MAGIC "204003" BLOCK END},
	{"block size 3", MAGIC "6030d4" BLOCK END},
	{"a reserved bit beside the block size", MAGIC "60c02a" BLOCK END},
	{"a wrong header check", MAGIC "604083" BLOCK END},
	{"a content size of 999", MAGIC "6840e70300000000000015" BLOCK END},
	{"a huge content size", MAGIC "6840ffffffffffffffffa7" BLOCK END},
	{"a wrong block checksum", MAGIC "7040ad" BLOCK "5a0a6b04" END},
	{"a wrong content checksum", MAGIC "6440a7" BLOCK END "862be838"},
	{"no content", MAGIC "604082" END},
	{"too much content", MAGIC "604082" BLOCK BLOCK END},
	{"a block over its size",
		MAGIC "604082"
		      "01000180" END},
	{"a match at offset 0",
		MAGIC "604082"
		      "0e000000"
		      "1f610000ffffffd2506161616161" END},
	{"a second match at offset 0",
		MAGIC "604082"
		      "11000000"
		      "1f610100ffdc"
		      "0f0000ffe2"
		      "506161616161" END},
	{"a match at offset 0 behind many literals",
		MAGIC "604082"
		      "22000000"
		      "ff05"
		      "6161616161616161616161616161616161616161"
		      "0000ffffffbf"
		      "506161616161" END},
	{"a match before the content",
		MAGIC "604082"
		      "0e000000"
		      "1f610200ffffffd2506161616161" END},
	{"an independent block reaching back", MAGIC "604082" TWO_BLOCKS END},
	{"a trailing byte", MAGIC "604082" BLOCK END "00"},
	{"a second frame", MAGIC "604082" BLOCK END MAGIC "604082" END},
};

START_TEST(anything_else_is_corrupt)
{
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES];
	struct error err = {0};
	const size_t len = from_hex(invalid[_i].frame, frame);
	ck_assert_msg(decode(span_of(frame, len), out, sizeof(out), &err) == -1, "%s was accepted",
		invalid[_i].why);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_str_ne(err.text, "");
}
END_TEST

START_TEST(every_cut_and_every_other_length_is_corrupt)
{
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES + 1];
	for (size_t v = 0; v < sizeof(valid) / sizeof(*valid); v++) {
		const size_t len = from_hex(valid[v], frame);
		for (size_t cut = 0; cut < len; cut++) {
			struct error err = {0};
			ck_assert_int_eq(decode(span_of(frame, cut), out, RUN_BYTES, &err), -1);
			ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		}
		static const size_t lengths[] = {0, 1, RUN_BYTES - 1, RUN_BYTES + 1};
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			struct error err = {0};
			ck_assert_int_eq(decode(span_of(frame, len), out, lengths[i], &err), -1);
			ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		}
	}
}
END_TEST

START_TEST(a_failed_frame_leaves_the_context_fit)
{
	uint8_t frame[FRAME_MAX_BYTES], out[RUN_BYTES];
	struct codec_lz4 *const lz4 = codec_lz4_new();
	const size_t len = from_hex(published, frame);
	for (size_t cut = 0; cut < len; cut++) {
		struct error err = {0};
		ck_assert_int_eq(
			codec_lz4_decode(lz4, span_of(frame, cut), out, sizeof(out), &err), -1);
		ck_assert_int_eq(
			codec_lz4_decode(lz4, span_of(frame, len), out, sizeof(out), &err), 0);
	}
	codec_lz4_free(lz4);
}
END_TEST

START_TEST(content_up_to_a_whole_chunk_comes_back)
{
	static const size_t lengths[] = {1, 13, 65535, 65536, 65537, CHUNK_MAX_BYTES};
	const size_t len = lengths[_i];
	uint8_t *const content = vectors_splitmix(6, len);
	for (size_t i = 0; i < len; i++)
		content[i] &= 0x11;
	uint8_t *const frame = memory_new(codec_lz4_bound(len));
	uint8_t *const out = memory_new(len);
	struct error err = {0};
	const size_t size = codec_lz4_encode(span_of(content, len), frame, codec_lz4_bound(len));
	ck_assert_uint_eq(frame[4], 0x60); /* independent blocks and nothing optional */
	ck_assert_uint_eq(frame[5], len <= 65536 ? 0x40 : 0x50);
	ck_assert_int_eq(decode(span_of(frame, size), out, len, &err), 0);
	ck_assert_mem_eq(out, content, len);
	free(content);
	free(frame);
	free(out);
}
END_TEST

Suite *test_codec_lz4_suite(void)
{
	Suite *const suite = suite_create("codec_lz4");
	TCase *const tests = tcase_create("frames");
	tcase_add_test(tests, a_run_is_written_as_the_published_frame);
	tcase_add_loop_test(tests, valid_frames_decode, 0, sizeof(valid) / sizeof(*valid));
	tcase_add_test(tests, frames_that_others_read_otherwise_are_known);
	tcase_add_test(tests, a_frame_with_a_stored_block_decodes);
	tcase_add_loop_test(tests, anything_else_is_corrupt, 0, sizeof(invalid) / sizeof(*invalid));
	tcase_add_test(tests, every_cut_and_every_other_length_is_corrupt);
	tcase_add_test(tests, a_failed_frame_leaves_the_context_fit);
	tcase_add_loop_test(tests, content_up_to_a_whole_chunk_comes_back, 0, 6);
	suite_add_tcase(suite, tests);
	return suite;
}
