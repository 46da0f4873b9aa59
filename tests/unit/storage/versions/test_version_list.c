#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/db/db.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_list.h"
#include "storage/objects/object_put.h"
#include "storage/versions/version_list.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

/* Each key is put `puts` times, then deleted when `ends` is true. */
static const struct {
	const char *key;
	int puts;
	bool ends;
} content[] = {
	{"a", 2, false},
	{"a/", 1, true},
	{"a/1", 3, false},
	{"a/2", 0, true},
	{"a/b/c", 1, false},
	{"a0", 4, true},
	{"b", 1, false},
	{"c//d", 1, true},
	{"c//e", 2, false},
	{"\xff", 1, false},
	{"\xff\xff/1", 2, true},
};
enum { KEYS = sizeof(content) / sizeof(content[0]), LINES_MAX = 64 };

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	for (size_t i = 0; i < KEYS; i++) {
		for (int k = 0; k < content[i].puts; k++)
			ck_assert_int_eq(fixture_put(fixture.store, "bucket", content[i].key,
						 span_text("12345"), &err),
				0);
		if (content[i].ends)
			ck_assert_int_eq(
				fixture_delete(fixture.store, "bucket", content[i].key, NULL, &err),
				0);
	}
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

struct line {
	char text[32];
	int number; /* of the version within its key; -1: a common prefix */
	bool is_marker;
};

/* The expected listing, computed the slow way. */
static size_t expected(const char *prefix, const char *delimiter, struct line *out)
{
	size_t count = 0;
	for (size_t i = 0; i < KEYS; i++) {
		if (strncmp(content[i].key, prefix, strlen(prefix)) != 0)
			continue;
		const char *const found = delimiter[0] == '\0'
			? NULL
			: strstr(content[i].key + strlen(prefix), delimiter);
		const int versions = content[i].puts + content[i].ends;
		if (found == NULL) {
			for (int k = 0; k < versions; k++) {
				out[count] = (struct line){
					.number = k, .is_marker = content[i].ends && k == 0};
				strcpy(out[count++].text, content[i].key);
			}
			continue;
		}
		struct line line = {.number = -1};
		memcpy(line.text, content[i].key,
			(size_t)(found - content[i].key) + strlen(delimiter));
		if (count == 0 || out[count - 1].number != -1 ||
			strcmp(out[count - 1].text, line.text) != 0)
			out[count++] = line;
	}
	return count;
}

static const struct {
	const char *prefix;
	const char *delimiter;
} listings[] = {{"", ""}, {"", "/"}, {"", "//"}, {"a", "/"}, {"a/", "/"}, {"a/", ""}, {"c", "//"},
	{"\xff", "/"}, {"x", ""}, {"a0", ""}};

static void check_entry(const struct version_entry *entry, const struct line *line)
{
	ck_assert(span_equal_text(entry->object.key, line->text));
	ck_assert_int_ne(line->number, -1);
	ck_assert_int_eq(entry->is_latest, line->number == 0);
	ck_assert_int_eq(entry->is_marker, line->is_marker);
	ck_assert_uint_eq(entry->object.size, line->is_marker ? 0 : 5);
	ck_assert_int_eq(entry->object.etag[0] == '\0', line->is_marker);
	ck_assert_int_eq(entry->object.modified_ms, 1700000000000);
}

START_TEST(every_page_size_gives_the_same_listing)
{
	struct line lines[LINES_MAX];
	const size_t count = expected(listings[_i].prefix, listings[_i].delimiter, lines);
	for (size_t limit = 1; limit <= count + 1; limit++) {
		struct version_list_params params = {.bucket = bucket_named(span_text("bucket")),
			.prefix = span_text(listings[_i].prefix),
			.delimiter = span_text(listings[_i].delimiter),
			.limit = limit};
		struct version_list page = {.truncated = true};
		char seen[LINES_MAX][VERSION_TEXT_BYTES];
		size_t at = 0;
		while (page.truncated) {
			struct error err = {0};
			size_t entry = 0;
			size_t prefix = 0;
			ck_assert_msg(version_list(fixture.store, &params, fixture.arena, &page,
					      &err) == 0,
				"%s", err.text);
			for (; entry + prefix < page.entry_count + page.prefix_count; at++) {
				ck_assert_uint_lt(at, count);
				if (lines[at].number == -1) {
					ck_assert(span_equal_text(
						page.prefixes[prefix++], lines[at].text));
					continue;
				}
				check_entry(&page.entries[entry], &lines[at]);
				memcpy(seen[at], page.entries[entry++].version, VERSION_TEXT_BYTES);
				ck_assert(lines[at].number == 0 ||
					strcmp(seen[at], seen[at - 1]) != 0);
			}
			ck_assert_uint_eq(entry, page.entry_count);
			ck_assert(!page.truncated || entry + prefix == limit);
			/* a common prefix has no versions */
			ck_assert_int_eq(page.last_version[0] == '\0',
				at == 0 || lines[at - 1].number == -1);
			params.after_key = page.last_key;
			params.after_version = (struct version_ref){.kind = VERSION_REF_CURRENT};
			if (page.last_version[0] != '\0')
				ck_assert(version_ref_parse(
					span_text(page.last_version), &params.after_version));
		}
		ck_assert_uint_eq(at, count);
	}
}
END_TEST

/* Empties a bucket as clients do: deletes the versions of a page before it asks for the next page
 * with the markers of the first. */
START_TEST(deleting_page_by_page_empties_the_bucket)
{
	struct error err = {0};
	struct version_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .limit = (size_t)_i + 1};
	struct version_list page = {.truncated = true};
	while (page.truncated) {
		struct object_delete_item items[8] = {{.key = {0}}};
		ck_assert_int_eq(
			version_list(fixture.store, &params, fixture.arena, &page, &err), 0);
		for (size_t i = 0; i < page.entry_count; i++) {
			items[i].key = page.entries[i].object.key;
			ck_assert(version_ref_parse(
				span_text(page.entries[i].version), &items[i].ref));
		}
		ck_assert_int_eq(fixture_delete_items(
					 fixture.store, "bucket", items, page.entry_count, &err),
			0);
		params.after_key = page.last_key;
		ck_assert(version_ref_parse(span_text(page.last_version), &params.after_version));
	}
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM versions"), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), 0);
}
END_TEST

START_TEST(a_key_marker_alone_skips_its_key)
{
	struct error err = {0};
	struct version_list page;
	const struct version_list_params params = {.bucket = bucket_named(span_text("bucket")),
		.after_key = span_text("a/1"),
		.limit = 1};
	ck_assert_int_eq(version_list(fixture.store, &params, fixture.arena, &page, &err), 0);
	ck_assert(span_equal_text(page.last_key, "a/2"));
}
END_TEST

START_TEST(limits_and_refusals)
{
	struct error err = {0};
	struct version_list page;
	struct version_list_params params = {
		.bucket = bucket_named(span_text("bucket")), .limit = 0};
	ck_assert_int_eq(version_list(fixture.store, &params, fixture.arena, &page, &err), 0);
	ck_assert(!page.truncated && page.entry_count == 0);
	params.limit = 1000;
	params.bucket = bucket_named(span_text("absent"));
	ck_assert_int_eq(version_list(fixture.store, &params, fixture.arena, &page, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	struct arena *const small = arena_new(2048);
	params.bucket = bucket_named(span_text("bucket"));
	ck_assert_int_eq(version_list(fixture.store, &params, small, &page, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_MEMORY);
	arena_free(small);
}
END_TEST

/* Adds 100,000 older versions of the key "hot"; their rows lead to no bytes. */
static void add_older(void)
{
	struct error err = {0};
	ck_assert_msg(
		fixture_run(fixture.store,
			"INSERT INTO versions (id, bucket, key, state, is_marker, kind, size, etag, file_hash, modified_ms,"
			" headers, contents, checksum, has_id) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
			" SELECT randomblob(16), (SELECT id FROM buckets), CAST('hot' AS BLOB), 2, 0, 0, 1, CAST('e' AS BLOB), x'', 0, x'', 0, 0, 1 FROM n",
			&err) == 0,
		"%s", err.text);
}

static double processor_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void put_hot(struct object *out)
{
	struct error err = {0};
	struct object_put_params params = {
		.bucket = bucket_named(span_text("bucket")), .key = span_text("hot")};
	ck_assert_int_eq(fixture_put_object(fixture.store, &params, span_text("x"), out, &err), 0);
}

/* A walk over 200,000 rows would take more than 10 ms each time. */
START_TEST(a_key_with_many_versions_costs_pages_that_do_not_show_them_nothing)
{
	enum { TIMES = 50 };
	struct error err = {0};
	struct object first;
	struct object middle;
	struct object last;
	put_hot(&first);
	add_older();
	put_hot(&middle);
	add_older();
	put_hot(&last);
	const struct object_list_params objects = {
		.bucket = bucket_named(span_text("bucket")), .limit = 1000};
	struct version_list_params versions = {.bucket = bucket_named(span_text("bucket")),
		.after_key = span_text("hot"),
		.limit = 10,
		.after_version.kind = VERSION_REF_ID};
	const double begun = processor_seconds();
	for (int i = 0; i < TIMES; i++) {
		struct object_list page;
		struct version_list older;
		struct arena *const arena = arena_new(4 * 1024 * 1024);
		ck_assert_int_eq(object_list(fixture.store, &objects, arena, &page, &err), 0);
		ck_assert_uint_eq(page.entry_count, 7);
		memcpy(versions.after_version.id, middle.version, VERSION_ID_BYTES);
		ck_assert_int_eq(version_list(fixture.store, &versions, arena, &older, &err), 0);
		ck_assert(older.entry_count == 10 && span_equal_text(older.last_key, "hot"));
		memcpy(versions.after_version.id, first.version, VERSION_ID_BYTES);
		ck_assert_int_eq(version_list(fixture.store, &versions, arena, &older, &err), 0);
		ck_assert(older.entry_count == 4 && span_equal_text(older.last_key, "\xff\xff/1"));
		const struct version_list_params rolled = {
			.bucket = bucket_named(span_text("bucket")),
			.delimiter = span_text("o"),
			.limit = 1000};
		ck_assert_int_eq(version_list(fixture.store, &rolled, arena, &older, &err), 0);
		ck_assert_uint_eq(older.prefix_count, 1);
		arena_free(arena);
	}
	ck_assert_double_lt(processor_seconds() - begun, 0.004 * TIMES);
	const double removal = processor_seconds();
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "hot", NULL, &err), 0);
	ck_assert_double_lt(processor_seconds() - removal, 0.1);
}
END_TEST

static const struct {
	const char *sql;
	const char *index;
} plans[] = {
	{"EXPLAIN QUERY PLAN SELECT key, id FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 1 ORDER BY key",
		"versions_current"},
	{"EXPLAIN QUERY PLAN SELECT key, id FROM versions WHERE bucket = ?1 AND key >= ?2 AND state = 2 ORDER BY key, sequence DESC",
		"versions_older"},
	{"EXPLAIN QUERY PLAN SELECT key, id FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND sequence < ?3 ORDER BY sequence DESC",
		"versions_older (bucket=? AND key=? AND sequence<?)"},
	{"EXPLAIN QUERY PLAN SELECT sequence FROM versions WHERE bucket = (SELECT bucket FROM versions WHERE sequence = ?1)"
	 " AND key = (SELECT key FROM versions WHERE sequence = ?1) AND state = 2 ORDER BY sequence DESC LIMIT 1",
		"versions_older (bucket=? AND key=?)"},
	{"EXPLAIN QUERY PLAN SELECT sequence FROM versions WHERE bucket = ?1 AND key = ?2 AND state = 2 AND has_id = 0",
		"versions_null"},
	{"EXPLAIN QUERY PLAN SELECT sequence FROM versions WHERE bucket = ?1 AND key = ?2 AND id = ?3 AND state <> 1",
		"versions_by_id (bucket=? AND key=? AND id=?)"},
};

START_TEST(every_walk_follows_an_index_and_sorts_nothing)
{
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, plans[_i].sql, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	const struct span plan = db_column_blob(statement, 3);
	ck_assert_msg(memmem(plan.data, plan.len, plans[_i].index, strlen(plans[_i].index)) != NULL,
		"%.*s", (int)plan.len, (const char *)plan.data);
	while (db_step(statement, &err) == 1) {
		const struct span more = db_column_blob(statement, 3);
		ck_assert(memmem(more.data, more.len, "TEMP B-TREE", 11) == NULL);
	}
	db_reset(statement);
	store_reader_give(fixture.store, db);
}
END_TEST

Suite *test_version_list_suite(void);
Suite *test_version_list_suite(void)
{
	Suite *const suite = suite_create("version_list");
	TCase *const tests = tcase_create("version_list");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, every_page_size_gives_the_same_listing, 0,
		sizeof(listings) / sizeof(listings[0]));
	tcase_add_loop_test(tests, deleting_page_by_page_empties_the_bucket, 0, 8);
	tcase_add_test(tests, a_key_marker_alone_skips_its_key);
	tcase_add_test(tests, limits_and_refusals);
	tcase_add_test(tests, a_key_with_many_versions_costs_pages_that_do_not_show_them_nothing);
	tcase_add_loop_test(tests, every_walk_follows_an_index_and_sorts_nothing, 0,
		sizeof(plans) / sizeof(plans[0]));
	suite_add_tcase(suite, tests);
	return suite;
}
