#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "storage/db/db.h"
#include "storage/files/file_time.h"
#include "storage/files/tree.h"
#include "storage/objects/object_put.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void put(const char *key)
{
	struct error err = {0};
	ck_assert_msg(
		fixture_put(fixture.store, "box", key, span_text("x"), &err) == 0, "%s", err.text);
}

/* Lists everything, page by page: paths separated by spaces, directories with a '/' at their
 * end. */
static void list_all(const char *prefix, bool recursive, size_t limit, struct buffer *out)
{
	struct error err = {0};
	struct tree_params params = {.bucket = fixture_bucket("box"),
		.prefix = span_text(prefix),
		.recursive = recursive,
		.limit = limit};
	struct tree tree;
	do {
		ck_assert_msg(tree_list(fixture.store, &params, fixture.arena, &tree, &err) == 0,
			"%s", err.text);
		ck_assert_uint_le(tree.count, limit);
		for (size_t i = 0; i < tree.count; i++) {
			buffer_add_span(out, tree.entries[i].path);
			buffer_add_text(out, tree.entries[i].is_directory ? "/ " : " ");
			ck_assert_int_gt(tree.entries[i].uploaded_ms, 0);
		}
		params.after = tree.last;
	} while (tree.truncated);
	ck_assert(!buffer_failed(out));
}

static const char *const keys[] = {
	"logs",
	"logs.json",
	"logs_backup/x",
	"logs/1",
	"logs/2/a",
	"logs-old/y",
	"a",
	"a-b/1",
	"a-b-c",
	"a.txt",
	"a/x",
	"d/e/f/g",
	"\xc3\xbc/\xc3\xb6.bin",
	"50%2Fa",
	/* not shown: */
	"m/",
	"n//o",
	"/p",
	"q/../r",
	"C:/s",
	"t\\..\\u",
	"a/./v",
};
static const struct {
	const char *prefix;
	bool recursive;
	const char *paths;
} listings[] = {
	{"", true,
		"50%2Fa a a-b-c a-b/1 a.txt a/x d/e/f/g logs logs-old/y logs.json logs/1 logs/2/a logs_backup/x \xc3\xbc/\xc3\xb6.bin "},
	{"", false,
		"50%2Fa a a/ a-b/ a-b-c a.txt d/ logs logs/ logs-old/ logs.json logs_backup/ m/ n/ q/ \xc3\xbc/ "},
	{"logs", true, "logs logs/1 logs/2/a "},
	{"logs", false, "logs logs/1 logs/2/ "},
	{"logs/2", false, "logs/2/a "},
	{"logs.json", true, "logs.json "},
	{"logs.json", false, "logs.json "},
	{"log", true, ""},
	{"logs/", true, ""}, /* callers must remove the '/' */
	{"d", false, "d/e/ "},
	{"d/e", true, "d/e/f/g "},
	{"d/e/f", false, "d/e/f/g "},
	{"a", false, "a a/x "},
	{"\xc3\xbc", true, "\xc3\xbc/\xc3\xb6.bin "},
	{"50%2Fa", true, "50%2Fa "},
	{"m", true, ""},
	{"n", false, ""},
	{"q", false, ""},
	{"q/..", true, ""},
	{"nothing", false, ""},
};

START_TEST(a_prefix_is_a_file_or_a_directory_and_paths_come_in_their_order)
{
	struct buffer out;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put(keys[i]);
	for (size_t limit = 1; limit <= 20; limit += limit < 4 ? 1 : 8) {
		buffer_init(&out, 64 * 1024);
		list_all(listings[_i].prefix, listings[_i].recursive, limit, &out);
		ck_assert_str_eq(buffer_text(&out), listings[_i].paths);
		buffer_release(&out);
	}
}
END_TEST

/* Compares with a model. The names have few letters around '/', so that many begin with others. */
enum { RANDOM_KEYS = 60, RANDOM_KEY_BYTES = 8 };

struct model_entry {
	struct span path;
	bool is_directory;
};

static int compare_entries(const void *a, const void *b)
{
	const struct model_entry *const left = a;
	const struct model_entry *const right = b;
	const int order = span_compare(left->path, right->path);
	return order != 0 ? order : (int)left->is_directory - (int)right->is_directory;
}

static bool is_path(struct span key)
{
	return key.data[0] != '/' && key.data[key.len - 1] != '/' &&
		memmem(key.data, key.len, "//", 2) == NULL;
}

static void model_listing(const struct span *all, size_t count, bool recursive, struct buffer *out)
{
	struct model_entry entries[RANDOM_KEYS];
	for (size_t i = 0; i < count; i++) {
		const ptrdiff_t slash = recursive ? -1 : span_find(all[i], '/');
		entries[i] = (struct model_entry){
			slash < 0 ? all[i] : span_slice(all[i], 0, (size_t)slash), slash >= 0};
	}
	qsort(entries, count, sizeof(entries[0]), compare_entries);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && compare_entries(&entries[i], &entries[i - 1]) == 0)
			continue;
		buffer_add_span(out, entries[i].path);
		buffer_add_text(out, entries[i].is_directory ? "/ " : " ");
	}
}

START_TEST(listings_of_random_names_are_the_models)
{
	static const char letters[] = "a-./0/";
	struct span all[RANDOM_KEYS];
	size_t count = 0;
	uint8_t *const noise =
		fixture_noise((size_t)RANDOM_KEYS * RANDOM_KEY_BYTES * 2, (uint64_t)_i + 1);
	const uint8_t *at = noise;
	for (size_t i = 0; i < RANDOM_KEYS; i++) {
		char key[RANDOM_KEY_BYTES + 1] = {0};
		const size_t len = 1 + *at++ % RANDOM_KEY_BYTES;
		for (size_t k = 0; k < len; k++)
			key[k] = letters[*at++ % (sizeof(letters) - 1)];
		bool dotted = false;
		struct span rest = span_text(key);
		struct span piece;
		while (span_split(&rest, '/', &piece))
			dotted = dotted || span_equal_text(piece, ".") ||
				span_equal_text(piece, "..");
		if (!is_path(span_text(key)) || dotted)
			continue;
		put(key);
		all[count++] = arena_copy(fixture.arena, span_text(key));
	}
	for (int recursive = 0; recursive <= 1; recursive++) {
		struct buffer expected;
		buffer_init(&expected, 64 * 1024);
		model_listing(all, count, recursive == 1, &expected);
		for (size_t limit = 1; limit < 70; limit += 1 + limit / 2) {
			struct buffer out;
			buffer_init(&out, 64 * 1024);
			list_all("", recursive == 1, limit, &out);
			ck_assert_str_eq(buffer_text(&out), buffer_text(&expected));
			buffer_release(&out);
		}
		buffer_release(&expected);
	}
	free(noise);
}
END_TEST

/* The longest possible key, directories that are prefixes of it, and a key between their files that
 * belongs to none of them. */
START_TEST(a_long_name_goes_on_from_directories)
{
	enum { HALF = OBJECT_KEY_MAX_BYTES / 2 };
	char name[OBJECT_KEY_MAX_BYTES + 1];
	struct buffer out;
	memset(name, '!', sizeof(name) - 1);
	name[OBJECT_KEY_MAX_BYTES] = '\0';
	const char *const half = name + HALF;
	put(name);
	put("!/x");
	put("!!/x");
	put(arena_format(fixture.arena, "%s/y", half));
	put(arena_format(fixture.arena, "%s!0", half));
	buffer_init(&out, 64 * 1024);
	list_all("", false, 1, &out);
	ck_assert_str_eq(buffer_text(&out),
		arena_format(fixture.arena, "!/ !!/ %s/ %s %s!0 ", half, name, half));
	buffer_release(&out);
}
END_TEST

static struct tree_entry find_one(const char *path)
{
	struct error err = {0};
	const struct span paths[] = {span_text(path), span_text("absent"), span_text("")};
	const struct tree_find_params params = {
		.bucket = fixture_bucket("box"), .paths = paths, .count = 3};
	struct tree tree;
	ck_assert_msg(
		tree_find(fixture.store, &params, fixture.arena, &tree, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(tree.count, 1);
	ck_assert_uint_eq(tree.unhashed_count, 0);
	return tree.entries[0];
}

START_TEST(entries_say_hash_size_times_and_type)
{
	struct error err = {0};
	struct object object;
	const struct object_header headers[] = {
		{span_text("content-type"), span_text("text/plain")},
		{span_text(FILE_TIME_HEADER), span_text("12.5")}};
	struct object_put_params params = {.bucket = fixture_bucket("box"),
		.key = span_text("d/k"),
		.facts = {.headers = headers, .header_count = 2}};
	ck_assert_int_eq(
		fixture_put_object(fixture.store, &params, span_text("hello"), &object, &err), 0);
	put("plain");
	const struct tree_entry entry = find_one("d/k");
	ck_assert(!entry.is_directory);
	ck_assert_uint_eq(entry.size, 5);
	ck_assert(chunk_id_equal(&entry.file_hash, &object.file_hash));
	ck_assert_int_eq(entry.mtime_ms, 12500);
	ck_assert_int_eq(entry.uploaded_ms, object.modified_ms);
	ck_assert(span_equal_text(entry.content_type, "text/plain"));
	const struct tree_entry plain = find_one("plain");
	ck_assert_int_eq(plain.mtime_ms, plain.uploaded_ms);
	ck_assert_uint_eq(plain.content_type.len, 0);
}
END_TEST

static struct tree_entry first_entry(void)
{
	struct error err = {0};
	const struct tree_params params = {.bucket = fixture_bucket("box"), .limit = 10};
	struct tree tree;
	ck_assert_msg(
		tree_list(fixture.store, &params, fixture.arena, &tree, &err) == 0, "%s", err.text);
	ck_assert_uint_ge(tree.count, 1);
	return tree.entries[0];
}

START_TEST(a_directory_is_as_new_as_its_newest_file)
{
	put("d/1");
	fixture.clock.now_ms = 1700000005000;
	put("d/e/2");
	fixture.clock.now_ms = 1700000009000;
	put("f");
	const struct tree_entry entry = first_entry();
	ck_assert(entry.is_directory);
	ck_assert_int_eq(entry.uploaded_ms, 1700000005000);
}
END_TEST

/* Deletes do not make a directory newer, and neither do names that only begin with its name. */
START_TEST(a_directory_is_not_as_new_as_what_is_not_in_it)
{
	struct error err = {0};
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "box", &edit, &err), 0);
	put("d/1");
	put("d/2");
	const int64_t then = fixture.clock.now_ms;
	fixture.clock.now_ms += 5000;
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "d/2", NULL, &err), 0);
	put("d");
	put("d-e/1");
	put("d0");
	put("d0e/1");
	struct tree tree;
	const struct tree_params params = {.bucket = fixture_bucket("box"), .limit = 10};
	ck_assert_msg(
		tree_list(fixture.store, &params, fixture.arena, &tree, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(tree.count, 5); /* d d/ d-e/ d0 d0e/ */
	ck_assert(span_equal_text(tree.entries[1].path, "d") && tree.entries[1].is_directory);
	ck_assert_int_eq(tree.entries[1].uploaded_ms, then);
	ck_assert_int_eq(tree.entries[2].uploaded_ms, then + 5000);
}
END_TEST

/* A directory with more files than are looked at is as new as the bucket. */
START_TEST(a_very_large_directory_is_as_new_as_the_bucket)
{
	struct error err = {0};
	put("d/0");
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO versions (id, bucket, key, state, is_marker, kind, size, etag, file_hash, modified_ms, headers, contents, checksum)"
			" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
			" SELECT x'00', (SELECT bucket FROM versions LIMIT 1), CAST('d/' || i AS BLOB), 1, 0, 0, 0, x'', zeroblob(32), 1700000000000, x'', 0, 0 FROM n;"
			"DELETE FROM bucket_totals;"
			"INSERT INTO bucket_totals (bucket, files, bytes, updated_ms) SELECT id, 1201, 1, 1700000077000 FROM buckets",
			&err),
		0);
	const struct tree_entry entry = first_entry();
	ck_assert(entry.is_directory);
	ck_assert_int_eq(entry.uploaded_ms, 1700000077000);
}
END_TEST

START_TEST(deleted_files_are_not_shown)
{
	struct error err = {0};
	struct buffer out;
	const struct bucket_edit edit = {.sets_versioning = true, .versioning = BUCKET_VERSIONED};
	put("a/1");
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "box", &edit, &err), 0);
	put("a/2");
	put("b");
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "a/1", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "b", NULL, &err), 0);
	buffer_init(&out, 1024);
	list_all("", true, 10, &out);
	ck_assert_str_eq(buffer_text(&out), "a/2 ");
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "a/2", NULL, &err), 0);
	buffer_reset(&out);
	list_all("", false, 10, &out);
	ck_assert_str_eq(buffer_text(&out), "");
	buffer_release(&out);
}
END_TEST

START_TEST(versions_without_a_hash_are_told)
{
	struct error err = {0};
	struct tree tree;
	const struct tree_params params = {
		.bucket = fixture_bucket("box"), .recursive = true, .limit = 10};
	put("a");
	put("b");
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE versions SET file_hash = x'' WHERE key = CAST('b' AS BLOB)", &err),
		0);
	ck_assert_int_eq(tree_list(fixture.store, &params, fixture.arena, &tree, &err), 0);
	ck_assert_uint_eq(tree.count, 2);
	ck_assert_uint_eq(tree.unhashed_count, 1);
	ck_assert_int_eq(tree.unhashed[0],
		fixture_count(fixture.store,
			"SELECT sequence FROM versions WHERE key = CAST('b' AS BLOB)"));
}
END_TEST

/* Keys that are not shown count for the end of a page, which may then be empty. */
START_TEST(a_page_of_keys_that_are_not_shown_ends)
{
	struct error err = {0};
	struct tree tree;
	struct buffer out;
	const struct tree_params params = {
		.bucket = fixture_bucket("box"), .recursive = true, .limit = 1};
	put("z");
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO versions (id, bucket, key, state, is_marker, kind, size, etag, file_hash, modified_ms, headers, contents, checksum)"
			" WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10500)"
			" SELECT x'00', (SELECT bucket FROM versions LIMIT 1), CAST('a//' || i AS BLOB), 1, 0, 0, 0, x'', zeroblob(32), 1, x'', 0, 0 FROM n",
			&err),
		0);
	ck_assert_int_eq(tree_list(fixture.store, &params, fixture.arena, &tree, &err), 0);
	ck_assert_uint_eq(tree.count, 0);
	ck_assert(tree.truncated);
	buffer_init(&out, 1024);
	list_all("", true, 1, &out);
	ck_assert_str_eq(buffer_text(&out), "z ");
	buffer_release(&out);
}
END_TEST

START_TEST(the_prefix_file_can_be_left_out)
{
	struct error err = {0};
	struct tree tree;
	const struct tree_params params = {.bucket = fixture_bucket("box"),
		.prefix = span_text("a"),
		.skips_prefix_file = true,
		.limit = 10};
	put("a");
	put("a/b");
	ck_assert_int_eq(tree_list(fixture.store, &params, fixture.arena, &tree, &err), 0);
	ck_assert_uint_eq(tree.count, 1);
	ck_assert(span_equal_text(tree.entries[0].path, "a/b"));
}
END_TEST

START_TEST(another_bucket_of_the_name_is_no_bucket)
{
	struct error err = {0};
	struct tree tree;
	const struct span path = span_text("a");
	struct tree_params params = {.bucket = {span_text("box"), 999}, .limit = 10};
	struct tree_find_params find = {
		.bucket = fixture_bucket("nowhere"), .paths = &path, .count = 1};
	ck_assert_int_eq(tree_list(fixture.store, &params, fixture.arena, &tree, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(tree_find(fixture.store, &find, fixture.arena, &tree, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	find = (struct tree_find_params){
		.bucket = {span_text("box"), 999}, .paths = &path, .count = 1};
	ck_assert_int_eq(tree_find(fixture.store, &find, fixture.arena, &tree, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

START_TEST(a_key_that_is_no_path_is_not_found)
{
	struct error err = {0};
	struct tree tree;
	const struct span paths[] = {span_text("a//b"), span_text("../c"), span_text("plain")};
	const struct tree_find_params find = {
		.bucket = fixture_bucket("box"), .paths = paths, .count = 3};
	put("a//b");
	put("../c");
	put("plain");
	ck_assert_msg(
		tree_find(fixture.store, &find, fixture.arena, &tree, &err) == 0, "%s", err.text);
	ck_assert(tree.count == 1 && span_equal_text(tree.entries[0].path, "plain"));
}
END_TEST

/* Looking for a directory's newest file touches no row. */
START_TEST(directories_are_looked_through_in_one_index)
{
	static const char sql[] =
		"EXPLAIN QUERY PLAN SELECT modified_ms FROM versions WHERE bucket = ?1 AND key >= ?2 AND key < ?3 AND state = 1"
		" AND is_marker = 0 LIMIT ?4";
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, sql, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	const struct span plan = db_column_blob(statement, 3);
	ck_assert(memmem(plan.data, plan.len, "COVERING INDEX versions_listed", 30) != NULL);
	db_reset(statement);
	store_reader_give(fixture.store, db);
}
END_TEST

Suite *test_tree_suite(void);
Suite *test_tree_suite(void)
{
	Suite *const suite = suite_create("tree");
	TCase *const tests = tcase_create("tree");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_prefix_is_a_file_or_a_directory_and_paths_come_in_their_order,
		0, sizeof(listings) / sizeof(listings[0]));
	tcase_add_loop_test(tests, listings_of_random_names_are_the_models, 0, 6);
	tcase_add_test(tests, a_long_name_goes_on_from_directories);
	tcase_add_test(tests, entries_say_hash_size_times_and_type);
	tcase_add_test(tests, a_directory_is_as_new_as_its_newest_file);
	tcase_add_test(tests, a_directory_is_not_as_new_as_what_is_not_in_it);
	tcase_add_test(tests, a_very_large_directory_is_as_new_as_the_bucket);
	tcase_add_test(tests, deleted_files_are_not_shown);
	tcase_add_test(tests, versions_without_a_hash_are_told);
	tcase_add_test(tests, a_page_of_keys_that_are_not_shown_ends);
	tcase_add_test(tests, the_prefix_file_can_be_left_out);
	tcase_add_test(tests, another_bucket_of_the_name_is_no_bucket);
	tcase_add_test(tests, a_key_that_is_no_path_is_not_found);
	tcase_add_test(tests, directories_are_looked_through_in_one_index);
	suite_add_tcase(suite, tests);
	return suite;
}
