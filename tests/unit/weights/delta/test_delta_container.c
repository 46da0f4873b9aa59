/* The ulp-class container: the parts around the blocks, and the results of changed bytes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"
#include "weights/delta/delta_reader.h"

Suite *test_delta_container_suite(void);

static struct pair_fixture pair;
static char *file_path;

static void setup(void)
{
	pair_fixture_setup(&pair, 3, false);
	file_path = pair_fixture_path(&pair, "delta/delta.safetensors");
}

static void teardown(void)
{
	free(file_path);
	pair_fixture_teardown(&pair);
}

START_TEST(the_container_is_thin)
{
	struct error err = {0};
	uint64_t names = 0;
	uint64_t payload = 0;
	char *const path = pair_fixture_path(&pair, "delta");
	const struct delta_stats stats = pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	struct delta_reader *const reader = delta_reader_open(path, &err);
	ck_assert_msg(reader != NULL, "%s", err.text);
	ck_assert_uint_eq(delta_reader_count(reader), 3);
	ck_assert_uint_eq(stats.changed_tensors, 3);
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		names += delta_reader_entry(reader, i)->name.len;
		payload += delta_reader_entry(reader, i)->data.len;
	}
	ck_assert_uint_eq(stats.payload_bytes, payload);
	ck_assert_uint_eq(stats.delta_bytes, delta_reader_bytes(reader));
	ck_assert_uint_le(stats.delta_bytes, payload + 160 * stats.changed_tensors + names + 1024);
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	ck_assert(metadata->has_step && metadata->step == 1 && metadata->has_base_step &&
		metadata->base_step == 0);
	ck_assert(metadata->has_changed_elements &&
		metadata->changed_elements == stats.changed_elements);
	delta_reader_close(reader);
	free(path);
	pair_fixture_expect(&pair, 0, "delta", 1);
}
END_TEST

START_TEST(the_wrong_base_is_named)
{
	pair_fixture_diff(&pair, 0, 1, (enum delta_format)_i, "delta");
	pair_fixture_refuse(&pair, 2, "delta", ERROR_WRONG_BASE,
		"/delta' (step 1): the delta was made from the base xxh3-128:");
}
END_TEST

/* A changed byte is refused or, in padding and in names of metadata that are not read, has no
 * effect. It never gives a wrong result. */
START_TEST(turned_bytes_never_give_a_wrong_result)
{
	unsigned refused = 0;
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	struct buffer good = fixture_read(file_path);
	const size_t step = good.len / 40;
	for (size_t at = 8; at < good.len; at += at < 1400 ? 97 : step) {
		struct error err = {0};
		char *const out = pair_fixture_path(&pair, "back");
		good.data[at] ^= 0x10;
		fixture_write(file_path, buffer_span(&good));
		good.data[at] ^= 0x10;
		if (pair_fixture_apply(&pair, 0, "delta", "back", &err) == 0) {
			char *const wanted = pair_fixture_step(&pair, 1);
			ck_assert_msg(fixture_same_tree(out, wanted), "at %zu", at);
			free(wanted);
		} else {
			ck_assert_msg(err.kind == ERROR_INVALID ||
					err.kind == ERROR_DIGEST_MISMATCH ||
					err.kind == ERROR_WRONG_BASE ||
					err.kind == ERROR_UNSUPPORTED ||
					err.kind == ERROR_SCHEMA_MISMATCH,
				"at %zu: %s: %s", at, error_kind_name(err.kind), err.text);
			refused++;
		}
		ck_assert_int_eq(file_remove_tree(file_system(), out, &err), 0);
		free(out);
	}
	ck_assert_uint_ge(refused, 35);
	buffer_release(&good);
}
END_TEST

START_TEST(a_damaged_block_is_named_with_its_tensor_and_step)
{
	struct error err = {0};
	char *const path = pair_fixture_path(&pair, "delta");
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	struct delta_reader *const reader = delta_reader_open(path, &err);
	const struct delta_entry entry = *delta_reader_find(reader, span_text("large"));
	delta_reader_close(reader);
	struct buffer bytes = fixture_read(file_path);
	/* a byte in the payload of the last block */
	bytes.data[entry.at + entry.data.len - 10] ^= 0x40;
	fixture_write(file_path, buffer_span(&bytes));
	ck_assert_int_eq(pair_fixture_apply(&pair, 0, "delta", "back", &err), -1);
	ck_assert_msg(strstr(err.text, "/delta' (step 1): tensor 'large': block 2") != NULL, "%s",
		err.text);
	ck_assert_msg(
		err.kind == ERROR_DIGEST_MISMATCH || err.kind == ERROR_INVALID, "%s", err.text);
	buffer_release(&bytes);
	free(path);
}
END_TEST

START_TEST(truncated_files_are_refused)
{
	pair_fixture_diff(&pair, 0, 1, DELTA_ULP_CLASS, "delta");
	struct buffer bytes = fixture_read(file_path);
	const size_t cuts[] = {0, 5, 8, 100, bytes.len / 2, bytes.len - 1};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		fixture_write(file_path, span_slice(buffer_span(&bytes), 0, cuts[i]));
		pair_fixture_refuse(&pair, 0, "delta", ERROR_INVALID, "delta.safetensors");
	}
	buffer_release(&bytes);
}
END_TEST

/* Writes a header made by hand before the same blocks. */
static void write_file(const char *metadata, const char *tensors, size_t data_bytes)
{
	struct buffer json;
	buffer_init(&json, 1 << 16);
	buffer_format(&json, "{\"__metadata__\":{%s}%s}", metadata, tensors);
	fixture_write_raw(file_path, buffer_text(&json), data_bytes);
	buffer_release(&json);
}

#define ULP "\"delta_encoding\":\"ulp-class\",\"compression_format\":\"none\",\"step\":\"4\""
static const struct {
	const char *metadata;
	const char *tensors;
	size_t data_bytes;
	enum error_kind kind;
	const char *message;
} malformed[] = {
	{"\"delta_encoding\":\"ulp-e12\"", "", 0, ERROR_UNSUPPORTED, "'ulp-e12' is not supported"},
	{"\"delta_encoding\":\"ulp-class\"", "", 0, ERROR_UNSUPPORTED, "compression_format"},
	{"\"delta_encoding\":\"ulp-class\",\"compression_format\":\"zstd\"", "", 0,
		ERROR_UNSUPPORTED, "compression_format 'zstd'"},
	{ULP ",\"base_step\":\"x\"", "", 0, ERROR_INVALID, "a number in the delta's metadata"},
	{ULP, ",\"stranger\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}", 1,
		ERROR_INVALID, "'stranger' is unknown to the base"},
	{ULP, ",\"small\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}", 1,
		ERROR_INVALID, "'small' is not a vector of bytes"},
	{ULP, ",\"small\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[0,1]}", 1,
		ERROR_INVALID, "'small' is not a vector of bytes"},
	{ULP, ",\"small\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"small\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}",
		2, ERROR_INVALID, "small"},
	{ULP, ",\"small\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", 0,
		ERROR_INVALID, "(step 4): tensor 'small'"},
	{ULP, ",\"small\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}", 1,
		ERROR_INVALID, "(step 4): tensor 'small'"},
	{ULP, ",\"small\":{\"dtype\":\"U8\",\"shape\":[40],\"data_offsets\":[0,40]}", 40,
		ERROR_INVALID, "(step 4): tensor 'small'"},
};

START_TEST(malformed_containers_are_refused)
{
	write_file(malformed[_i].metadata, malformed[_i].tensors, malformed[_i].data_bytes);
	pair_fixture_refuse(&pair, 0, "delta", malformed[_i].kind, malformed[_i].message);
}
END_TEST

START_TEST(what_did_not_change_is_an_empty_container)
{
	char *const step = pair_fixture_step(&pair, 0);
	char *const copy = pair_fixture_step(&pair, 9);
	struct buffer bytes = fixture_read(step);
	fixture_write(copy, buffer_span(&bytes));
	const struct delta_stats stats = pair_fixture_diff(&pair, 0, 9, DELTA_ULP_CLASS, "delta");
	ck_assert_uint_eq(stats.payload_bytes, 0);
	ck_assert_uint_le(stats.delta_bytes, 1024);
	pair_fixture_expect(&pair, 0, "delta", 9);
	buffer_release(&bytes);
	free(step);
	free(copy);
}
END_TEST

Suite *test_delta_container_suite(void)
{
	Suite *const suite = suite_create("delta_container");
	TCase *const tcase = tcase_create("delta_container");
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_container_is_thin);
	tcase_add_loop_test(tcase, the_wrong_base_is_named, 0, 3);
	tcase_add_test(tcase, turned_bytes_never_give_a_wrong_result);
	tcase_add_test(tcase, a_damaged_block_is_named_with_its_tensor_and_step);
	tcase_add_test(tcase, truncated_files_are_refused);
	tcase_add_loop_test(tcase, malformed_containers_are_refused, 0,
		sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tcase, what_did_not_change_is_an_empty_container);
	suite_add_tcase(suite, tcase);
	return suite;
}
