/* The whole protocol as a text, row by row, is in tests/data/routes.txt. After a change of a row
 * this test shows the difference, and DELTABUCKET_WRITE_ROUTES=1 writes the text again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/route/router.h"
#include "base/buffer.h"
#include "base/file.h"
#include "tests/support/route_text.h"
#include "tests/unit/unit.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data"
#endif

static void write_text(const char *path, struct span text)
{
	FILE *const file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text.data, 1, text.len, file), text.len);
	fclose(file);
}

/* Finds the first lines that differ. */
static void assert_same(struct span wanted, struct span got)
{
	struct span wanted_line = {NULL, 0};
	struct span got_line = {NULL, 0};
	do {
		const bool more_wanted = span_split(&wanted, '\n', &wanted_line);
		const bool more_got = span_split(&got, '\n', &got_line);
		if (!more_wanted && !more_got)
			return;
		ck_assert_msg(more_wanted && more_got && span_equal(wanted_line, got_line),
			"routes.txt has \"%.*s\", the table has \"%.*s\"", (int)wanted_line.len,
			(const char *)wanted_line.data, (int)got_line.len,
			(const char *)got_line.data);
	} while (true);
}

START_TEST(the_table_is_as_written_down)
{
	const char *const set = getenv("DELTABUCKET_TEST_DATA");
	char path[1024];
	struct buffer printed;
	struct buffer text;
	struct error err = {0};
	snprintf(path, sizeof(path), "%s/routes.txt", set != NULL ? set : TEST_DATA_DIR);
	buffer_init(&printed, ROUTE_TEXT_MAX_BYTES);
	buffer_init(&text, ROUTE_TEXT_MAX_BYTES);
	route_text_print(&printed);
	if (getenv("DELTABUCKET_WRITE_ROUTES") != NULL)
		write_text(path, buffer_span(&printed));
	ck_assert_msg(file_read_all(path, &text, &err) == 0, "%s", err.text);
	assert_same(buffer_span(&text), buffer_span(&printed));
	buffer_release(&text);
	buffer_release(&printed);
}
END_TEST

/* Fails for a row that an earlier row hides, because it would never be reached. */
static bool hides(const struct route *earlier, const struct route *later)
{
	const bool same_query = earlier->query == NULL ||
		(later->query != NULL && strcmp(earlier->query, later->query) == 0);
	return same_query && strcmp(earlier->pattern, later->pattern) == 0 &&
		(later->methods & ~earlier->methods) == 0;
}

START_TEST(every_row_can_be_reached)
{
	static const struct route *const tables[] = {
		admin_routes, console_routes, steps_routes, hot_load_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct route *later = tables[i]; later->pattern != NULL; later++)
			for (const struct route *earlier = tables[i]; earlier != later; earlier++)
				ck_assert_msg(!hides(earlier, later), "%s?%s hides %s",
					earlier->name, earlier->query != NULL ? earlier->query : "",
					later->name);
}
END_TEST

Suite *test_routes_suite(void);
Suite *test_routes_suite(void)
{
	Suite *const suite = suite_create("routes");
	TCase *const table = tcase_create("table");
	tcase_add_test(table, the_table_is_as_written_down);
	tcase_add_test(table, every_row_can_be_reached);
	suite_add_tcase(suite, table);
	return suite;
}
