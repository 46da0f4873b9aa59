/* The whole protocol as a text, row by row: tests/data/routes.txt. Who adds or changes a row sees here what became of the table, and writes
 * the text anew with DELTABUCKET_WRITE_ROUTES=1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/router.h"
#include "base/buffer.h"
#include "base/file.h"
#include "tests/unit/unit.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data"
#endif

enum { TEXT_MAX_BYTES = 256 * 1024 };

static const struct { int method; const char *name; } methods[] = {{METHOD_GET, "GET"}, {METHOD_HEAD, "HEAD"}, {METHOD_PUT, "PUT"},
	{METHOD_POST, "POST"}, {METHOD_DELETE, "DELETE"}, {METHOD_OPTIONS, "OPTIONS"}};
static const char *const accesses[] = {
	[ACCESS_ANYONE] = "anyone", [ACCESS_SIGNED_IN] = "signed in", [ACCESS_ROOT] = "root", [ACCESS_CREATE_BUCKET] = "create bucket",
	[ACCESS_XET_READ] = "token to read", [ACCESS_XET_WRITE] = "token to write",
	[ACCESS_BUCKET_KNOWN] = "bucket known", [ACCESS_BUCKET_CHANGES] = "bucket changes", [ACCESS_BUCKET_LIST] = "bucket list", [ACCESS_BUCKET_RUNS] = "bucket runs",
	[ACCESS_BUCKET_SETTINGS] = "bucket settings", [ACCESS_BUCKET_ADMIN] = "bucket admin", [ACCESS_OBJECT_READ] = "object read",
	[ACCESS_OBJECT_WRITE] = "object write", [ACCESS_OBJECT_DELETE] = "object delete", [ACCESS_OBJECT_TAGS_READ] = "object tags read",
	[ACCESS_OBJECT_TAGS_WRITE] = "object tags write", [ACCESS_OBJECT_ADMIN] = "object admin", [ACCESS_RUN_READ] = "run read",
	[ACCESS_RUN_FLEET] = "run fleet",
	[ACCESS_RUN_WRITE] = "run write",
};
static const char *const bodies[] = {[BODY_NONE] = "no body", [BODY_SMALL] = "small body", [BODY_STREAM] = "stream"};

static void print_row(const struct route *const route, struct buffer *const out)
{
	const char *separator = "";
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if ((route->methods & methods[i].method) == 0)
			continue;
		buffer_format(out, "%s%s", separator, methods[i].name);
		separator = ",";
	}
	ck_assert((size_t)route->access < sizeof(accesses) / sizeof(accesses[0]) && accesses[route->access] != NULL);
	buffer_format(out, " %s%s%s -> %s (%s, %s)\n", route->pattern, route->query != NULL ? "?" : "", route->query != NULL ? route->query : "",
		route->name, accesses[route->access], bodies[route->body]);
}

static void print_tables(struct buffer *const out)
{
	static const struct route *const tables[] = {admin_routes, steps_routes, hot_load_routes, hub_routes, xet_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct route *route = tables[i]; route->pattern != NULL; route++)
			print_row(route, out);
}

static void write_text(const char *const path, const struct span text)
{
	FILE *const file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text.data, 1, text.len, file), text.len);
	fclose(file);
}

/* The first line of each that differs. */
static void assert_same(struct span wanted, struct span got)
{
	struct span wanted_line = {NULL, 0};
	struct span got_line = {NULL, 0};
	do {
		const bool more_wanted = span_split(&wanted, '\n', &wanted_line);
		const bool more_got = span_split(&got, '\n', &got_line);
		if (!more_wanted && !more_got)
			return;
		ck_assert_msg(more_wanted && more_got && span_equal(wanted_line, got_line), "routes.txt has \"%.*s\", the table has \"%.*s\"",
			(int)wanted_line.len, (const char *)wanted_line.data, (int)got_line.len, (const char *)got_line.data);
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
	buffer_init(&printed, TEXT_MAX_BYTES);
	buffer_init(&text, TEXT_MAX_BYTES);
	print_tables(&printed);
	if (getenv("DELTABUCKET_WRITE_ROUTES") != NULL)
		write_text(path, buffer_span(&printed));
	ck_assert_msg(file_read_all(path, &text, &err) == 0, "%s", err.text);
	assert_same(buffer_span(&text), buffer_span(&printed));
	buffer_release(&text);
	buffer_release(&printed);
}
END_TEST

/* A row that an earlier one hides is never reached. */
static bool hides(const struct route *const earlier, const struct route *const later)
{
	const bool same_query = earlier->query == NULL || (later->query != NULL && strcmp(earlier->query, later->query) == 0);
	return same_query && strcmp(earlier->pattern, later->pattern) == 0 && (later->methods & ~earlier->methods) == 0;
}

START_TEST(every_row_can_be_reached)
{
	static const struct route *const tables[] = {admin_routes, steps_routes, hot_load_routes, s3_routes};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct route *later = tables[i]; later->pattern != NULL; later++)
			for (const struct route *earlier = tables[i]; earlier != later; earlier++)
				ck_assert_msg(!hides(earlier, later), "%s?%s hides %s", earlier->name, earlier->query != NULL ? earlier->query : "",
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
