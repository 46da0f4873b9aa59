/* Directories of slime, miles and stitch, written by hand here as those programs write them,
 * without keys of ours. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/compress.h"
#include "base/format/compress_stream.h"
#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/fold.h"
#include "weights/delta/tensor_checksum.h"
#include "weights/model/shard_index.h"

Suite *test_slime_suite(void);

static char *scratch;
static char *base_path;
static char *delta_path;
static char *shard_path;
static char *index_path;
static char *back_path;

enum { W_BYTES = 16, F_BYTES = 8 };
static const char w_old[] = "0011223344556677";
static const char w_new[] = "00AA2233445566ZZ";
static const char f_old[] = "ffffFFFF";

static void setup(void)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {8}, .data = w_old},
		{.name = "f", .dtype = DTYPE_F32, .shape = {2}, .data = f_old},
	};
	scratch = unit_scratch_make();
	base_path = fixture_path(scratch, "base.safetensors");
	delta_path = fixture_path(scratch, "weight_v000007");
	shard_path = fixture_path(delta_path, "model-00000-of-00001.safetensors");
	index_path = fixture_path(delta_path, "model.safetensors.index.json");
	back_path = fixture_path(scratch, "back.safetensors");
	fixture_write_tensors(base_path, tensors, 2, true);
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
	free(base_path);
	free(delta_path);
	free(shard_path);
	free(index_path);
	free(back_path);
}

static struct buffer compress(struct span content, int level)
{
	struct buffer out;
	struct compressor *const compressor = compressor_new();
	buffer_init(&out, 1 << 25);
	uint8_t *const room = buffer_reserve(&out, compress_bound(content.len));
	buffer_commit(
		&out, compress_zstd(compressor, content, room, compress_bound(content.len), level));
	compressor_free(compressor);
	return out;
}

static struct buffer xor_frame(void)
{
	uint8_t content[W_BYTES];
	for (unsigned i = 0; i < W_BYTES; i++)
		content[i] = (uint8_t)(w_old[i] ^ w_new[i]);
	return compress(span_of(content, sizeof(content)), 1);
}

/* Changes the bytes 2, 3, 14 and 15. */
static struct buffer overwrite_frame(void)
{
	static const uint8_t content[] = {
		4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 14, 0, 0, 0, 15, 0, 0, 0, 'A', 'A', 'Z', 'Z'};
	return compress(span_of(content, sizeof(content)), 1);
}

static void checksum_of(
	enum delta_checksum kind, const char *content, char out[TENSOR_CHECKSUM_TEXT_BYTES])
{
	struct tensor_checksum *const checksum = tensor_checksum_new(kind);
	tensor_checksum_add(checksum, span_text(content));
	tensor_checksum_result(checksum, out);
	tensor_checksum_free(checksum);
}

/* Writes one shard with only `w`. `checksum` NULL writes none. */
static void write_shard(struct span frame, const char *checksum, const char *dtype)
{
	struct buffer bytes;
	struct buffer json;
	buffer_init(&bytes, 1 << 20);
	buffer_init(&json, 1 << 16);
	buffer_format(&json,
		"{\"__metadata__\":{%s%s%s},\"w\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
		checksum != NULL ? "\"w\":\"" : "", checksum != NULL ? checksum : "",
		checksum != NULL ? "\"" : "", dtype, frame.len, frame.len);
	for (unsigned i = 0; i < 8; i++)
		buffer_add_byte(&bytes, (uint8_t)(json.len >> (8 * i)));
	buffer_add_span(&bytes, buffer_span(&json));
	buffer_add_span(&bytes, frame);
	fixture_write(shard_path, buffer_span(&bytes));
	buffer_release(&bytes);
	buffer_release(&json);
}

#define MAP "\"w\":\"model-00000-of-00001.safetensors\""
static void write_index(const char *encoding, const char *checksum, const char *map)
{
	struct buffer json;
	buffer_init(&json, 1 << 16);
	buffer_format(&json,
		"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"%s\","
		"\"compression_format\":\"zstd\",\"checksum_format\":\"%s\"},\"weight_map\":{%s}}",
		encoding, checksum, map);
	fixture_write(index_path, buffer_span(&json));
	buffer_release(&json);
}

static int apply(struct error *err)
{
	struct delta_stats stats;
	struct error open_err = {0};
	struct checkpoint *const base = checkpoint_open(base_path, &open_err);
	ck_assert_msg(base != NULL, "%s", open_err.text);
	const struct delta_apply_params params = {
		.base = base, .delta = delta_path, .out = back_path};
	const int result = delta_apply(&params, &stats, err);
	checkpoint_close(base);
	return result;
}

static void expect_applied(const char *w)
{
	struct error err = {0};
	ck_assert_msg(apply(&err) == 0, "%s", err.text);
	struct checkpoint *const back = checkpoint_open(back_path, &err);
	ck_assert_msg(back != NULL, "%s", err.text);
	ck_assert(span_equal(checkpoint_tensor(back, 0), span_text(f_old)));
	ck_assert(span_equal(checkpoint_tensor(back, 1), span_text(w)));
	checkpoint_close(back);
}

static void expect_refused(enum error_kind kind, const char *message)
{
	struct error err = {0};
	const size_t entries = fixture_entries(scratch);
	ck_assert_int_eq(apply(&err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert_uint_eq(fixture_entries(scratch), entries);
}

START_TEST(directories_of_others_are_read)
{
	const enum delta_checksum checksum = (enum delta_checksum)(_i % DELTA_CHECKSUMS);
	const bool overwrites = _i >= DELTA_CHECKSUMS;
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	struct buffer frame = overwrites ? overwrite_frame() : xor_frame();
	checksum_of(checksum, w_new, text);
	write_shard(buffer_span(&frame), text, "U8");
	write_index(overwrites ? "overwrite" : "xor", delta_checksum_name(checksum), MAP);
	expect_applied(w_new);
	buffer_release(&frame);
}
END_TEST

START_TEST(checksums_are_spelled_as_theirs)
{
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	checksum_of(DELTA_ADLER32, "Wikipedia", text);
	ck_assert_str_eq(text, "11e60398");
	checksum_of(DELTA_ADLER32, "", text);
	ck_assert_str_eq(text, "00000001");
	checksum_of(DELTA_XXH3_128, "", text);
	ck_assert_str_eq(text, "99aa06d3014798d86001c324468d497f");
	checksum_of(DELTA_BLAKE3, "", text);
	ck_assert_str_eq(text, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
}
END_TEST

START_TEST(a_step_without_change_is_an_empty_map)
{
	write_index("xor", "adler32", "");
	expect_applied(w_old);
}
END_TEST

/* Those programs misspell the name, and readers must accept it. */
START_TEST(alder32_is_taken)
{
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	struct buffer frame = xor_frame();
	checksum_of(DELTA_ADLER32, w_new, text);
	write_shard(buffer_span(&frame), text, "U8");
	write_index("xor", "alder32", MAP);
	expect_applied(w_new);
	buffer_release(&frame);
}
END_TEST

START_TEST(a_tensor_that_is_not_what_its_checksum_says)
{
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	struct buffer frame = xor_frame();
	checksum_of(DELTA_XXH3_128, w_old, text);
	write_shard(buffer_span(&frame), text, "U8");
	write_index("xor", "xxh3-128", MAP);
	expect_refused(ERROR_DIGEST_MISMATCH, "(step 7): tensor 'w': its checksum is");
	write_shard(buffer_span(&frame), NULL, "U8");
	expect_refused(ERROR_INVALID, "'w' has no checksum");
	write_shard(buffer_span(&frame), text, "I8");
	expect_refused(ERROR_INVALID, "'w' is not a vector of bytes");
	buffer_release(&frame);
}
END_TEST

/* Frames whose claimed or real size does not fit the tensor. */
START_TEST(frames_are_bounded_by_the_tensor)
{
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	uint8_t *const zeros = memory_new(1 << 24);
	struct buffer bomb = compress(span_of(zeros, 1 << 24), 1);
	struct buffer small = compress(span_of(zeros, W_BYTES - 1), 1);
	struct buffer good = xor_frame();
	struct buffer two;
	buffer_init(&two, 1 << 16);
	buffer_add_span(&two, buffer_span(&good));
	buffer_add_span(&two, buffer_span(&good));
	checksum_of(DELTA_XXH3_128, w_new, text);
	write_index("xor", "xxh3-128", MAP);
	write_shard(buffer_span(&bomb), text, "U8");
	expect_refused(ERROR_INVALID, "says 16777216 bytes and should have 16");
	write_shard(buffer_span(&small), text, "U8");
	expect_refused(ERROR_INVALID, "says 15 bytes and should have 16");
	write_shard(buffer_span(&two), text, "U8");
	expect_refused(ERROR_INVALID, "not one whole zstd frame");
	for (size_t len = 0; len < good.len; len++) {
		write_shard(span_slice(buffer_span(&good), 0, len), text, "U8");
		expect_refused(ERROR_INVALID, "(step 7): tensor 'w'");
	}
	free(zeros);
	buffer_release(&bomb);
	buffer_release(&small);
	buffer_release(&good);
	buffer_release(&two);
}
END_TEST

static const struct {
	uint8_t content[16];
	size_t len;
	const char *message;
} overwrites[] = {
	{{1, 0, 0, 0, 16, 0, 0, 0, 'A'}, 9, "a position"},
	{{2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'A', 'B'}, 14, "a position"},
	{{2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'A', 'B'}, 14, "a position"},
	{{17, 0, 0, 0}, 4, "more bytes than the tensor has"},
	{{255, 255, 255, 255}, 4, "more bytes than the tensor has"},
	{{1, 0, 0, 0, 3, 0, 0, 0}, 8, "says 8 bytes and should have 9"},
	{{1, 0, 0, 0, 3, 0, 0, 0, 'A', 'B'}, 10, "says 10 bytes and should have 9"},
	{{1, 0}, 2, "fewer bytes"},
};

START_TEST(malformed_overwrites_are_refused)
{
	struct buffer frame = compress(span_of(overwrites[_i].content, overwrites[_i].len), 1);
	write_shard(buffer_span(&frame), "00000001", "U8");
	write_index("overwrite", "adler32", MAP);
	expect_refused(ERROR_INVALID, overwrites[_i].message);
	buffer_release(&frame);
}
END_TEST

static const struct {
	const char *json;
	enum error_kind kind;
	const char *message;
} indexes[] = {
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\"},"
	 "\"weight_map\":{}}",
		ERROR_INVALID, "checksum_format"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"crc32\"},\"weight_map\":{}}",
		ERROR_UNSUPPORTED, "'crc32'"},
	{"{\"metadata\":{\"version\":\"000007\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\",\"checksum_format\":\"adler32\"},"
	 "\"weight_map\":{}}",
		ERROR_INVALID, "base_version"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{}}",
		ERROR_INVALID, "empty or over"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"lz4\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{}}",
		ERROR_UNSUPPORTED, "'lz4'"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"arc_v2\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{}}",
		ERROR_UNSUPPORTED, "'arc_v2'"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{\"w\":\"model-00001-of-00002.safetensors\"}}",
		ERROR_INVALID, "which is missing"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{\"w\":\"../base.safetensors\"}}",
		ERROR_INVALID, "outside of its folder"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{" MAP
	 ",\"f\":\"model-00000-of-00001.safetensors\"}}",
		ERROR_INVALID, "lacks it"},
	{"{\"metadata\":{\"version\":\"000007\",\"base_version\":\"000006\",\"delta_encoding\":\"xor\",\"compression_format\":\"zstd\","
	 "\"checksum_format\":\"adler32\"},\"weight_map\":{" MAP,
		ERROR_INVALID, "malformed"},
};

START_TEST(malformed_indexes_are_refused)
{
	struct buffer frame = xor_frame();
	write_shard(buffer_span(&frame), "00000001", "U8");
	fixture_write_text(index_path, indexes[_i].json);
	expect_refused(indexes[_i].kind, indexes[_i].message);
	buffer_release(&frame);
}
END_TEST

/* A reader that follows the index would miss a tensor that only a shard has. */
START_TEST(tensors_beside_the_index_are_refused)
{
	char *const other = fixture_path(delta_path, "model-00001-of-00002.safetensors");
	struct buffer frame = xor_frame();
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	checksum_of(DELTA_ADLER32, w_new, text);
	write_shard(buffer_span(&frame), text, "U8");
	struct buffer shard = fixture_read(shard_path);
	fixture_write(other, buffer_span(&shard));
	/* the same tensor in two shards of the index */
	write_index("xor", "adler32", MAP ",\"f\":\"model-00001-of-00002.safetensors\"");
	expect_refused(ERROR_INVALID, "lacks it");
	/* a shard that the index does not name is left over and ignored */
	write_index("xor", "adler32", MAP);
	expect_applied(w_new);
	buffer_release(&shard);
	buffer_release(&frame);
	free(other);
}
END_TEST

/* Our directories have what those programs' readers need. */
START_TEST(ours_are_as_theirs)
{
	static const struct fixture_tensor after[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {8}, .data = w_new},
		{.name = "f", .dtype = DTYPE_F32, .shape = {2}, .data = f_old},
	};
	struct error err = {0};
	struct delta_stats stats;
	char text[TENSOR_CHECKSUM_TEXT_BYTES];
	char *const next_path = fixture_path(scratch, "next.safetensors");
	fixture_write_tensors(next_path, after, 2, true);
	struct checkpoint *const base = checkpoint_open(base_path, &err);
	struct checkpoint *const next = checkpoint_open(next_path, &err);
	const enum delta_checksum checksum = (enum delta_checksum)_i;
	const struct delta_diff_params params = {
		.base = base,
		.next = next,
		.format = DELTA_SLIME_XOR,
		.checksum = checksum,
		.model_version = 7,
		.out = delta_path,
	};
	ck_assert_msg(delta_diff(&params, &stats, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(fixture_entries(delta_path), 2);
	struct buffer index_text = fixture_read(index_path);
	struct shard_index *const index =
		shard_index_parse(buffer_span(&index_text), "index", &err);
	static const char *const keys[] = {"version", "base_version", "delta_encoding",
		"compression_format", "checksum_format"};
	const char *const values[] = {
		"000007", "000006", "xor", "zstd", delta_checksum_name(checksum)};
	for (size_t i = 0; i < 5; i++)
		ck_assert(span_equal_text(delta_metadata_find(shard_index_metadata(index, 0),
						  shard_index_metadata_count(index), keys[i]),
			values[i]));
	ck_assert_uint_eq(shard_index_count(index), 1);
	struct checkpoint *const shard = checkpoint_open(shard_path, &err);
	const struct safetensors *const header = checkpoint_file(shard, 0)->shard;
	checksum_of(checksum, w_new, text);
	ck_assert_uint_eq(safetensors_metadata_count(header), 1);
	ck_assert(span_equal_text(safetensors_metadata_find(header, "w"), text));
	ck_assert_uint_eq(safetensors_tensor(header, 0)->dtype, DTYPE_U8);
	uint64_t content = 0;
	ck_assert(zstd_content_size(checkpoint_tensor(shard, 0), &content));
	ck_assert_uint_eq(content, W_BYTES);
	checkpoint_close(shard);
	shard_index_free(index);
	buffer_release(&index_text);
	checkpoint_close(base);
	checkpoint_close(next);
	free(next_path);
	expect_applied(w_new);
}
END_TEST

/* Without a base, only the frame says how large the tensor is. */
START_TEST(frames_that_promise_too_much_do_not_fold)
{
	/* The content size is 2^60, in 8 bytes. Then comes one empty last block, or a block of
	 * 128 KiB of zeros and an empty last block. */
	static const uint8_t none[] = {
		0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x38, 0, 0, 0, 0, 0, 0, 0, 0x10, 1, 0, 0};
	static const uint8_t zeros[] = {0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0x38, 0, 0, 0, 0, 0, 0, 0,
		0x10, 0x02, 0, 0x10, 0, 1, 0, 0};
	const struct span frames[] = {span_of(none, sizeof(none)), span_of(zeros, sizeof(zeros))};
	const struct fold_params params = {
		.deltas = (const char *const *)&delta_path, .count = 1, .out = back_path};
	write_index("xor", "xxh3-128", MAP);
	for (size_t i = 0; i < 2; i++) {
		struct delta_stats stats;
		struct error err = {0};
		write_shard(frames[i], "00000000000000000000000000000000", "U8");
		ck_assert_int_eq(fold(&params, &stats, &err), -1);
		ck_assert_msg(err.kind == ERROR_INVALID && strstr(err.text, "tensor 'w'") != NULL,
			"%s: %s", error_kind_name(err.kind), err.text);
	}
}
END_TEST

Suite *test_slime_suite(void)
{
	Suite *const suite = suite_create("slime");
	TCase *const tcase = tcase_create("slime");
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, directories_of_others_are_read, 0, 2 * DELTA_CHECKSUMS);
	tcase_add_test(tcase, checksums_are_spelled_as_theirs);
	tcase_add_test(tcase, a_step_without_change_is_an_empty_map);
	tcase_add_test(tcase, alder32_is_taken);
	tcase_add_test(tcase, a_tensor_that_is_not_what_its_checksum_says);
	tcase_add_test(tcase, frames_are_bounded_by_the_tensor);
	tcase_add_test(tcase, frames_that_promise_too_much_do_not_fold);
	tcase_add_loop_test(tcase, malformed_overwrites_are_refused, 0,
		sizeof(overwrites) / sizeof(overwrites[0]));
	tcase_add_loop_test(
		tcase, malformed_indexes_are_refused, 0, sizeof(indexes) / sizeof(indexes[0]));
	tcase_add_test(tcase, tensors_beside_the_index_are_refused);
	tcase_add_loop_test(tcase, ours_are_as_theirs, 0, DELTA_CHECKSUMS);
	suite_add_tcase(suite, tcase);
	return suite;
}
