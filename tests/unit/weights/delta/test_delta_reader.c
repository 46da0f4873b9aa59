/* Good and bad deltas as other programs write them. Each row is one file that is applied to a base
 * with a BF16 tensor "w" of 8 elements and an F32 tensor "f". */
#include "weights/delta/delta_reader.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_delta_reader_suite(void);

#define META(rest) "\"__metadata__\":{\"format\":\"sparse_weight_patch\",\"version\":\"1\"" rest "}"
#define GAP        ",\"encoding\":\"gap_delta\""
#define RAW        ",\"encoding\":\"raw\""
#define T(name, dtype, shape, offsets) \
	",\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

struct row {
	const char *json;
	const char *data;
	size_t data_size;
	enum error_kind kind;
	const char *message;
};
#define DATA(literal) literal, sizeof(literal) - 1

/* The gaps 1, 0, 4 are the positions 1, 2, 7. */
static const struct row good[] = {
	{"{" META(GAP) T("w.val", "BF16", "[3]", "[0,6]") T("w.idx", "U16", "[3]", "[6,12]") "}",
		DATA("AABBCC\x01\0\0\0\x04\0"), 0, NULL},
	{"{" META(GAP) T("w.idx", "U32", "[3]", "[0,12]") T("w.val", "BF16", "[3]", "[12,18]") "}",
		DATA("\x01\0\0\0\0\0\0\0\x04\0\0\0"
		     "AABBCC"),
		0, NULL},
	{"{" META(RAW) T("w.idx", "I32", "[3]", "[0,12]") T("w.val", "BF16", "[3]", "[12,18]") "}",
		DATA("\x01\0\0\0\x02\0\0\0\x07\0\0\0"
		     "AABBCC"),
		0, NULL},
	{"{" META("") T("w.indices", "I32", "[3]", "[0,12]")
			T("w.values", "BF16", "[3]", "[12,18]") "}",
		DATA("\x01\0\0\0\x02\0\0\0\x07\0\0\0"
		     "AABBCC"),
		0, NULL},
	{"{" META(",\"sparse\":\"True\",\"changed_params\":\"[\\\"w\\\"]\",\"more\":\"x\"") T(
		 "w.indices", "I32", "[3]", "[0,12]") T("w.values", "BF16", "[3]", "[12,18]") "}",
		DATA("\x01\0\0\0\x02\0\0\0\x07\0\0\0"
		     "AABBCC"),
		0, NULL},
	/* TRL writes two empty tensors for a parameter that did not change. */
	{"{" META(GAP ",\"sparse\":\"False\"") T("w.val", "BF16", "[3]", "[0,6]")
			T("w.idx", "U16", "[3]", "[6,12]") T("b.idx", "U16", "[0]", "[12,12]")
				T("b.val", "BF16", "[0]", "[12,12]") "}",
		DATA("AABBCC\x01\0\0\0\x04\0"), 0, NULL},
};

static const struct row bad[] = {
	{"{" META(GAP) T("x.val", "BF16", "[1]", "[0,2]") T("x.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\0\0"), ERROR_INVALID, "unknown to the base"},
	{"{" META(GAP) T("f.val", "BF16", "[1]", "[0,2]") T("f.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\0\0"), ERROR_INVALID, "another dtype"},
	{"{" META(GAP) T("w.val", "F16", "[1]", "[0,2]") T("w.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\0\0"), ERROR_INVALID, "is not BF16"},
	{"{" META(GAP) T("w.val", "BF16", "[1]", "[0,2]") T("w.idx", "U16", "[2]", "[2,6]") "}",
		DATA("AA\0\0\0\0"), ERROR_INVALID, "other numbers"},
	{"{" META(GAP) T("w.val", "BF16", "[1,1]", "[0,2]") T("w.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\0\0"), ERROR_INVALID, "other numbers"},
	{"{" META(GAP) T("w.val", "BF16", "[1]", "[0,2]") T("w.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\x08\0"), ERROR_INVALID, "outside of 8"},
	{"{" META(GAP) T("w.val", "BF16", "[1]", "[0,2]") "}", DATA("AA"), ERROR_INVALID,
		"lacks its other half"},
	{"{" META(GAP) T("w.idx", "U16", "[1]", "[0,2]") "}", DATA("\0\0"), ERROR_INVALID,
		"lacks its other half"},
	{"{" META(GAP) T("w.idx", "U16", "[1]", "[0,2]") T("w.values", "BF16", "[1]", "[2,4]") "}",
		DATA("\0\0AA"), ERROR_INVALID, "lacks its other half"},
	{"{" META(GAP) T("w.val", "BF16", "[1]", "[0,2]") T("w.idx", "I32", "[1]", "[2,6]") "}",
		DATA("AA\0\0\0\0"), ERROR_INVALID, "encoding does not use"},
	{"{" META(RAW) T("w.val", "BF16", "[1]", "[0,2]") T("w.idx", "U16", "[1]", "[2,4]") "}",
		DATA("AA\0\0"), ERROR_INVALID, "encoding does not use"},
	{"{" META("") T("w.val", "BF16", "[1]", "[0,2]") T("w.idx", "I32", "[1]", "[2,6]") "}",
		DATA("AA\0\0\0\0"), ERROR_INVALID, "no encoding"},
	{"{" META(GAP) T("w.values", "BF16", "[1]", "[0,2]")
			T("w.indices", "I32", "[1]", "[2,6]") "}",
		DATA("AA\0\0\0\0"), ERROR_INVALID, "first key scheme"},
	{"{" META(RAW) T("w.idx", "I32", "[2]", "[0,8]") T("w.val", "BF16", "[2]", "[8,12]") "}",
		DATA("\x02\0\0\0\x02\0\0\0"
		     "AABB"),
		ERROR_INVALID, "not above"},
	{"{" META(RAW) T("w.idx", "I32", "[2]", "[0,8]") T("w.val", "BF16", "[2]", "[8,12]") "}",
		DATA("\x02\0\0\0\x01\0\0\0"
		     "AABB"),
		ERROR_INVALID, "not above"},
	{"{" META(RAW) T("w.idx", "I32", "[1]", "[0,4]") T("w.val", "BF16", "[1]", "[4,6]") "}",
		DATA("\xff\xff\xff\xff"
		     "AA"),
		ERROR_INVALID, "negative"},
	{"{" META(RAW) T("w.idx", "I32", "[1]", "[0,4]") T("w.val", "BF16", "[1]", "[4,6]") T(
		 "w.indices", "I32", "[0]", "[6,6]") T("w.values", "BF16", "[0]", "[6,6]") "}",
		DATA("\x01\0\0\0"
		     "AA"),
		ERROR_INVALID, "given twice"},
	{"{" META(GAP) T("w.val", "BF16", "[9]", "[0,18]") T("w.idx", "U16", "[9]", "[18,36]") "}",
		DATA("AABBCCDDEEFFGGHHII\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), ERROR_INVALID,
		"more values"},
	{"{" META(",\"encoding\":\"nvcomp_cascaded\"") "}", DATA(""), ERROR_UNSUPPORTED,
		"nvcomp_cascaded"},
	{"{" META(",\"encoding\":\"\"") "}", DATA(""), ERROR_UNSUPPORTED, "encoding"},
	{"{" META(GAP ",\"sparse\":\"true\"") "}", DATA(""), ERROR_INVALID, "sparse"},
	{"{\"__metadata__\":{\"format\":\"sparse_weight_patch\",\"version\":\"2\"}}", DATA(""),
		ERROR_UNSUPPORTED, "version"},
	{"{\"__metadata__\":{\"format\":\"sparse_weight_patch\"}}", DATA(""), ERROR_UNSUPPORTED,
		"version"},
	{"{\"__metadata__\":{\"format\":\"pt\",\"version\":\"1\"}}", DATA(""),
		ERROR_SCHEMA_MISMATCH, "the full checkpoint does not have"},
	{"{}", DATA(""), ERROR_SCHEMA_MISMATCH, "the full checkpoint does not have"},
	{"{" META(GAP) T("w", "BF16", "[8]", "[0,16]") "}", DATA("AABBCCDDEEFFGGHH"), ERROR_INVALID,
		"not a part of a delta"},
	{"{" META(GAP) T("f.full", "F32", "[2]", "[0,8]") "}", DATA("AAAABBBB"), ERROR_INVALID,
		"not named in full_tensors"},
	{"{" META(GAP ",\"full_tensors\":\"[\\\"f\\\"]\"") "}", DATA(""), ERROR_INVALID,
		"listed in the metadata and missing"},
	{"{" META(",\"changed_params\":\"[\\\"w\\\"]\"") "}", DATA(""), ERROR_INVALID,
		"listed in the metadata and missing"},
	{"{" META(GAP ",\"full_tensors\":\"f\"") "}", DATA(""), ERROR_INVALID, "not a list"},
	{"{" META(GAP ",\"full_tensors\":\"[\\\"f\\\"]\"") T("f.full", "F32", "[1,2]", "[0,8]") "}",
		DATA("AAAABBBB"), ERROR_INVALID, "another shape"},
	{"{" META(GAP ",\"full_tensors\":\"[\\\"f\\\"]\"") T("f.full", "I32", "[2]", "[0,8]") "}",
		DATA("AAAABBBB"), ERROR_INVALID, "another dtype"},
	{"{" META(GAP ",\"base_digest\":\"xxh3-128:0\"") "}", DATA(""), ERROR_INVALID, "digest"},
	{"{" META(GAP ",\"result_digest\":\"sha256:00\"") "}", DATA(""), ERROR_INVALID, "digest"},
	{"{" META(GAP ",\"result_digest\":\"xxh3-128:00000000000000000000000000000000\"") "}",
		DATA(""), ERROR_DIGEST_MISMATCH, "the delta says"},
	{"{" META(GAP ",\"base_digest\":\"xxh3-128:00000000000000000000000000000000\"") "}",
		DATA(""), ERROR_WRONG_BASE, "made from"},
	{"{" META(GAP ",\"result_kind\":\"file\"") "}", DATA(""), ERROR_INVALID, "only one of"},
	{"{" META(GAP ",\"result_files\":\"[]\"") "}", DATA(""), ERROR_INVALID, "only one of"},
	{"{" META(GAP ",\"result_kind\":\"pipe\",\"result_files\":\"[]\"") "}", DATA(""),
		ERROR_INVALID, "neither file nor folder"},
	{"{" META(GAP ",\"result_kind\":\"file\",\"result_files\":\"[]\"") "}", DATA(""),
		ERROR_INVALID, "do not make a checkpoint"},
	{"{" META(GAP ",\"result_kind\":\"folder\",\"result_files\":\"{}\"") "}", DATA(""),
		ERROR_INVALID, "malformed"},
};

/* One row of result_files, in JSON within JSON. */
#define FILE_ROW(path, size, kind, from)                                              \
	"{\\\"path\\\":\\\"" path "\\\",\\\"size\\\":" size ",\\\"kind\\\":\\\"" kind \
	"\\\",\\\"from\\\":\\\"" from                                                 \
	"\\\",\\\"digest\\\":\\\"xxh3-128:00000000000000000000000000000000\\\"}"
#define FILES(rows) "{" META(GAP ",\"result_kind\":\"folder\",\"result_files\":\"[" rows "]\"") "}"

static const struct row bad_files[] = {
	{FILES(FILE_ROW("../model.safetensors", "1", "shard", "base")), DATA(""), ERROR_INVALID,
		"leads elsewhere"},
	{FILES(FILE_ROW("/model.safetensors", "1", "shard", "base")), DATA(""), ERROR_INVALID,
		"leads elsewhere"},
	{FILES(FILE_ROW("a/../m", "1", "shard", "base")), DATA(""), ERROR_INVALID,
		"leads elsewhere"},
	{FILES(FILE_ROW("a//m", "1", "shard", "base")), DATA(""), ERROR_INVALID, "leads elsewhere"},
	{FILES(FILE_ROW(".ssh/keys", "1", "shard", "base")), DATA(""), ERROR_INVALID,
		"leads elsewhere"},
	{FILES(FILE_ROW("", "1", "shard", "base")), DATA(""), ERROR_INVALID, "leads elsewhere"},
	{FILES(FILE_ROW("a/", "1", "shard", "base")), DATA(""), ERROR_INVALID, "leads elsewhere"},
	{FILES(FILE_ROW("m", "1", "shard", "base") "," FILE_ROW("m", "1", "shard", "base")),
		DATA(""), ERROR_INVALID, "a path twice"},
	{FILES(FILE_ROW("m", "1", "file", "base")), DATA(""), ERROR_INVALID,
		"do not make a checkpoint"},
	{FILES(FILE_ROW("m", "1", "pipe", "base")), DATA(""), ERROR_INVALID, "unknown word"},
	{FILES(FILE_ROW("m", "1", "shard", "here")), DATA(""), ERROR_INVALID, "unknown word"},
	{FILES(FILE_ROW("m", "-1", "shard", "base")), DATA(""), ERROR_INVALID, "whole number"},
	{FILES("{\\\"path\\\":\\\"m\\\"}"), DATA(""), ERROR_INVALID, "lacks a member"},
	{FILES("{\\\"path\\\":\\\"m\\\",\\\"path\\\":\\\"m\\\"}"), DATA(""), ERROR_INVALID,
		"given twice"},
	{FILES(FILE_ROW("m", "1", "shard", "base")), DATA(""), ERROR_WRONG_BASE, "'m' is missing"},
	{FILES(FILE_ROW("model.safetensors", "1", "shard", "base")), DATA(""), ERROR_WRONG_BASE,
		"another header"},
	{FILES(FILE_ROW("model.safetensors", "1", "shard", "delta")), DATA(""), ERROR_INVALID,
		"lacks the header"},
	{"{" META(GAP
		 ",\"header:m\":\"{}\",\"result_kind\":\"folder\",\"result_files\":\"[" FILE_ROW(
			 "m", "9", "shard", "delta") "]\"") "}",
		DATA(""), ERROR_INVALID, "fewer bytes"},
	{"{" META(GAP
		 ",\"header:m\":\"{}\",\"result_kind\":\"folder\",\"result_files\":\"[" FILE_ROW(
			 "m", "11", "shard", "delta") "]\"") "}",
		DATA(""), ERROR_INVALID, "has 11 bytes, and its header and tensors cover 10"},
	{"{" META(GAP
		 ",\"header:m\":\"{}\",\"result_kind\":\"folder\",\"result_files\":\"[" FILE_ROW(
			 "m", "10", "shard", "delta") "]\"") "}",
		DATA(""), ERROR_DIGEST_MISMATCH, "header"},
};

static char *scratch;
static char *base_path;
static char *delta_path;
static char *out_path;

static void setup(void)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {8}, .data = "0011223344556677"},
		{.name = "f", .dtype = DTYPE_F32, .shape = {2}, .data = "ffffFFFF"},
		{.name = "b", .dtype = DTYPE_BF16, .shape = {1}, .data = "bb"},
	};
	scratch = unit_scratch_make();
	base_path = fixture_path(scratch, "base.safetensors");
	delta_path = fixture_path(scratch, "delta.safetensors");
	out_path = fixture_path(scratch, "out.safetensors");
	fixture_write_tensors(base_path, tensors, 3, true);
}

static void teardown(void)
{
	free(base_path);
	free(delta_path);
	free(out_path);
	unit_scratch_remove(scratch);
}

static void write_row(const struct row *row)
{
	struct buffer bytes;
	const uint64_t len = strlen(row->json);
	buffer_init(&bytes, 1 << 20);
	for (unsigned i = 0; i < 8; i++)
		buffer_add_byte(&bytes, (uint8_t)(len >> (8 * i)));
	buffer_add_text(&bytes, row->json);
	buffer_add(&bytes, row->data, row->data_size);
	fixture_write(delta_path, buffer_span(&bytes));
	buffer_release(&bytes);
}

static int apply(struct delta_stats *stats, struct error *err)
{
	struct error open_err = {0};
	struct checkpoint *const base = checkpoint_open(base_path, &open_err);
	ck_assert_msg(base != NULL, "%s", open_err.text);
	const struct delta_apply_params params = {
		.base = base, .delta = delta_path, .out = out_path};
	const int result = delta_apply(&params, stats, err);
	checkpoint_close(base);
	return result;
}

START_TEST(deltas_of_others_are_read)
{
	struct error err = {0};
	struct delta_stats stats;
	write_row(&good[_i]);
	ck_assert_msg(apply(&stats, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(stats.changed_elements, 3);
	ck_assert_uint_eq(stats.changed_tensors, 1);
	struct checkpoint *const out = checkpoint_open(out_path, &err);
	ck_assert_msg(out != NULL, "%s", err.text);
	ck_assert(span_equal(checkpoint_tensor(out, 0), span_text("bb")));
	ck_assert(span_equal(checkpoint_tensor(out, 1), span_text("ffffFFFF")));
	ck_assert(span_equal(checkpoint_tensor(out, 2), span_text("00AABB33445566CC")));
	checkpoint_close(out);
}
END_TEST

static void expect_refusal(const struct row *row)
{
	struct error err = {0};
	struct delta_stats stats;
	write_row(row);
	struct buffer before = fixture_read(base_path);
	ck_assert_msg(apply(&stats, &err) == -1, "%s", row->json);
	ck_assert_msg(err.kind == row->kind && strstr(err.text, row->message) != NULL, "%s: %s: %s",
		row->json, error_kind_name(err.kind), err.text);
	ck_assert_uint_eq(fixture_entries(scratch), 2);
	struct buffer after = fixture_read(base_path);
	ck_assert(span_equal(buffer_span(&before), buffer_span(&after)));
	buffer_release(&before);
	buffer_release(&after);
}

START_TEST(bad_deltas_are_refused)
{
	expect_refusal(&bad[_i]);
}
END_TEST

START_TEST(bad_file_lists_are_refused)
{
	expect_refusal(&bad_files[_i]);
}
END_TEST

/* A good delta is refused wherever it is cut. It lies in memory of its exact size. */
START_TEST(cut_deltas_are_refused)
{
	struct error err = {0};
	write_row(&good[0]);
	struct buffer bytes = fixture_read(delta_path);
	for (size_t len = 0; len < bytes.len; len++) {
		uint8_t *const cut = memory_copy(bytes.data, len > 0 ? len : 1);
		ck_assert_ptr_null(delta_reader_from_bytes(span_of(cut, len), "cut", &err));
		free(cut);
	}
	struct delta_reader *const reader =
		delta_reader_from_bytes(buffer_span(&bytes), "whole", &err);
	ck_assert_ptr_nonnull(reader);
	ck_assert_uint_eq(delta_reader_count(reader), 1);
	ck_assert_uint_eq(delta_reader_bytes(reader), bytes.len);
	delta_reader_close(reader);
	buffer_release(&bytes);
}
END_TEST

START_TEST(a_folder_is_one_delta)
{
	struct error err = {0};
	char *const folder = fixture_path(scratch, "folder");
	char *const single = fixture_path(folder, "delta.safetensors");
	char *const index = fixture_path(folder, "delta.safetensors.index.json");
	write_row(&good[0]);
	struct buffer bytes = fixture_read(delta_path);
	fixture_write(single, buffer_span(&bytes));
	struct delta_reader *const reader = delta_reader_open(folder, &err);
	ck_assert_msg(reader != NULL, "%s", err.text);
	ck_assert(delta_reader_is_folder(reader));
	delta_reader_close(reader);
	fixture_write_text(index, "{\"metadata\":{},\"weight_map\":{}}");
	ck_assert_ptr_null(delta_reader_open(folder, &err));
	ck_assert_msg(strstr(err.text, "has both") != NULL, "%s", err.text);
	buffer_release(&bytes);
	free(folder);
	free(single);
	free(index);
}
END_TEST

Suite *test_delta_reader_suite(void)
{
	Suite *const suite = suite_create("delta_reader");
	TCase *const tcase = tcase_create("delta_reader");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, deltas_of_others_are_read, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(tcase, bad_deltas_are_refused, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_loop_test(
		tcase, bad_file_lists_are_refused, 0, sizeof(bad_files) / sizeof(bad_files[0]));
	tcase_add_test(tcase, cut_deltas_are_refused);
	tcase_add_test(tcase, a_folder_is_one_delta);
	suite_add_tcase(suite, tcase);
	return suite;
}
