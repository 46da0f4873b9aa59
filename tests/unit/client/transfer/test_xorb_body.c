#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/xorb_parse.h"
#include "client/local/folder_files.h"
#include "client/transfer/xorb_body.h"

enum { BYTES = 700000, XORB_BYTES = 400000 };

static char *folder;
static char *path;
static uint8_t *bytes;
static struct file_chunks chunks;
static struct chunk_table *table;
static struct upload_plan plan;

/* A codec can make half of it smaller. */
static void set_up(void)
{
	struct error err = {0};
	uint64_t state = 1;
	folder = unit_scratch_make();
	path = folder_files_join(folder, "file");
	bytes = memory_new(BYTES);
	for (size_t i = 0; i < BYTES; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(i < BYTES / 2 ? state >> 56 : 'a' + (state >> 62));
	}
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, BYTES), 0644, &err), 0);
	ck_assert_int_eq(file_chunks_read(path, NULL, &chunks, &err), 0);
	table = chunk_table_new();
	upload_plan_make(&chunks, 1, table, XORB_BYTES, &plan);
	ck_assert_uint_eq(plan.xorb_count, 2);
}

static void tear_down(void)
{
	upload_plan_release(&plan);
	chunk_table_free(table);
	file_chunks_release(&chunks);
	free(bytes);
	free(path);
	unit_scratch_remove(folder);
}

struct gathered {
	uint8_t *content;
	size_t len;
	size_t stored;
};

static int gather(void *taker, const struct xorb_record *record, struct error *err)
{
	struct gathered *const gathered = taker;
	(void)err;
	ck_assert_uint_le(gathered->len + record->content.len, BYTES);
	memcpy(gathered->content + gathered->len, record->content.data, record->content.len);
	gathered->len += record->content.len;
	return 0;
}

START_TEST(xorbs_carry_the_file_and_have_their_names)
{
	struct error err = {0};
	const char *const paths[] = {path};
	struct xorb_body *const body = xorb_body_new(&plan, &chunks, paths);
	struct gathered gathered = {.content = memory_new(BYTES)};
	for (size_t i = 0; i < plan.xorb_count; i++) {
		struct span out;
		struct chunk_id hash;
		ck_assert_int_eq(xorb_body_make(body, i, &out, &err), 0);
		struct xorb_parse *const parse = xorb_parse_new(gather, &gathered, true);
		ck_assert_int_eq(xorb_parse_push(parse, out, &err), 0);
		ck_assert_int_eq(xorb_parse_end(parse, &hash, &err), 0);
		ck_assert(chunk_id_equal(&hash, &plan.xorbs[i].hash));
		xorb_parse_free(parse);
		gathered.stored += out.len;
		ck_assert_int_eq(xorb_body_check(body, i, &err), 0);
	}
	ck_assert_uint_eq(gathered.len, BYTES);
	ck_assert_mem_eq(gathered.content, bytes, BYTES);
	ck_assert_uint_lt(gathered.stored, BYTES * 3 / 4);
	free(gathered.content);
	xorb_body_free(body);
}
END_TEST

START_TEST(a_file_that_changed_is_told)
{
	struct error err = {0};
	const char *const paths[] = {path};
	struct xorb_body *const body = xorb_body_new(&plan, &chunks, paths);
	struct span out;
	bytes[BYTES - 1] ^= 1;
	ck_assert_int_eq(file_place(file_system(), path, span_of(bytes, BYTES), 0644, &err), 0);
	ck_assert_int_eq(xorb_body_check(body, 0, &err), 0);
	ck_assert_int_eq(xorb_body_check(body, 1, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "changed while it was uploaded"));
	xorb_body_free(body);
	struct xorb_body *const later = xorb_body_new(&plan, &chunks, paths);
	ck_assert_int_eq(truncate(path, BYTES - 1), 0);
	ck_assert_int_eq(xorb_body_make(later, 1, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	xorb_body_free(later);
}
END_TEST

Suite *test_xorb_body_suite(void);
Suite *test_xorb_body_suite(void)
{
	Suite *const suite = suite_create("xorb_body");
	TCase *const tests = tcase_create("xorb_body");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, xorbs_carry_the_file_and_have_their_names);
	tcase_add_test(tests, a_file_that_changed_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
