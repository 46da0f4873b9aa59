/* PULSE's deltas: frames and their headers, written by hand here. Python's hashlib computed the
 * hash of the result. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/format/compress.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/memory_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_patch.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/delta_source.h"
#include "weights/delta/fold.h"
#include "weights/delta/pulse_payload.h"
#include "weights/model/checkpoint_source.h"

Suite *test_pulse_suite(void);

enum { FRAME_BYTES = 64 * 1024, DATA_MOST = 64 };
static const char w_old[] = "0011223344556677"; /* BF16 [2,4] */
static const char w_new[] = "00AA22334455ZZ77";
static const char b_old[] = "aaaabbbbcccc"; /* F32 [3] */
static const char b_new[] = "aaaaXXXXcccc";
#define HASH "7bb44c2667b125129c0bdef41a928fcc7723603f503a40e66e41bddcaba159df"

static char *scratch;
static char *base_path;
static char *delta_path;
static char *back_path;

static void setup(void)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {2, 4}, .data = w_old},
		{.name = "b", .dtype = DTYPE_F32, .shape = {3}, .data = b_old},
	};
	scratch = unit_scratch_make();
	base_path = fixture_path(scratch, "base.safetensors");
	delta_path = fixture_path(scratch, "DELTA");
	back_path = fixture_path(scratch, "back.safetensors");
	fixture_write_tensors(base_path, tensors, 2, true);
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
	free(base_path);
	free(delta_path);
	free(back_path);
}

static void put(const char *name, struct span bytes)
{
	char *const path = fixture_path(delta_path, name);
	fixture_write(path, bytes);
	free(path);
}

static const char *sha256_of(struct span bytes, char out[2 * SHA256_BYTES + 1])
{
	uint8_t digest[SHA256_BYTES];
	sha256(bytes, digest);
	encode_hex(span_of(digest, sizeof(digest)), out);
	return out;
}

static size_t pack(const char *header, struct span data, uint8_t frame[FRAME_BYTES])
{
	struct buffer raw;
	const size_t len = strlen(header);
	const uint8_t length[] = {(uint8_t)len, (uint8_t)(len >> 8), 0, 0};
	struct compressor *const compressor = compressor_new();
	buffer_init(&raw, FRAME_BYTES);
	buffer_add(&raw, length, sizeof(length));
	buffer_add_text(&raw, header);
	buffer_add_span(&raw, data);
	const size_t size = compress_zstd(compressor, buffer_span(&raw), frame, FRAME_BYTES, 1);
	compressor_free(compressor);
	buffer_release(&raw);
	return size;
}

/* Each "*" stands for a SHA-256: the first for that of delta_metadata.json, the second for that of
 * the frame. */
#define METADATA                                                                                \
	"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":30,\"anchor_window\":30," \
	"\"created_at\":1.5,\"weights_hash\":\"" HASH "\",\"file_manifest\":{"                  \
	"\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"*\"}}"

static void put_metadata(const char *text, struct span delta, struct span frame)
{
	char digest[2 * SHA256_BYTES + 1];
	struct buffer filled;
	bool is_second = false;
	buffer_init(&filled, 4096);
	for (const char *at = text; *at != '\0'; at++) {
		if (*at != '*') {
			buffer_add_byte(&filled, (uint8_t)*at);
			continue;
		}
		buffer_add_text(&filled, sha256_of(is_second ? frame : delta, digest));
		is_second = true;
	}
	put("metadata.json", buffer_span(&filled));
	buffer_release(&filled);
}

static void write_delta(
	const char *format, const char *metadata, const char *header, struct span data)
{
	uint8_t frame[FRAME_BYTES];
	char text[256];
	const size_t len = pack(header, data, frame);
	snprintf(text, sizeof(text), "{\"format\":\"%s\",\"threshold\":0.0,\"shapes\":{}}", format);
	put("delta_sparse.bin.zst", span_of(frame, len));
	put("delta_metadata.json", span_text(text));
	put_metadata(metadata, span_text(text), span_of(frame, len));
}

static const struct codec {
	const char *format;
	const char *header;
	const char *data;
	size_t len;
} codecs[] = {
	{"sparse_codec_v2",
		"{\"version\":2,\"tensors\":["
		"{\"name\":\"b\",\"shape\":[3],\"num_nonzero\":1,\"value_dtype\":\"float32\",\"indices_offset\":0,"
		"\"indices_size\":4,\"values_offset\":4,\"values_size\":4},"
		"{\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\",\"indices_offset\":8,"
		"\"indices_size\":8,\"values_offset\":16,\"values_size\":4}]}",
		"\1\0\0\0"
		"XXXX"
		"\1\0\0\0\5\0\0\0"
		"AAZZ",
		20},
	{"sparse_codec_v3",
		"{\"version\":3,\"tensors\":["
		"{\"name\":\"b\",\"shape\":[3],\"num_nonzero\":1,\"value_dtype\":\"float32\",\"indices_offset\":0,"
		"\"indices_size\":8,\"rows_size\":4,\"cols_size\":4,\"values_offset\":8,\"values_size\":4},"
		"{\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\",\"indices_offset\":12,"
		"\"indices_size\":16,\"rows_size\":8,\"cols_size\":8,\"values_offset\":28,\"values_size\":4}]}",
		"\1\0\0\0"
		"\0\0\0\0"
		"XXXX"
		"\0\0\0\0\1\0\0\0"
		"\1\0\0\0\2\0\0\0"
		"AAZZ",
		32},
	{"sparse_codec_v3.1",
		"{\"version\":31,\"tensors\":["
		"{\"name\":\"b\",\"shape\":[3],\"num_nonzero\":1,\"value_dtype\":\"float32\",\"row_dtype\":\"int32\","
		"\"col_dtype\":\"uint16\",\"indices_offset\":0,\"indices_size\":6,\"rows_size\":4,\"cols_size\":2,"
		"\"values_offset\":6,\"values_size\":4},"
		"{\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\",\"row_dtype\":\"uint8\","
		"\"col_dtype\":\"uint16\",\"indices_offset\":10,\"indices_size\":6,\"rows_size\":2,\"cols_size\":4,"
		"\"values_offset\":16,\"values_size\":4}]}",
		"\1\0\0\0"
		"\0\0"
		"XXXX"
		"\0\1"
		"\1\0\2\0"
		"AAZZ",
		20},
};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static void write_good(const struct codec *codec)
{
	write_delta(codec->format, METADATA, codec->header, span_of(codec->data, codec->len));
}

static int apply(struct error *err)
{
	struct delta_stats stats;
	struct checkpoint *const base = checkpoint_open(base_path, err);
	ck_assert_msg(base != NULL, "%s", err->text);
	const struct delta_apply_params params = {
		.base = base, .delta = delta_path, .out = back_path};
	const int result = delta_apply(&params, &stats, err);
	checkpoint_close(base);
	return result;
}

/* The same in place, with the positions that the delta names. */
static int patch(struct memory_fixture *memory, bool *spoiled, struct error *err)
{
	struct delta_stats stats;
	const char *const delta = delta_path;
	const struct delta_patch_params params = {.schema = memory->schema,
		.tensors = memory->tensors,
		.deltas = &delta,
		.delta_count = 1};
	return delta_patch(&params, &stats, spoiled, err);
}

static void expect_changes(const struct schema *schema)
{
	struct error err = {0};
	uint64_t positions[2] = {0};
	struct delta_changes *const changes = delta_changes_new(schema);
	struct delta_reader *const reader = delta_reader_open(delta_path, &err);
	ck_assert_msg(delta_changes_read(changes, reader, NULL, 0, &err) == 0 &&
			delta_changes_read(changes, reader, NULL, 1, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(delta_changes_count(changes, 0), 1);
	delta_changes_positions(changes, 0, positions);
	ck_assert_uint_eq(positions[0], 1);
	ck_assert_uint_eq(delta_changes_count(changes, 1), 2);
	delta_changes_positions(changes, 1, positions);
	ck_assert(positions[0] == 1 && positions[1] == 6);
	delta_reader_close(reader);
	delta_changes_free(changes);
}

static void expect_patched(void)
{
	struct error err = {0};
	struct memory_fixture memory;
	bool spoiled = true;
	memory_fixture_load(&memory, base_path);
	ck_assert_msg(patch(&memory, &spoiled, &err) == 0, "%s", err.text);
	ck_assert(!spoiled);
	ck_assert_mem_eq(memory.tensors[0], b_new, strlen(b_new));
	ck_assert_mem_eq(memory.tensors[1], w_new, strlen(w_new));
	expect_changes(memory.schema);
	memory_fixture_release(&memory);
}

static void expect_counted(void)
{
	struct error err = {0};
	uint64_t changed[2] = {0};
	struct digest128 digests[2];
	struct checkpoint *const base = checkpoint_open(base_path, &err);
	struct tensor_source *const old = checkpoint_source_new(base);
	struct delta_reader *const reader = delta_reader_open(delta_path, &err);
	struct tensor_source *const source = delta_source_new(reader, old, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	delta_source_count(source, changed);
	ck_assert_int_eq(tensor_source_digests(source, 1, digests, &err), 0);
	ck_assert(changed[0] == 1 && changed[1] == 2);
	tensor_source_free(source);
	delta_reader_close(reader);
	tensor_source_free(old);
	checkpoint_close(base);
}

static void expect_refused(enum error_kind kind, const char *message)
{
	struct error err = {0};
	ck_assert_int_eq(apply(&err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert(!file_exists(back_path));
}

static void expect_applied(void)
{
	struct error err = {0};
	ck_assert_msg(apply(&err) == 0, "%s", err.text);
	struct checkpoint *const back = checkpoint_open(back_path, &err);
	ck_assert_msg(back != NULL, "%s", err.text);
	ck_assert(span_equal(checkpoint_tensor(back, 0), span_text(b_new)));
	ck_assert(span_equal(checkpoint_tensor(back, 1), span_text(w_new)));
	checkpoint_close(back);
}

START_TEST(every_codec_is_applied)
{
	struct error err = {0};
	struct delta_summary summary;
	write_good(&codecs[_i]);
	expect_applied();
	expect_patched();
	expect_counted();
	ck_assert_int_eq(delta_inspect(delta_path, &summary, &err), 0);
	ck_assert(summary.is_delta && summary.format == DELTA_PULSE);
	ck_assert_str_eq(delta_format_name(summary.format), "pulse");
	ck_assert(summary.has_step && summary.step == 60 && summary.has_base_step &&
		summary.base_step == 30);
	ck_assert(summary.has_changed_elements && summary.changed_elements == 3 &&
		summary.changed_tensors == 2);
	/* the unpacked file beside them has no name */
	ck_assert_uint_eq(fixture_entries(delta_path), 3);
}
END_TEST

START_TEST(json_may_be_packed_as_grail_uploads_it)
{
	/* {"format":"sparse_codec_v2"} by Python's gzip.compress(..., 1, mtime=0) */
	static const uint8_t packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x03,
		0xab, 0x56, 0x4a, 0xcb, 0x2f, 0xca, 0x4d, 0x2c, 0x51, 0xb2, 0x52, 0x2a, 0x2e, 0x48,
		0x2c, 0x2a, 0x4e, 0x8d, 0x4f, 0xce, 0x4f, 0x49, 0x4d, 0x8e, 0x2f, 0x33, 0x52, 0xaa,
		0x05, 0x00, 0xbe, 0xae, 0x05, 0xda, 0x1c, 0x00, 0x00, 0x00};
	uint8_t frame[FRAME_BYTES];
	const size_t len = pack(codecs[0].header, span_of(codecs[0].data, codecs[0].len), frame);
	put("delta_sparse.bin.zst", span_of(frame, len));
	put("delta_metadata.json.gz", span_of(packed, sizeof(packed)));
	put_metadata(METADATA, span_text("{\"format\":\"sparse_codec_v2\"}"), span_of(frame, len));
	expect_applied();
}
END_TEST

START_TEST(a_step_without_change_has_no_tensors)
{
	write_delta(
		"sparse_codec_v3.1", METADATA, "{\"version\":31,\"tensors\":[]}", (struct span){0});
	/* only the hash is another one */
	expect_refused(ERROR_DIGEST_MISMATCH, "weights_hash");
}
END_TEST

START_TEST(a_wrong_base_is_refused)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {2, 4}, .data = "0.11223344556677"},
		{.name = "b", .dtype = DTYPE_F32, .shape = {3}, .data = b_old},
	};
	fixture_write_tensors(base_path, tensors, 2, true);
	write_good(&codecs[_i]);
	expect_refused(ERROR_DIGEST_MISMATCH, "its base was another one");
	/* The hash is proven before anything is written, also in place. */
	struct error err = {0};
	struct memory_fixture memory;
	bool spoiled = true;
	memory_fixture_load(&memory, base_path);
	ck_assert_int_eq(patch(&memory, &spoiled, &err), -1);
	ck_assert(err.kind == ERROR_DIGEST_MISMATCH && !spoiled);
	ck_assert(memory_fixture_equals(&memory, memory.origin));
	memory_fixture_release(&memory);
}
END_TEST

/* transcode folds one delta over a base. */
START_TEST(a_wrong_base_is_not_transcoded)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {2, 4}, .data = "0.11223344556677"},
		{.name = "b", .dtype = DTYPE_F32, .shape = {3}, .data = b_old},
	};
	struct error err = {0};
	struct delta_stats stats;
	write_good(&codecs[0]);
	for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
		if (is_wrong)
			fixture_write_tensors(base_path, tensors, 2, true);
		struct checkpoint *const base = checkpoint_open(base_path, &err);
		struct tensor_source *const source = checkpoint_source_new(base);
		struct model_files files = {0};
		ck_assert_int_eq(model_files_of(&files, base, &err), 0);
		const char *const deltas[] = {delta_path};
		char *const out = fixture_path(scratch, is_wrong ? "wrong" : "good");
		const struct fold_params params = {.base = source,
			.base_files = &files,
			.deltas = deltas,
			.count = 1,
			.out = out};
		const int result = fold(&params, &stats, &err);
		ck_assert_msg(result == -is_wrong, "%s", err.text);
		ck_assert_int_eq(file_exists(out), !is_wrong);
		model_files_release(&files);
		tensor_source_free(source);
		checkpoint_close(base);
		free(out);
	}
	ck_assert_int_eq(err.kind, ERROR_DIGEST_MISMATCH);
}
END_TEST

START_TEST(a_fold_needs_the_base)
{
	struct error err = {0};
	struct delta_stats stats;
	const char *const deltas[] = {delta_path};
	const struct fold_params params = {.deltas = deltas, .count = 1, .out = back_path};
	write_good(&codecs[0]);
	ck_assert_int_eq(fold(&params, &stats, &err), -1);
	ck_assert_msg(err.kind == ERROR_UNSUPPORTED && strstr(err.text, "without a base") != NULL,
		"%s", err.text);
}
END_TEST

static const struct {
	const char *format;
	const char *metadata;
	enum error_kind kind;
	const char *message;
} facts[] = {
	{"sparse_codec_v4", METADATA, ERROR_UNSUPPORTED, "'sparse_codec_v4' is not read"},
	{"sparse_coo", METADATA, ERROR_UNSUPPORTED, "'sparse_coo' is not read"},
	{"sparse_codec_v3", METADATA, ERROR_INVALID, "the version is not that of the format"},
	{"sparse_codec_v2", "{\"window\":60}", ERROR_INVALID, "a member is missing"},
	{"sparse_codec_v2", "[]", ERROR_INVALID, "at byte 0"},
	{"sparse_codec_v2", "{\"window\":60,\"window\":60}", ERROR_INVALID, "given twice"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"FULL\",\"prev_window\":null,\"weights_hash\":null,"
		"\"file_manifest\":{\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"*\"}}",
		ERROR_INVALID, "the checkpoint_type is FULL"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":null,\"weights_hash\":\"" HASH
		"\",\"file_manifest\":{\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"*\"}}",
		ERROR_INVALID, "lacks prev_window"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":60,\"weights_hash\":\"" HASH
		"\",\"file_manifest\":{\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"*\"}}",
		ERROR_INVALID, "not before the window"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":30,\"weights_hash\":\"00\","
		"\"file_manifest\":{\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"*\"}}",
		ERROR_UNSUPPORTED, "64 hex digits"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":30,\"weights_hash\":\"" HASH
		"\",\"file_manifest\":{\"delta_metadata.json\":\"*\",\"other\":\"*\"}}",
		ERROR_INVALID, "no SHA-256 of 'delta_sparse.bin.zst'"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":30,\"weights_hash\":\"" HASH
		"\",\"file_manifest\":{\"delta_sparse.bin.zst\":\"*\",\"delta_metadata.json\":\"*\"}}",
		ERROR_DIGEST_MISMATCH, "'delta_metadata.json' does not have the SHA-256"},
	{"sparse_codec_v2",
		"{\"window\":60,\"checkpoint_type\":\"DELTA\",\"prev_window\":30,\"weights_hash\":\"" HASH
		"\",\"file_manifest\":{\"delta_metadata.json\":\"*\",\"delta_sparse.bin.zst\":\"" HASH
		"\"}}",
		ERROR_DIGEST_MISMATCH, "'delta_sparse.bin.zst' does not have the SHA-256"},
};

START_TEST(facts_that_do_not_fit_are_refused)
{
	write_delta(facts[_i].format, facts[_i].metadata, codecs[0].header,
		span_of(codecs[0].data, codecs[0].len));
	expect_refused(facts[_i].kind, facts[_i].message);
}
END_TEST

START_TEST(the_older_form_is_refused_by_name)
{
	put("delta_sparse.safetensors.zst", span_text("x"));
	expect_refused(ERROR_UNSUPPORTED, "sparse_coo");
}
END_TEST

#define RECORD(members)      "{\"version\":2,\"tensors\":[{" members "}]}"
#define GRID_RECORD(members) "{\"version\":31,\"tensors\":[{" members "}]}"
#define W                    "\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\","
static const struct {
	const char *header;
	const char *data;
	size_t len;
	enum error_kind kind;
	const char *message;
} malformed[] = {
	{"", "", 0, ERROR_INVALID, "at byte 0"},
	{"{\"version\":2}", "", 0, ERROR_INVALID, "version or tensors is missing"},
	{"{\"version\":2,\"tensors\":[]} x", "", 0, ERROR_INVALID, "behind the object"},
	{"{\"version\":2,\"tensors\":[]}", "x", 1, ERROR_INVALID, "more bytes"},
	{RECORD(W "\"indices_offset\":0"), "", 0, ERROR_INVALID, "lacks a member"},
	{RECORD(W "\"num_nonzero\":2"), "", 0, ERROR_INVALID, "given twice"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZ", 11, ERROR_INVALID, "fewer bytes"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ.", 13, ERROR_INVALID, "more bytes"},
	{RECORD(W "\"indices_offset\":1,\"indices_size\":8,\"values_offset\":9,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "do not add up"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":7,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "do not add up"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":7,\"values_offset\":7,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "do not add up"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":8"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "do not add up"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\7\0\0\0AAZZ", 12, ERROR_INVALID, "outside of 8 elements"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\0\0\0\0AAZZ", 12, ERROR_INVALID, "not above"},
	{RECORD(W "\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\377\377\377\377AAZZ", 12, ERROR_INVALID, "negative"},
	/* The header claims too many elements and is refused before anything is unpacked. */
	{RECORD("\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":9,\"value_dtype\":\"bfloat16\",\"indices_offset\":0,"
		"\"indices_size\":36,\"values_offset\":36,\"values_size\":18"),
		"", 0, ERROR_INVALID, "more changed elements than its shape has"},
	{RECORD("\"name\":\"w\",\"shape\":[1099511627776],\"num_nonzero\":1099511627776,\"value_dtype\":\"bfloat16\","
		"\"indices_offset\":0,\"indices_size\":4398046511104,\"values_offset\":4398046511104,"
		"\"values_size\":2199023255552"),
		"", 0, ERROR_INVALID, "more values than the base has elements"},
	{RECORD("\"name\":\"w\",\"shape\":[18446744073709551615,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\","
		"\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"", 0, ERROR_INVALID, "too many elements"},
	{RECORD("\"name\":\"w\",\"shape\":[1,1,1,1,1,1,1,1,8],\"num_nonzero\":2"), "", 0,
		ERROR_INVALID, "more than 8 dimensions"},
	{RECORD("\"name\":\"w\",\"shape\":[4,2],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\","
		"\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "another shape in the base"},
	{RECORD("\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"float32\","
		"\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":8"),
		"\1\0\0\0\5\0\0\0AAAAZZZZ", 16, ERROR_INVALID, "another dtype in the base"},
	{RECORD("\"name\":\"w\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"int8\","
		"\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":2"),
		"\1\0\0\0\5\0\0\0AZ", 10, ERROR_INVALID, "has a value_dtype other than"},
	{RECORD("\"name\":\"x\",\"shape\":[2,4],\"num_nonzero\":2,\"value_dtype\":\"bfloat16\","
		"\"indices_offset\":0,\"indices_size\":8,\"values_offset\":8,\"values_size\":4"),
		"\1\0\0\0\5\0\0\0AAZZ", 12, ERROR_INVALID, "unknown to the base"},
	{GRID_RECORD(W
		 "\"row_dtype\":\"uint8\",\"col_dtype\":\"int64\",\"indices_offset\":0,\"indices_size\":18,"
		 "\"rows_size\":2,\"cols_size\":16,\"values_offset\":18,\"values_size\":4"),
		"", 0, ERROR_INVALID, "row_dtype or col_dtype"},
	{GRID_RECORD(W
		 "\"row_dtype\":\"uint8\",\"col_dtype\":\"uint8\",\"indices_offset\":0,\"indices_size\":4,"
		 "\"rows_size\":3,\"cols_size\":1,\"values_offset\":4,\"values_size\":4"),
		"\0\1\1\2AAZZ", 8, ERROR_INVALID, "do not add up"},
	{GRID_RECORD(W
		 "\"row_dtype\":\"uint8\",\"col_dtype\":\"uint8\",\"indices_offset\":0,\"indices_size\":4,"
		 "\"rows_size\":2,\"cols_size\":2,\"values_offset\":4,\"values_size\":4"),
		"\0\2\1\2AAZZ", 8, ERROR_INVALID,
		"row 2, column 2 lies outside of 2 rows of 4 columns"},
	{GRID_RECORD(W
		 "\"row_dtype\":\"uint8\",\"col_dtype\":\"uint8\",\"indices_offset\":0,\"indices_size\":4,"
		 "\"rows_size\":2,\"cols_size\":2,\"values_offset\":4,\"values_size\":4"),
		"\0\0\3\1AAZZ", 8, ERROR_INVALID, "row 0, column 4 lies outside"},
};

START_TEST(malformed_frames_are_refused)
{
	const bool is_grid = strstr(malformed[_i].header, "\"version\":31") != NULL;
	write_delta(is_grid ? "sparse_codec_v3.1" : "sparse_codec_v2", METADATA,
		malformed[_i].header, span_of(malformed[_i].data, malformed[_i].len));
	expect_refused(malformed[_i].kind, malformed[_i].message);
}
END_TEST

/* The length claims more than there is; memory grows only with the bytes that come. */
START_TEST(a_header_that_is_cut_off_is_refused)
{
	static const uint8_t lengths[][4] = {{0xff, 0xff, 0xff, 0x03}, {0xff, 0xff, 0xff, 0xff}};
	static const enum error_kind kinds[] = {ERROR_INVALID, ERROR_TOO_LARGE};
	uint8_t frame[FRAME_BYTES];
	struct error err = {0};
	struct compressor *const compressor = compressor_new();
	const size_t len =
		compress_zstd(compressor, span_of(lengths[_i], 4), frame, sizeof(frame), 1);
	ck_assert(pulse_payload_open(span_of(frame, len), PULSE_CODEC_2, "frame", &err) == NULL);
	ck_assert_int_eq(err.kind, kinds[_i]);
	ck_assert(pulse_payload_open(span_text("no zstd"), PULSE_CODEC_2, "frame", &err) == NULL);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	compressor_free(compressor);
}
END_TEST

#define ROWS(table) sizeof(table) / sizeof((table)[0])

Suite *test_pulse_suite(void)
{
	Suite *const suite = suite_create("pulse");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, every_codec_is_applied, 0, CODECS);
	tcase_add_test(tests, json_may_be_packed_as_grail_uploads_it);
	tcase_add_test(tests, a_step_without_change_has_no_tensors);
	tcase_add_loop_test(tests, a_wrong_base_is_refused, 0, CODECS);
	tcase_add_test(tests, a_wrong_base_is_not_transcoded);
	tcase_add_test(tests, a_fold_needs_the_base);
	tcase_add_loop_test(tests, facts_that_do_not_fit_are_refused, 0, ROWS(facts));
	tcase_add_test(tests, the_older_form_is_refused_by_name);
	tcase_add_loop_test(tests, malformed_frames_are_refused, 0, ROWS(malformed));
	tcase_add_loop_test(tests, a_header_that_is_cut_off_is_refused, 0, 2);
	suite_add_tcase(suite, tests);
	return suite;
}
