#include "chunker/codec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_codec_suite(void);

static const enum codec codecs[] = {
	CODEC_RAW, CODEC_LZ4, CODEC_BG4_LZ4, CODEC_ZSTD, CODEC_PLANES2, CODEC_PLANES4};
enum { CODECS = sizeof(codecs) / sizeof(*codecs) };

static struct codec_context *context;

static void setup(void)
{
	context = codec_context_new();
}

static void teardown(void)
{
	codec_context_free(context);
}

START_TEST(numbers_are_pinned)
{
	static const uint8_t numbers[] = {0, 1, 2, 64, 65, 66};
	size_t known = 0;
	for (size_t i = 0; i < CODECS; i++)
		ck_assert_uint_eq(codecs[i], numbers[i]);
	for (unsigned number = 0; number < 256; number++)
		known += codec_known((uint8_t)number) ? 1 : 0;
	for (size_t i = 0; i < CODECS; i++)
		ck_assert(codec_known(numbers[i]));
	ck_assert_uint_eq(known, CODECS);
}
END_TEST

START_TEST(only_our_own_codecs_are_private)
{
	for (size_t i = 0; i < CODECS; i++)
		ck_assert_int_eq(codec_private(codecs[i]), codecs[i] >= 64);
}
END_TEST

/* Encodes into exactly codec_bound bytes. Decodes from exactly the encoded size into exactly `len`
 * bytes. */
static size_t round_trip(enum codec codec, struct span content)
{
	uint8_t *const room = malloc(codec_bound(content.len));
	const size_t size = codec_encode(context, codec, content, room, codec_bound(content.len));
	ck_assert(size == 0 || size < content.len);
	if (size > 0) {
		struct error err = {0};
		uint8_t *const stored = memory_copy(room, size);
		uint8_t *const out = malloc(content.len);
		ck_assert_msg(codec_decode(context, codec, span_of(stored, size), out, content.len,
				      &err) == 0,
			"%s", err.text);
		ck_assert_mem_eq(out, content.data, content.len);
		free(stored);
		free(out);
	}
	free(room);
	return size;
}

static const size_t lengths[] = {0, 1, 2, 3, 5, 63, 64, 65, 127, 1000, 4096, 8191, 65536, 65537,
	CHUNK_MAX_BYTES - 1, CHUNK_MAX_BYTES};
enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };

START_TEST(every_codec_gives_back_what_it_took)
{
	const enum codec codec = codecs[_i];
	uint8_t *const contents[] = {
		vectors_words(1, CHUNK_MAX_BYTES),
		vectors_weights(1, 2, CHUNK_MAX_BYTES / 2),
		vectors_weights(1, 4, CHUNK_MAX_BYTES / 4),
		memory_new(CHUNK_MAX_BYTES),
	};
	for (size_t k = 0; k < 4; k++) {
		for (size_t i = 0; i < LENGTHS; i++)
			round_trip(codec, span_of(contents[k], lengths[i]));
		if (codec != CODEC_RAW && k == 3)
			ck_assert_uint_gt(
				round_trip(codec, span_of(contents[k], CHUNK_MAX_BYTES)), 0);
		free(contents[k]);
	}
}
END_TEST

START_TEST(content_that_does_not_shrink_is_refused)
{
	uint8_t *const bytes = vectors_splitmix(11, CHUNK_MAX_BYTES);
	for (size_t i = 0; i < LENGTHS; i++)
		ck_assert_uint_eq(round_trip(codecs[_i], span_of(bytes, lengths[i])), 0);
	free(bytes);
}
END_TEST

START_TEST(raw_decodes_to_itself)
{
	static const uint8_t content[] = {1, 2, 3};
	uint8_t out[3] = {0};
	struct error err = {0};
	ck_assert_int_eq(codec_decode(context, CODEC_RAW, span_of(content, 3), out, 3, &err), 0);
	ck_assert_mem_eq(out, content, 3);
	ck_assert_int_eq(codec_decode(context, CODEC_RAW, span_of(NULL, 0), out, 0, &err), 0);
	ck_assert_int_eq(codec_decode(context, CODEC_RAW, span_of(content, 2), out, 3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(codec_decode(context, CODEC_RAW, span_of(content, 3), out, 2, &err), -1);
}
END_TEST

/* The byte groups of 00 01 02 03 00 01 .. are runs of one value each. They show that the frame has
 * the groups and not the content. */
START_TEST(byte_groups_stand_in_the_lz4_frame_one_behind_the_other)
{
	uint8_t content[400], grouped[400], stored[1024];
	struct error err = {0};
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i % 4);
	const size_t size = codec_encode(
		context, CODEC_BG4_LZ4, span_of(content, sizeof(content)), stored, sizeof(stored));
	ck_assert_uint_gt(size, 0);
	ck_assert_int_eq(codec_decode(context, CODEC_LZ4, span_of(stored, size), grouped,
				 sizeof(grouped), &err),
		0);
	for (size_t i = 0; i < sizeof(grouped); i++)
		ck_assert_uint_eq(grouped[i], i / 100);
}
END_TEST

/* The published groupings, for lengths with and without a remainder, in frames with one stored
 * block. */
START_TEST(published_byte_groups_are_undone)
{
	static const struct {
		uint8_t size;
		uint8_t grouped[12];
		uint8_t content[12];
	} cases[] = {
		{10, {0, 4, 8, 1, 5, 9, 2, 6, 3, 7}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{12, {0x10, 0x20, 0x30, 0x11, 0x21, 0x31, 0x12, 0x22, 0x32, 0x13, 0x23, 0x33},
			{0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t frame[64] = {
			0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, cases[i].size, 0, 0, 0x80};
		uint8_t content[12];
		struct error err = {0};
		/* the zeros behind it end the frame */
		memcpy(frame + 11, cases[i].grouped, cases[i].size);
		const struct span stored = span_of(frame, 11 + (size_t)cases[i].size + 4);
		ck_assert_msg(codec_decode(context, CODEC_BG4_LZ4, stored, content, cases[i].size,
				      &err) == 0,
			"%s", err.text);
		ck_assert_mem_eq(content, cases[i].content, cases[i].size);
	}
}
END_TEST

START_TEST(unknown_numbers_and_over_long_chunks_are_corrupt)
{
	uint8_t *const out = memory_new(CHUNK_MAX_BYTES + 1);
	struct error err = {0};
	ck_assert_int_eq(codec_decode(context, (enum codec)3, span_of(out, 1), out, 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	for (size_t i = 0; i < CODECS; i++) {
		struct error over = {0};
		ck_assert_int_eq(codec_decode(context, codecs[i], span_of(out, CHUNK_MAX_BYTES + 1),
					 out, CHUNK_MAX_BYTES + 1, &over),
			-1);
		ck_assert_int_eq(over.kind, ERROR_CORRUPT);
	}
	free(out);
}
END_TEST

/* For any bytes, decoding gives the right length or an error, and writes nowhere else. */
START_TEST(damaged_bytes_decode_to_an_error_or_the_right_length)
{
	enum { LEN = 3000, ROUNDS = 3000 };
	const enum codec codec = codecs[_i];
	uint8_t *const text = vectors_words(12, LEN);
	uint8_t *const damage = vectors_splitmix((uint64_t)_i, 4 * ROUNDS);
	uint8_t stored[2 * LEN], out[LEN + 1];
	ck_assert_uint_le(codec_bound(LEN), sizeof(stored));
	for (size_t round = 0; round < ROUNDS; round++) {
		const size_t size =
			codec_encode(context, codec, span_of(text, LEN), stored, sizeof(stored));
		ck_assert_uint_gt(size, 0);
		const uint8_t *const dice = damage + 4 * round;
		stored[(dice[0] | dice[1] << 8) % (round % 2 == 0 ? size : 16)] ^=
			(uint8_t)(1 + dice[2] % 255);
		struct error err = {0};
		out[LEN] = 0x5a;
		const int got = codec_decode(
			context, codec, span_of(stored, size - dice[3] % 3), out, LEN, &err);
		ck_assert(got == 0 ? err.kind == ERROR_NONE : err.kind == ERROR_CORRUPT);
		ck_assert_uint_eq(out[LEN], 0x5a);
	}
	free(text);
	free(damage);
}
END_TEST

/* On content of each kind, the chosen codec is within 3 % of the smallest codec. */
START_TEST(the_choice_is_close_to_the_smallest)
{
	enum { LEN = 70000 };
	uint8_t *const contents[] = {vectors_words(13, LEN), vectors_weights(13, 2, LEN / 2),
		vectors_weights(13, 4, LEN / 4)};
	for (size_t k = 0; k < 3; k++) {
		const struct span content = span_of(contents[k], LEN);
		const size_t chosen = round_trip(codec_choose(context, content), content);
		ck_assert_uint_gt(chosen, 0);
		for (size_t i = 0; i < CODECS; i++) {
			const size_t other = round_trip(codecs[i], content);
			ck_assert(other == 0 || chosen * 100 <= other * 103);
		}
		free(contents[k]);
	}
}
END_TEST

Suite *test_codec_suite(void)
{
	Suite *const suite = suite_create("codec");
	TCase *const tests = tcase_create("codecs");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, numbers_are_pinned);
	tcase_add_test(tests, only_our_own_codecs_are_private);
	tcase_add_loop_test(tests, every_codec_gives_back_what_it_took, 0, CODECS);
	tcase_add_loop_test(tests, content_that_does_not_shrink_is_refused, 0, CODECS);
	tcase_add_test(tests, raw_decodes_to_itself);
	tcase_add_test(tests, byte_groups_stand_in_the_lz4_frame_one_behind_the_other);
	tcase_add_test(tests, published_byte_groups_are_undone);
	tcase_add_test(tests, unknown_numbers_and_over_long_chunks_are_corrupt);
	tcase_add_loop_test(tests, damaged_bytes_decode_to_an_error_or_the_right_length, 1, CODECS);
	tcase_add_test(tests, the_choice_is_close_to_the_smallest);
	suite_add_tcase(suite, tests);
	return suite;
}
