#include "chunker/chunk_stream.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "base/encode.h"
#include "chunker/chunk_hash.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_chunk_stream_suite(void);

enum { CHUNKS_MAX = 64 };

struct taker {
	size_t count;
	size_t total;
	size_t copied;      /* chunks that do not lie in the pushed bytes */
	struct span pushed; /* content as a whole */
	size_t refuse_at;   /* chunk number to fail at */
	struct chunk_entry chunks[CHUNKS_MAX];
};

static int take(void *opaque, const struct chunk_id *id, struct span content, struct error *err)
{
	struct taker *const taker = opaque;
	ck_assert_uint_lt(taker->count, CHUNKS_MAX);
	if (taker->count == taker->refuse_at)
		return error_set(err, ERROR_NO_SPACE, "the taker is full");
	ck_assert_mem_eq(content.data, taker->pushed.data + taker->total, content.len);
	const struct chunk_id expected = chunk_hash(content);
	ck_assert(chunk_id_equal(id, &expected));
	if (content.data != taker->pushed.data + taker->total)
		taker->copied++;
	taker->chunks[taker->count++] = (struct chunk_entry){.id = *id, .size = content.len};
	taker->total += content.len;
	return 0;
}

static struct taker run(struct span content, size_t piece)
{
	struct taker taker = {.pushed = content, .refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(take, &taker);
	for (size_t at = 0; at < content.len; at += piece) {
		if (chunk_stream_push(stream, span_slice(content, at, piece), &err) != 0)
			ck_abort_msg("%s", err.text);
	}
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	chunk_stream_free(stream);
	ck_assert_uint_eq(taker.total, content.len);
	return taker;
}

static const size_t pieces[] = {1, 37, 255, 8192, 65536, 131072, 1000000};
enum { PIECES = sizeof(pieces) / sizeof(*pieces) };

static const struct {
	size_t end;
	const char *id;
} seed0[] = {
	{84493, "6eca1e7dadaf08cca5d82d318c800f07c2ddcec115a7e8627e5edd9605b94b8d"},
	{134421, "624ea34d72a06e5d43a1b8dd10763f0d22f165992c397ed97563899b27fdd88a"},
	{144853, "4411d2ec847c6e3f451a7451ff3933adb4f1c31587421b9f730b698a78313b47"},
	{243318, "6342bde97433e29e0779ad33eb8040d986679040361b3cc3a06230fe60dd6c9b"},
	{271793, "405253fcf15bba751adc4f507d3453273daff81ed4d8acd71c521aa1cbddc0b5"},
	{336457, "4482374af7f8bebfdb5c5df0299f80128d6c58886ad7b218c562b1d74064e4cb"},
	{467529, "80acc8d39c853b4b8a8c6ad7b63bf2ea68f62c2226b92f06349f92cc84d213cc"},
	{494581, "a7076d7d343f711fb20fe6cd023248d8d051e8fe7d44172596cd5c7ea7edaf65"},
	{582000, "44755217bbb4dadc81ea7695765230a34a2e6cb3b55f373f1de35aeba79ae92c"},
	{596735, "001adc1d302d5f039278325dcbd5ec3b194f4794f1629d6f962f9f4bb78a7bff"},
	{616815, "f8460a337c186f07c2e225bb287a1d3d3d686dc69d0828e99640f7d8852c5b90"},
	{653164, "c9bc3da29025dc1ba562d303d815151d9a937367abb766ae842a165e8493d9fe"},
	{678202, "5044339dfd65e8163bdfe642614a6be604b04d6aeacf222cf219ad287bfc5cf1"},
	{724510, "163622db0fe0da93f2ef964eed4c485f3c7a9c312f8e8e8a312ab4bb8141f13e"},
	{815591, "e1730534a858aa0258ad8904ef12b829b8a123a1c611250275c9ca9471e4c650"},
	{827760, "1fbc6854f9185caba1e1f55393f41f83b895b18f9c99245c029025ca48f1e14b"},
	{958832, "8a27b66ccf05b864b6bef6fb5c970fe894f73d2330e8e98fe7841dcdbd9e9576"},
	{991092, "bc70a33e7a9ec820cac24b87023469a57bdae1bf91cc3961b95806c64a525221"},
	{1000000, "03e5b5f5a088269ec4b329f1e04debfac4cb54b9c0facf038f7e8e0f054be7e2"},
};
enum { SEED0_CHUNKS = sizeof(seed0) / sizeof(*seed0) };

static void expect_sha256(struct span bytes, const char *expected)
{
	uint8_t digest[SHA256_BYTES];
	char text[2 * SHA256_BYTES + 1];
	sha256(bytes, digest);
	encode_hex(span_of(digest, sizeof(digest)), text);
	ck_assert_str_eq(text, expected);
}

START_TEST(published_chunks_come_out_of_pieces_of_any_size)
{
	uint8_t *const bytes = vectors_splitmix(0, 1000000);
	ck_assert_uint_eq(bytes[0], 175);
	ck_assert_uint_eq(bytes[127], 132);
	ck_assert_uint_eq(bytes[111111], 118);
	expect_sha256(span_of(bytes, 1000000),
		"b3d0a1f7938cd4d8413a4dcffd4313e2e8ac0cb61cb1090eb140ea8e9154befb");
	const struct taker taker = run(span_of(bytes, 1000000), pieces[_i]);
	ck_assert_uint_eq(taker.count, SEED0_CHUNKS);
	size_t end = 0;
	for (size_t i = 0; i < SEED0_CHUNKS; i++) {
		end += taker.chunks[i].size;
		ck_assert_uint_eq(end, seed0[i].end);
		vectors_expect_id(taker.chunks[i].id, seed0[i].id);
	}
	vectors_expect_id(chunk_hash_xorb(taker.chunks, taker.count),
		"6f2ce16ca5e317f0100ff0e7e5bf40a0de9032e9ee1ad04b6b8ff4e36cdfbf6c");
	vectors_expect_id(chunk_hash_file(taker.chunks, taker.count),
		"3d17b2d7d64a0e011b6717a52d9a16bd2c3f05b743fa8adf52a7d75dafab6d89");
	vectors_expect_id(chunk_hash_range(taker.chunks, taker.count),
		"6daf15a7ed258b91f607e8f5e6723a8564292d12c8104c156f7bad9c255a0180");
	free(bytes);
}
END_TEST

static const struct {
	unsigned factor, offset;
	size_t len;
	const char *xorb, *file;
} regular[] = {
	{0, 59, 1000000, "a6b5a7f0bb38b6fd5fb39031eb7564e18ea0e7a0b7bea87de54ed1db8bc85884",
		"53f845640fcd1c7440befff65bd93434c83a30c6559a705597d61f2ef64e2f88"},
	{7, 13, 200000, "f0755d96ee199d4f01e83da9fe2c38353de7fd38fb79a320a7d50be510026f74",
		"d88d9e0b760f32c90b7c6592b4cb85251c01bb797371e3c637087b96ac578723"},
	{13, 37, 1000000, "7be289d851485c40dcde52dbcf37a7823a5ef0bfcdf1ca1c5a32ad9594c71571",
		"041a50f3639f4a080a89237025d643e2a3e22935ca5d7dbc1a38f5c1e859f859"},
};

START_TEST(regular_content_has_its_published_hashes)
{
	uint8_t *const bytes =
		vectors_linear(regular[_i].factor, regular[_i].offset, regular[_i].len);
	for (size_t p = 1; p < PIECES; p++) {
		const struct taker taker = run(span_of(bytes, regular[_i].len), pieces[p]);
		vectors_expect_id(chunk_hash_xorb(taker.chunks, taker.count), regular[_i].xorb);
		vectors_expect_id(chunk_hash_file(taker.chunks, taker.count), regular[_i].file);
	}
	free(bytes);
}
END_TEST

START_TEST(whole_chunks_in_one_push_are_not_copied)
{
	uint8_t *const bytes = vectors_splitmix(0, 1000000);
	const struct taker taker = run(span_of(bytes, 1000000), 1000000);
	/* the last chunk, whose end only chunk_stream_end knows */
	ck_assert_uint_eq(taker.copied, 1);
	free(bytes);
}
END_TEST

START_TEST(no_content_gives_no_chunk)
{
	const struct taker taker = run(span_of(NULL, 0), 1);
	ck_assert_uint_eq(taker.count, 0);
}
END_TEST

/* In content without cuts, a chunk has 131072 bytes from the end before it, whatever the length of
 * the chunk before. */
START_TEST(an_ended_stream_starts_anew)
{
	enum { FIRST = 100000, SECOND = 150000 };
	uint8_t *const bytes = vectors_linear(0, 59, FIRST + SECOND);
	struct taker taker = {.pushed = span_of(bytes, FIRST + SECOND), .refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(take, &taker);
	ck_assert_int_eq(chunk_stream_push(stream, span_of(bytes, FIRST), &err), 0);
	ck_assert_uint_eq(taker.count, 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	ck_assert_int_eq(chunk_stream_push(stream, span_of(bytes + FIRST, SECOND), &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	ck_assert_uint_eq(taker.count, 3);
	ck_assert_uint_eq(taker.chunks[0].size, FIRST);
	ck_assert_uint_eq(taker.chunks[1].size, CHUNK_MAX_BYTES);
	ck_assert_uint_eq(taker.chunks[2].size, SECOND - CHUNK_MAX_BYTES);
	chunk_stream_free(stream);
	free(bytes);
}
END_TEST

/* The taker refuses a chunk in the middle of a push, a chunk that was held, or the last chunk. */
START_TEST(the_takers_refusal_stops_the_push)
{
	static const size_t refusals[] = {0, 1, 3};
	uint8_t *const bytes = vectors_splitmix(1, 256000);
	struct taker taker = {.pushed = span_of(bytes, 256000), .refuse_at = refusals[_i]};
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(take, &taker);
	int got = 0;
	for (size_t at = 0; at < 256000 && got == 0; at += 64000)
		got = chunk_stream_push(stream, span_slice(taker.pushed, at, 64000), &err);
	if (got == 0)
		got = chunk_stream_end(stream, &err);
	ck_assert_int_eq(got, -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_uint_eq(taker.count, refusals[_i]);
	chunk_stream_free(stream);
	free(bytes);
}
END_TEST

Suite *test_chunk_stream_suite(void)
{
	Suite *const suite = suite_create("chunk_stream");
	TCase *const tests = tcase_create("push");
	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, published_chunks_come_out_of_pieces_of_any_size, 0, PIECES);
	tcase_add_loop_test(tests, regular_content_has_its_published_hashes, 0,
		sizeof(regular) / sizeof(*regular));
	tcase_add_test(tests, whole_chunks_in_one_push_are_not_copied);
	tcase_add_test(tests, no_content_gives_no_chunk);
	tcase_add_test(tests, an_ended_stream_starts_anew);
	tcase_add_loop_test(tests, the_takers_refusal_stops_the_push, 0, 3);
	suite_add_tcase(suite, tests);
	return suite;
}
