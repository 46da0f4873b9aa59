/* SkyRL's deltas: a manifest and payload files, written by hand here. test_slime.c tests frames and
 * the index that the manifest replaces. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/compress.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/memory_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_manifest.h"
#include "weights/delta/delta_patch.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/fold.h"
#include "weights/delta/tensor_checksum.h"

Suite *test_delta_manifest_suite(void);

enum { W_BYTES = 16 };
static const char w_old[] = "0011223344556677";
static const char w_new[] = "00AA2233445566ZZ";
#define FILE_NAME "delta-rank00000-file000000.safetensors"

static char *scratch;
static char *base_path;
static char *delta_path;
static char *back_path;

static void setup(void)
{
	static const struct fixture_tensor tensors[] = {
		{.name = "w", .dtype = DTYPE_BF16, .shape = {8}, .data = w_old}};
	scratch = unit_scratch_make();
	base_path = fixture_path(scratch, "base.safetensors");
	delta_path = fixture_path(scratch, "delta-00000007");
	back_path = fixture_path(scratch, "back.safetensors");
	fixture_write_tensors(base_path, tensors, 1, true);
}

static void teardown(void)
{
	unit_scratch_remove(scratch);
	free(base_path);
	free(delta_path);
	free(back_path);
}

static void write_payload(void)
{
	uint8_t content[W_BYTES];
	uint8_t frame[256];
	for (unsigned i = 0; i < W_BYTES; i++)
		content[i] = (uint8_t)(w_old[i] ^ w_new[i]);
	struct compressor *const compressor = compressor_new();
	const size_t len = compress_zstd(
		compressor, span_of(content, sizeof(content)), frame, sizeof(frame), 1);
	compressor_free(compressor);
	char *const path = fixture_path(delta_path, FILE_NAME);
	const struct fixture_tensor tensor = {
		.name = "w", .dtype = DTYPE_U8, .shape = {len}, .data = (const char *)frame};
	char *const folder_made = fixture_path(delta_path, "x");
	fixture_write_text(folder_made, "");
	fixture_write_tensors(path, &tensor, 1, false);
	free(folder_made);
	free(path);
}

static const char *checksum_of(const char *bytes)
{
	static char text[TENSOR_CHECKSUM_TEXT_BYTES];
	struct tensor_checksum *const checksum = tensor_checksum_new(DELTA_XXH3_128);
	tensor_checksum_add(checksum, span_of(bytes, W_BYTES));
	tensor_checksum_result(checksum, text);
	tensor_checksum_free(checksum);
	return text;
}

static void write_manifest(const char *json)
{
	char *const path = fixture_path(delta_path, "manifest.json");
	fixture_write_text(path, json);
	free(path);
}

static void write_record(const char *file, const char *checksum)
{
	struct buffer json;
	buffer_init(&json, 4096);
	buffer_format(&json,
		"{\"version\":7,\"base_version\":6,\"tensors\":[{\"name\":\"w\",\"dtype\":\"bfloat16\","
		"\"shape\":[8],\"uncompressed_num_bytes\":16,\"payload_file\":\"%s\",\"payload_key\":\"w\",\"checksum\":\"%s\","
		"\"checksum_algorithm\":\"xxh3-128\"}],\"payload_files\":[\"%s\"]}",
		file, checksum, file);
	write_manifest(buffer_text(&json));
	buffer_release(&json);
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

static void expect_refused(enum error_kind kind, const char *message)
{
	struct error err = {0};
	ck_assert_int_eq(apply(&err), -1);
	ck_assert_msg(err.kind == kind && strstr(err.text, message) != NULL, "%s: %s (wanted: %s)",
		error_kind_name(err.kind), err.text, message);
	ck_assert(!file_exists(back_path));
}

static void expect_applied(const char *wanted)
{
	struct error err = {0};
	ck_assert_msg(apply(&err) == 0, "%s", err.text);
	struct checkpoint *const back = checkpoint_open(back_path, &err);
	ck_assert_msg(back != NULL, "%s", err.text);
	ck_assert(span_equal(checkpoint_tensor(back, 0), span_text(wanted)));
	checkpoint_close(back);
}

static void expect_patched(const char *wanted)
{
	struct error err = {0};
	struct delta_stats stats;
	struct memory_fixture memory;
	bool spoiled = true;
	const char *const delta = delta_path;
	memory_fixture_load(&memory, base_path);
	const struct delta_patch_params params = {.schema = memory.schema,
		.tensors = memory.tensors,
		.deltas = &delta,
		.delta_count = 1};
	ck_assert_msg(delta_patch(&params, &stats, &spoiled, &err) == 0, "%s", err.text);
	ck_assert_mem_eq(memory.tensors[0], wanted, W_BYTES);
	memory_fixture_release(&memory);
}

START_TEST(a_delta_is_applied)
{
	struct error err = {0};
	struct delta_summary summary;
	write_payload();
	write_record(FILE_NAME, checksum_of(w_new));
	expect_applied(w_new);
	expect_patched(w_new);
	ck_assert_int_eq(delta_inspect(delta_path, &summary, &err), 0);
	ck_assert(summary.is_delta && summary.format == DELTA_SKYRL_XOR);
	ck_assert_str_eq(delta_format_name(summary.format), "skyrl-xor");
	ck_assert(summary.has_step && summary.step == 7 && summary.has_base_step &&
		summary.base_step == 6);
}
END_TEST

START_TEST(a_version_without_change_has_a_manifest_alone)
{
	write_manifest("{\"version\":7,\"base_version\":6,\"tensors\":[],\"payload_files\":[]}");
	expect_applied(w_old);
}
END_TEST

START_TEST(a_fold_is_slimes)
{
	struct error err = {0};
	struct delta_stats stats;
	struct delta_summary summary;
	write_payload();
	write_record(FILE_NAME, checksum_of(w_new));
	const char *const deltas[] = {delta_path};
	const struct fold_params params = {.deltas = deltas, .count = 1, .out = back_path};
	ck_assert_msg(fold(&params, &stats, &err) == 0, "%s", err.text);
	ck_assert_int_eq(delta_inspect(back_path, &summary, &err), 0);
	ck_assert_int_eq(summary.format, DELTA_SLIME_XOR);
}
END_TEST

START_TEST(it_is_read_and_not_written)
{
	enum delta_format format;
	ck_assert(!delta_format_parse(span_text("skyrl-xor"), &format));
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
	write_payload();
	write_record(FILE_NAME, checksum_of(w_old));
	expect_refused(ERROR_DIGEST_MISMATCH, "its checksum is");
	write_record("../base.safetensors", checksum_of(w_new));
	expect_refused(ERROR_INVALID, "outside of its folder");
	write_record("other.safetensors", checksum_of(w_new));
	expect_refused(ERROR_INVALID, "which is missing");
	write_manifest("{\"version\":7,\"base_version\":6,\"tensors\":["
		       "{\"name\":\"w\",\"payload_file\":\"" FILE_NAME
		       "\",\"payload_key\":\"w\",\"checksum\":\"00\"},"
		       "{\"name\":\"w\",\"payload_file\":\"" FILE_NAME
		       "\",\"payload_key\":\"w\",\"checksum\":\"00\"}]}");
	expect_refused(ERROR_INVALID, "a tensor twice");
	write_manifest("{\"version\":7,\"base_version\":6,\"tensors\":["
		       "{\"name\":\"v\",\"payload_file\":\"" FILE_NAME
		       "\",\"payload_key\":\"v\",\"checksum\":\"00\"}]}");
	expect_refused(ERROR_INVALID, "lacks it");
}
END_TEST

static const struct {
	const char *json;
	const char *message;
} malformed[] = {
	{"", "at byte 0"},
	{"[]", "at byte 0"},
	{"{\"version\":7,\"base_version\":6}", "missing"},
	{"{\"version\":7,\"tensors\":[]}", "missing"},
	{"{\"version\":\"7\",\"base_version\":6,\"tensors\":[]}", "at byte"},
	{"{\"version\":-7,\"base_version\":6,\"tensors\":[]}", "at byte"},
	{"{\"version\":7,\"version\":7,\"base_version\":6,\"tensors\":[]}", "given twice"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[]} x", "behind the object"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":{}}", "at byte"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[7]}", "at byte"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[{}]}", "lacks a member"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[{\"name\":\"w\",\"name\":\"w\"}]}",
		"given twice"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[{\"name\":\"w\",\"payload_file\":\"f\",\"payload_key\":\"w\","
	 "\"sha256\":\"00\"}]}",
		"lacks a member"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[{\"name\":\"w\",\"payload_file\":\"f\",\"payload_key\":\"w\","
	 "\"checksum\":\"00\",\"checksum_algorithm\":\"sha256\"}]}",
		"not xxh3-128"},
	{"{\"version\":7,\"base_version\":6,\"tensors\":[{\"name\":\"w\",\"payload_file\":\"f\",\"payload_key\":\"v\","
	 "\"checksum\":\"00\"}]}",
		"payload_key"},
};

START_TEST(malformed_manifests_are_refused)
{
	struct error err = {0};
	ck_assert(delta_manifest_parse(span_text(malformed[_i].json), "m", &err) == NULL);
	ck_assert_msg(err.kind == ERROR_INVALID && strstr(err.text, malformed[_i].message) != NULL,
		"%s", err.text);
}
END_TEST

START_TEST(a_checkpoint_may_have_such_a_file)
{
	static const struct fixture_tensor tensor = {
		.name = "w", .dtype = DTYPE_BF16, .shape = {8}, .data = w_new};
	struct error err = {0};
	struct delta_summary summary;
	char *const path = fixture_path(delta_path, "model.safetensors");
	write_manifest("{\"what\":\"ever\"}");
	fixture_write_tensors(path, &tensor, 1, true);
	ck_assert_msg(delta_inspect(delta_path, &summary, &err) == 0, "%s", err.text);
	ck_assert(!summary.is_delta);
	free(path);
}
END_TEST

Suite *test_delta_manifest_suite(void)
{
	Suite *const suite = suite_create("delta_manifest");
	TCase *const tests = tcase_create("all");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_delta_is_applied);
	tcase_add_test(tests, a_version_without_change_has_a_manifest_alone);
	tcase_add_test(tests, a_fold_is_slimes);
	tcase_add_test(tests, it_is_read_and_not_written);
	tcase_add_test(tests, what_does_not_fit_is_refused);
	tcase_add_loop_test(tests, malformed_manifests_are_refused, 0,
		sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tests, a_checkpoint_may_have_such_a_file);
	suite_add_tcase(suite, tests);
	return suite;
}
