#include "weights/delta/delta_source.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit.h"
#include "tests/unit/weights/pair_fixture.h"
#include "tests/unit/weights/weights_fixture.h"

Suite *test_delta_source_suite(void);

static struct pair_fixture pair;
static struct checkpoint *base;
static struct tensor_source *base_source;

static void setup(void)
{
	pair_fixture_setup(&pair, 2, true);
	base = pair_fixture_open(&pair, 0);
	base_source = checkpoint_source_new(base);
}

static void teardown(void)
{
	tensor_source_free(base_source);
	checkpoint_close(base);
	pair_fixture_teardown(&pair);
}

static struct delta_reader *open_delta(enum delta_format format)
{
	struct error err = {0};
	char *const path = pair_fixture_path(&pair, "delta");
	pair_fixture_diff(&pair, 0, 1, format, "delta");
	struct delta_reader *const reader = delta_reader_open(path, &err);
	ck_assert_msg(reader != NULL, "%s", err.text);
	ck_assert_int_eq(delta_reader_format(reader), format);
	free(path);
	return reader;
}

START_TEST(every_format_gives_the_tensors)
{
	struct error err = {0};
	struct delta_reader *const reader = open_delta((enum delta_format)_i);
	struct checkpoint *const next = pair_fixture_open(&pair, 1);
	struct tensor_source *const source = delta_source_new(reader, base_source, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	struct digest128 digests[4];
	struct digest128 wanted[4];
	ck_assert_int_eq(checkpoint_tensor_digests(next, 1, NULL, wanted, NULL), 0);
	for (unsigned threads = 1; threads < 4; threads += 2) {
		ck_assert_msg(
			tensor_source_digests(source, threads, digests, &err) == 0, "%s", err.text);
		for (size_t i = 0; i < 4; i++)
			ck_assert(digest128_equal(&digests[i], &wanted[i]));
	}
	tensor_source_free(source);
	checkpoint_close(next);
	delta_reader_close(reader);
}
END_TEST

static uint64_t count_differing(struct span old, struct span new, size_t width)
{
	uint64_t count = 0;
	ck_assert_uint_eq(old.len, new.len);
	for (size_t at = 0; at < old.len; at += width)
		count += memcmp(old.data + at, new.data + at, width) != 0;
	return count;
}

/* Also of tensors that are stored whole, and when they are read again. */
START_TEST(every_format_counts_what_it_changes)
{
	struct error err = {0};
	struct delta_reader *const reader = open_delta((enum delta_format)_i);
	struct checkpoint *const next = pair_fixture_open(&pair, 1);
	struct tensor_source *const source = delta_source_new(reader, base_source, &err);
	struct digest128 digests[4];
	uint64_t changed[4] = {0};
	uint64_t total = 0;
	delta_source_count(source, changed);
	for (size_t i = 0; i < 2 * 4; i++) {
		struct tensor_cursor *const cursor = tensor_source_open(source, i % 4, &err);
		struct span block;
		while (tensor_cursor_next(cursor, &block, &err) == 1)
			continue;
		tensor_cursor_close(cursor);
	}
	for (size_t i = 0; i < 4; i++) {
		const unsigned bits = dtype_bits(schema_tensor(source->schema, i)->dtype);
		ck_assert_uint_eq(changed[i],
			count_differing(
				checkpoint_tensor(base, i), checkpoint_tensor(next, i), bits / 8));
		total += changed[i];
	}
	ck_assert_uint_gt(total, 0);
	ck_assert_uint_eq(changed[schema_find(source->schema, span_text("same"))], 0);
	ck_assert_msg(tensor_source_digests(source, 1, digests, &err) == 0, "%s", err.text);
	tensor_source_free(source);
	checkpoint_close(next);
	delta_reader_close(reader);
}
END_TEST

/* The formats whose blocks can be decoded alone. */
START_TEST(decoding_begins_at_any_block)
{
	static const enum delta_format formats[] = {DELTA_ULP_CLASS, DELTA_FULL};
	struct error err = {0};
	struct delta_reader *const reader = open_delta(formats[_i]);
	struct checkpoint *const next = pair_fixture_open(&pair, 1);
	struct tensor_source *const source = delta_source_new(reader, base_source, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	const size_t large = (size_t)schema_find(source->schema, span_text("large"));
	const uint64_t block_bytes = tensor_source_block_bytes(source, large);
	struct tensor_cursor *cursor = NULL;
	ck_assert(tensor_source_splits(source, large));
	for (uint64_t block = tensor_source_blocks(source, large); block-- > 0;) {
		struct span out;
		ck_assert_msg(tensor_source_move(source, &cursor, large, block, &err) == 0, "%s",
			err.text);
		ck_assert_int_eq(tensor_cursor_next(cursor, &out, &err), 1);
		ck_assert(span_equal(out,
			span_slice(checkpoint_tensor(next, large), (size_t)(block * block_bytes),
				(size_t)block_bytes)));
	}
	tensor_cursor_close(cursor);
	tensor_source_free(source);
	checkpoint_close(next);
	delta_reader_close(reader);
}
END_TEST

/* The place in the file that an entry gives is right. */
START_TEST(entries_say_where_their_blocks_lie)
{
	struct delta_reader *const reader = open_delta(DELTA_ULP_CLASS);
	char *const path = pair_fixture_path(&pair, "delta/delta.safetensors");
	struct buffer bytes = fixture_read(path);
	const struct delta_entry *const entry = delta_reader_find(reader, span_text("large"));
	ck_assert_ptr_nonnull(entry);
	ck_assert_int_eq(entry->kind, DELTA_ENTRY_BLOCKS);
	ck_assert(
		span_equal_text(delta_reader_file_name(reader, entry->file), "delta.safetensors"));
	ck_assert(span_equal(
		entry->data, span_slice(buffer_span(&bytes), (size_t)entry->at, entry->data.len)));
	ck_assert_ptr_null(delta_reader_find(reader, span_text("same")));
	buffer_release(&bytes);
	free(path);
	delta_reader_close(reader);
}
END_TEST

/* A source is the base of another source over the same files. */
START_TEST(a_source_is_a_base_too)
{
	struct error err = {0};
	struct delta_reader *const reader = open_delta(DELTA_SLIME_XOR);
	struct tensor_source *const first = delta_source_new(reader, base_source, &err);
	/* A second XOR leads back to the base; the delta has no checksums of the base. */
	struct tensor_source *const second = delta_source_new_unproven(reader, first, &err);
	struct tensor_source *const proven = delta_source_new(reader, first, &err);
	struct digest128 digests[4];
	struct digest128 wanted[4];
	ck_assert_int_eq(checkpoint_tensor_digests(base, 1, NULL, wanted, NULL), 0);
	ck_assert_msg(tensor_source_digests(second, 2, digests, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < 4; i++)
		ck_assert(digest128_equal(&digests[i], &wanted[i]));
	ck_assert_int_eq(tensor_source_digests(proven, 2, digests, &err), -1);
	ck_assert_msg(err.kind == ERROR_DIGEST_MISMATCH &&
			strstr(err.text, "(step 1): tensor 'large': its checksum") != NULL,
		"%s", err.text);
	tensor_source_free(proven);
	tensor_source_free(second);
	tensor_source_free(first);
	delta_reader_close(reader);
}
END_TEST

Suite *test_delta_source_suite(void)
{
	Suite *const suite = suite_create("delta_source");
	TCase *const tcase = tcase_create("delta_source");
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_format_gives_the_tensors, 0, DELTA_FORMATS);
	tcase_add_loop_test(tcase, every_format_counts_what_it_changes, 0, DELTA_FORMATS);
	tcase_add_loop_test(tcase, decoding_begins_at_any_block, 0, 2);
	tcase_add_test(tcase, entries_say_where_their_blocks_lie);
	tcase_add_test(tcase, a_source_is_a_base_too);
	suite_add_tcase(suite, tcase);
	return suite;
}
