#include "chunker/codec_planes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_codec_planes_suite(void);

struct fixture {
	struct codec_planes planes;
	uint8_t scratch[CHUNK_MAX_BYTES];
	uint8_t stored[CHUNK_MAX_BYTES + CODEC_PLANES_OVERHEAD_BYTES];
	uint8_t out[CHUNK_MAX_BYTES];
};

static struct fixture *fixture_new(size_t width)
{
	struct fixture *const fixture = memory_new(sizeof(*fixture));
	fixture->planes = (struct codec_planes){
		.compressor = compressor_new(), .scratch = fixture->scratch, .width = width};
	return fixture;
}

static void fixture_free(struct fixture *fixture)
{
	compressor_free(fixture->planes.compressor);
	free(fixture);
}

static void expect_corrupt(struct fixture *fixture, struct span stored, size_t len)
{
	struct error err = {0};
	uint8_t *const exact = memory_copy(stored.data, stored.len);
	ck_assert_int_eq(codec_planes_decode(&fixture->planes, span_of(exact, stored.len),
				 fixture->out, len, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	free(exact);
}

START_TEST(planes_that_do_not_shrink_are_stored_as_they_are)
{
	static const uint8_t content[] = {1, 2, 3, 4, 5};
	static const uint8_t expected[] = {3, 0, 0, 1, 3, 5, 2, 0, 0, 2, 4};
	struct fixture *const fixture = fixture_new(2);
	struct error err = {0};
	const size_t size = codec_planes_encode(
		&fixture->planes, span_of(content, sizeof(content)), fixture->stored);
	ck_assert_uint_eq(size, sizeof(expected));
	ck_assert_mem_eq(fixture->stored, expected, size);
	ck_assert_int_eq(codec_planes_decode(&fixture->planes, span_of(expected, size),
				 fixture->out, sizeof(content), &err),
		0);
	ck_assert_mem_eq(fixture->out, content, sizeof(content));
	fixture_free(fixture);
}
END_TEST

/* The low bytes of bf16 are mantissas and stay as they are. The high bytes become one zstd
 * frame. */
START_TEST(mantissas_stay_and_exponents_become_a_zstd_frame)
{
	enum { COUNT = 30000 };
	static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
	uint8_t *const weights = vectors_weights(1, 2, COUNT);
	struct fixture *const fixture = fixture_new(2);
	const size_t size =
		codec_planes_encode(&fixture->planes, span_of(weights, 2 * COUNT), fixture->stored);
	const uint8_t *const low = fixture->stored;
	const uint8_t *const high = low + 3 + COUNT;
	ck_assert_uint_eq((size_t)low[0] | (size_t)low[1] << 8 | (size_t)low[2] << 16, COUNT);
	size_t wrong = 0;
	for (size_t i = 0; i < COUNT; i++)
		wrong += low[3 + i] != weights[2 * i] ? 1 : 0;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(
		(size_t)high[0] | (size_t)high[1] << 8 | (size_t)high[2] << 16, size - 6 - COUNT);
	ck_assert_mem_eq(high + 3, zstd_magic, sizeof(zstd_magic));
	fixture_free(fixture);
	free(weights);
}
END_TEST

START_TEST(content_of_every_small_length_comes_back)
{
	uint8_t *const weights = vectors_weights(2, 2, 700);
	struct fixture *const fixture = fixture_new((size_t)_i);
	for (size_t len = 0; len <= 1400; len++) {
		struct error err = {0};
		const size_t size = codec_planes_encode(
			&fixture->planes, span_of(weights, len), fixture->stored);
		ck_assert_uint_le(size, len + CODEC_PLANES_OVERHEAD_BYTES);
		ck_assert_int_eq(codec_planes_decode(&fixture->planes,
					 span_of(fixture->stored, size), fixture->out, len, &err),
			0);
		ck_assert(len == 0 || memcmp(fixture->out, weights, len) == 0);
	}
	fixture_free(fixture);
	free(weights);
}
END_TEST

START_TEST(wrong_lengths_are_corrupt)
{
	enum { COUNT = 500 };
	uint8_t *const weights = vectors_weights(3, 2, COUNT);
	struct fixture *const fixture = fixture_new(2);
	const size_t size =
		codec_planes_encode(&fixture->planes, span_of(weights, 2 * COUNT), fixture->stored);
	for (size_t cut = 0; cut < size; cut++)
		expect_corrupt(fixture, span_of(fixture->stored, cut), 2 * COUNT);
	expect_corrupt(fixture, span_of(fixture->stored, size + 1), 2 * COUNT);
	expect_corrupt(fixture, span_of(fixture->stored, size), 2 * COUNT - 2);
	expect_corrupt(fixture, span_of(fixture->stored, size), 2 * COUNT + 2);
	fixture_free(fixture);
	free(weights);
}
END_TEST

static const struct {
	const char *why;
	size_t stored_len;
	uint8_t stored[16];
} invalid[] = {
	{"a plane longer than the content's", 11, {4, 0, 0, 1, 3, 5, 7, 1, 0, 0, 2}},
	{"a plane longer than what is left", 10, {3, 0, 0, 1, 3, 5, 2, 0, 0, 2}},
	{"a length past the end", 6, {255, 255, 255, 1, 2, 3}},
	{"a short plane that is no zstd frame", 10, {2, 0, 0, 1, 3, 2, 0, 0, 2, 4}},
	{"an empty plane for a full one", 8, {0, 0, 0, 2, 0, 0, 2, 4}},
};

START_TEST(malformed_planes_are_corrupt)
{
	struct fixture *const fixture = fixture_new(2);
	expect_corrupt(fixture, span_of(invalid[_i].stored, invalid[_i].stored_len), 5);
	fixture_free(fixture);
}
END_TEST

/* A frame that is longer than its plane is refused, because a plane has only one stored form. */
START_TEST(a_frame_that_does_not_shrink_is_corrupt)
{
	static const uint8_t plane[3] = {1, 3, 5};
	struct fixture *const fixture = fixture_new(2);
	uint8_t *const at = fixture->stored;
	const size_t frame = compress_zstd(
		fixture->planes.compressor, span_of(plane, sizeof(plane)), at + 3, 64, 1);
	ck_assert_uint_gt(frame, sizeof(plane));
	at[0] = (uint8_t)frame;
	memcpy(at + 3 + frame, "\x02\x00\x00\x02\x04", 5);
	expect_corrupt(fixture, span_of(at, 3 + frame + 5), 5);
	fixture_free(fixture);
}
END_TEST

Suite *test_codec_planes_suite(void)
{
	Suite *const suite = suite_create("codec_planes");
	TCase *const tests = tcase_create("layout");
	tcase_add_test(tests, planes_that_do_not_shrink_are_stored_as_they_are);
	tcase_add_test(tests, mantissas_stay_and_exponents_become_a_zstd_frame);
	tcase_add_loop_test(tests, content_of_every_small_length_comes_back, 2, 3);
	tcase_add_loop_test(tests, content_of_every_small_length_comes_back, 4, 5);
	tcase_add_test(tests, wrong_lengths_are_corrupt);
	tcase_add_loop_test(
		tests, malformed_planes_are_corrupt, 0, sizeof(invalid) / sizeof(*invalid));
	tcase_add_test(tests, a_frame_that_does_not_shrink_is_corrupt);
	suite_add_tcase(suite, tests);
	return suite;
}
