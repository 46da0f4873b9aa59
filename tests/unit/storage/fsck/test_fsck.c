/* fsck finds each kind of damage under its own name, says which key or step it touches, and finds
 * nothing else. A repair leaves what cannot be repaired, and a second check finds only that. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/fsck/fsck.h"
#include "storage/fsck/fsck_repair.h"
#include "storage/packs/pack_format.h"
#include "storage/start/catalog.h"
#include "tests/unit/storage/step_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"

enum { LARGE = 300000, MAX_FOUND = 64, TEXT = 2000, PAGE = 4096 };

/* Made once for all tests: the folder of a store that was closed, and of one that was killed. */
static char *closed;
static char *killed;
static char *other; /* of another store, with a catalog of this one that is older than `closed` */
static struct error err;

struct found {
	size_t count;
	enum finding_kind kinds[MAX_FOUND];
	char texts[MAX_FOUND][TEXT]; /* subject, and what it touches */
};

static void put(struct store *store, const char *key, size_t size, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(size, seed);
	ck_assert_msg(
		fixture_put(store, "bucket", key, span_of(bytes, size), &err) == 0, "%s", err.text);
	free(bytes);
}

static void copy(struct store_fixture *fixture, const char *from, const char *to)
{
	struct object source;
	struct object made;
	ck_assert_int_eq(fixture_find(fixture, "bucket", from, &source, &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket("bucket"), .key = span_text(to)};
	ck_assert_int_eq(fixture_copy(fixture->store, &params, &made, &err), 0);
}

static void put_derived(struct store_fixture *fixture)
{
	struct derived_checkpoint base;
	struct derived_checkpoint next;
	ck_assert_int_eq(fixture_create_bucket(fixture->store, "b", "main", &err), 0);
	derived_checkpoint_make(&base, 3000, 0);
	derived_checkpoint_make(&next, 3000, 1);
	const struct object object = derived_fixture_put(fixture, "b", "base", &base);
	(void)derived_fixture_put_swapped(fixture, "b", "next", &base, &object, &next);
	derived_checkpoint_release(&base);
	derived_checkpoint_release(&next);
}

static void run(const char *folder, const char *script)
{
	char command[3200];
	snprintf(command, sizeof(command), "cd %s && %s", folder, script);
	ck_assert_msg(system(command) == 0, "%s", command);
}

static void run_sql(const char *folder, const char *sql)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	struct db *db = catalog_open(path, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	ck_assert_int_eq(db_begin(db, &err), 0);
	ck_assert_msg(db_run_script(db, sql, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_commit(db, &err), 0);
	db_close(db);
}

static void make_other(const char *folder)
{
	struct store_fixture fixture = {0};
	char script[1200];
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "other", "main", &err), 0);
	store_fixture_stop(&fixture);
	/* all stores of the tests have the id of their seed */
	run_sql(fixture.folder, "UPDATE store SET id = randomblob(16)");
	run(fixture.folder, "rm -r acknowledged journal");
	store_fixture_start(&fixture);
	store_fixture_stop(&fixture);
	other = unit_scratch_copy(fixture.folder);
	store_fixture_start(&fixture);
	store_fixture_close(&fixture);
	snprintf(script, sizeof(script), "cp %s/catalog.db .", folder);
	run(other, script);
}

static void make_all(void)
{
	struct step_fixture fixture;
	const struct xorb_sample sample = {.seed = 5, .chunks = 3, .chunk_bytes = 20000};
	bool inserted;
	step_fixture_open(&fixture);
	struct store_fixture *store = &fixture.store;
	step_fixture_publish(&fixture, 0, STEP_WITH_ANCHOR);
	store_fixture_stop(store); /* packs are sealed, and a snapshot is made */
	make_other(store->folder);
	store_fixture_start(store);
	step_fixture_publish(&fixture, 1, STEP_WITH_DELTA);
	put(store->store, "large", LARGE, 1);
	put(store->store, "small", 100, 2);
	put(store->store, "neighbour", LARGE, 3);
	copy(store, "large", "copy");
	put_derived(store);
	ck_assert_int_eq(xorb_sample_put(store->store, &sample, &inserted, &err), 0);
	killed = unit_scratch_copy(store->folder);
	store_fixture_stop(store);
	closed = unit_scratch_copy(store->folder);
	store_fixture_start(store);
	step_fixture_close(&fixture);
}

static void remove_all(void)
{
	unit_scratch_remove(closed);
	unit_scratch_remove(killed);
	unit_scratch_remove(other);
}

static void take(void *owner, const struct finding *finding)
{
	struct found *found = owner;
	size_t listed, count;
	ck_assert_uint_lt(found->count, MAX_FOUND);
	char *text = found->texts[found->count];
	found->kinds[found->count++] = finding->kind;
	size_t len = (size_t)snprintf(text, TEXT, "%s: %s", finding->subject, finding->detail);
	if (finding->reach == NULL)
		return;
	const struct reach_key *keys = reach_keys(finding->reach, &listed, &count);
	for (size_t i = 0; i < listed; i++)
		len += (size_t)snprintf(text + len, TEXT - len, " [%.*s]", (int)keys[i].key.len,
			(const char *)keys[i].key.data);
	const struct reach_step *steps = reach_steps(finding->reach, &listed, &count);
	for (size_t i = 0; i < listed; i++)
		len += (size_t)snprintf(
			text + len, TEXT - len, " [step %lld]", (long long)steps[i].step);
}

static struct found check(const char *folder, bool is_quick)
{
	struct found found = {.count = 0};
	struct fsck_report report;
	const struct fsck_params params = {.folder = folder,
		.files = file_system(),
		.is_quick = is_quick,
		.found = take,
		.owner = &found};
	err = (struct error){0};
	ck_assert_msg(fsck_run(&params, &report, &err) == 0, "%s", err.text);
	return found;
}

static const char *told(const struct found *found)
{
	static char text[MAX_FOUND * TEXT];
	size_t len = 0;
	text[0] = '\0';
	for (size_t i = 0; i < found->count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s\n",
			finding_kind_name(found->kinds[i]), found->texts[i]);
	return text;
}

static size_t count_of(const struct found *found, enum finding_severity severity)
{
	size_t count = 0;
	for (size_t i = 0; i < found->count; i++)
		count += finding_severity_of(found->kinds[i]) == severity;
	return count;
}

static bool has(const struct found *found, enum finding_kind kind, const char *text)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->kinds[i] == kind && strstr(found->texts[i], text) != NULL)
			return true;
	return false;
}

static void expect_clean(const char *folder, const char *what)
{
	const struct found found = check(folder, false);
	ck_assert_msg(count_of(&found, FINDING_FAULT) + count_of(&found, FINDING_DAMAGE) == 0,
		"%s: %s", what, told(&found));
}

/* The repair gets what one check has found. */
static void repair(const char *folder)
{
	struct fsck_report report;
	struct fsck_repair *repair = fsck_repair_new(folder, file_system(), NULL);
	const struct fsck_params params = {.folder = folder,
		.files = file_system(),
		.found = (void (*)(void *, const struct finding *))fsck_repair_add,
		.owner = repair};
	err = (struct error){0};
	ck_assert_msg(fsck_run(&params, &report, &err) == 0, "%s", err.text);
	ck_assert_msg(fsck_repair_run(repair, &err) == 0, "%s", err.text);
	fsck_repair_free(repair);
}

static int64_t ask(const char *folder, const char *sql)
{
	char path[600];
	int64_t number = 0;
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	struct db *db = db_open(path, DB_READ, &err);
	ck_assert(db != NULL);
	ck_assert_msg(db_find_i64(db, sql, &number, &err) == 1, "%s", err.text);
	db_close(db);
	return number;
}

START_TEST(a_sound_store_is_clean)
{
	const struct found found = check(_i == 0 ? closed : killed, false);
	for (size_t i = 0; i < found.count; i++)
		ck_assert_msg(
			finding_severity_of(found.kinds[i]) == FINDING_NOTE, "%s", told(&found));
}
END_TEST

/* Rows that are wrong although their pages and sums are right. The journal cannot know of these
 * changes, so it is a finding too. */
static const struct row_case {
	const char *sql;
	enum finding_kind kind;
	const char *text; /* in the finding */
	bool is_repaired;
} row_cases[] = {
	{"UPDATE packs SET named = named + 1 WHERE number = (SELECT max(number) FROM packs)",
		FINDING_COUNT, "pack ", true},
	{"UPDATE bucket_totals SET files = files + 1", FINDING_COUNT, "bucket ", true},
	{"DELETE FROM bucket_totals", FINDING_COUNT, "bucket ", true},
	{"UPDATE part_sets SET holders = holders + 1", FINDING_COUNT, "[copy]", true},
	{"UPDATE part_sets SET is_dead = 1", FINDING_COUNT, "[copy]", true},
	{"DELETE FROM part_sets", FINDING_COUNT, "[large]", true},
	{"INSERT INTO removals SELECT coalesce(file, id) FROM packs LIMIT 1", FINDING_REMOVAL,
		"pack ", true},
	{"UPDATE xorbs SET first = 30000", FINDING_XORB, "xorbs of pack", true},
	{"UPDATE versions SET etag = x'00' WHERE key = CAST('large' AS BLOB)", FINDING_ROW,
		"[large]", false},
	{"DELETE FROM inline_bytes WHERE version = (SELECT sequence FROM versions WHERE key ="
	 " CAST('small' AS BLOB))",
		FINDING_ROW, "[small]", false},
	{"UPDATE segments SET first = first + 1 WHERE part_set = (SELECT -sequence FROM versions WHERE"
	 " key = CAST('neighbour' AS BLOB)) AND start = 0",
		FINDING_ROW, "[neighbour]", false},
	{"DELETE FROM derivations", FINDING_LINK, "[next]", false},
	{"DELETE FROM versions WHERE sequence IN (SELECT source FROM derivation_sources)",
		FINDING_LINK, "[next]", false},
	{"UPDATE step_objects SET version = 999999", FINDING_LINK, "[step 1]", false},
	{"DELETE FROM step_manifests", FINDING_LINK, "[step 0]", false},
	{"UPDATE step_manifests SET manifest = x'7b7d'", FINDING_STEP, "[step 1]", false},
	{"UPDATE steps SET digest = x'00000000000000000000000000000000' WHERE step = 0",
		FINDING_STEP, "[step 1]", false},
	{"UPDATE versions SET size = size + 1, checksum = checksum WHERE sequence = (SELECT version"
	 " FROM step_objects ORDER BY step DESC LIMIT 1)",
		FINDING_STEP, "[step 1]", false},
	{"INSERT INTO step_changes (step, elements, changed, counts) VALUES (99, 0, 0, x'')",
		FINDING_LINK, "step row 99", false},
	{"UPDATE runs SET head = 99", FINDING_LINK, "newest step", false},
	{"UPDATE buckets SET access = access + 1 WHERE name = CAST('b' AS BLOB)", FINDING_RIGHTS,
		"bucket b", false},
	{"DELETE FROM packs", FINDING_LINK, "[large]", false},
};
enum { ROW_CASES = sizeof(row_cases) / sizeof(row_cases[0]) };

START_TEST(a_wrong_row_is_found_and_says_what_it_touches)
{
	const struct row_case *row_case = &row_cases[_i];
	char *folder = unit_scratch_copy(closed);
	run_sql(folder, row_case->sql);
	const struct found found = check(folder, true);
	ck_assert_msg(has(&found, row_case->kind, row_case->text), "%s:\n%s", row_case->sql,
		told(&found));
	if (row_case->is_repaired) {
		repair(folder);
		expect_clean(folder, row_case->sql);
	}
	unit_scratch_remove(folder);
}
END_TEST

/* Damage to files. The scripts find the pack of the object "large" in $PACK and $INDEX. */
static const struct file_case {
	const char *script;
	enum finding_kind kind;
	const char *text;
	enum finding_kind left; /* after a repair; FINDING_KINDS: nothing */
} file_cases[] = {
	{"flip $PACK 5000", FINDING_CHUNK, "[large]", FINDING_CHUNK},
	{"flip $PACK 5000", FINDING_CHUNK, "[copy]", FINDING_CHUNK},
	{"flip $PACK $(($(stat -c %s $PACK) - 20))", FINDING_PACK_COPY, "pack ", FINDING_KINDS},
	{"flip $PACK 10", FINDING_PACK_COPY, "pack ", FINDING_KINDS},
	{"flip $INDEX 100", FINDING_PACK_INDEX, "pack ", FINDING_KINDS},
	{"rm $INDEX", FINDING_KINDS, "", FINDING_KINDS},
	{"truncate -s 9000 $PACK", FINDING_PACK, "[large]", FINDING_PACK},
	{"printf '\\031' | dd of=$PACK bs=1 seek=8 conv=notrunc status=none", FINDING_PACK_COPY,
		"wrong checksum", FINDING_KINDS},
	{"rm -r journal && cp -r $OTHER/journal .", FINDING_JOURNAL, "another store",
		FINDING_KINDS},
	{"cp $OTHER/catalog.db . && rm acknowledged", FINDING_ACKNOWLEDGED, "older", FINDING_KINDS},
	{"rm $PACK", FINDING_PACK, "[large]", FINDING_PACK},
	{"mkdir -p set-aside && mv $PACK set-aside/", FINDING_PACK_ASIDE, "pack ", FINDING_KINDS},
	{"cp $PACK $(dirname $PACK)/$(basename $PACK | cut -c1-2)"
	 "000000000000000000000000000000.pack",
		FINDING_STRAY, "packs/", FINDING_KINDS},
	{"flip chunks.db 9000; flip chunks.db 9001; flip chunks.db 9002", FINDING_CHUNK_INDEX,
		"chunks.db", FINDING_KINDS},
	{"for f in journal/*.snapshot; do flip $f 110; done", FINDING_SNAPSHOT, ".snapshot",
		FINDING_KINDS},
	{"for f in journal/*.snapshot; do flip $f 20; done", FINDING_JOURNAL, "no snapshot",
		FINDING_KINDS},
	{"rm -r journal", FINDING_JOURNAL, "missing or empty", FINDING_KINDS},
	{"rm journal/*", FINDING_JOURNAL, "missing or empty", FINDING_KINDS},
	{"f=$(ls journal/*.log | tail -1); truncate -s 200 $f", FINDING_JOURNAL, "leads to change",
		FINDING_KINDS},
};
enum { FILE_CASES = sizeof(file_cases) / sizeof(file_cases[0]) };

static const char functions[] =
	"set -e; flip() { byte=$(od -An -tu1 -j$2 -N1 $1); printf \"\\\\$(printf %03o $((byte ^ 4)))\" |"
	" dd of=$1 bs=1 seek=$2 conv=notrunc status=none; }; ";

static void damage(const char *folder, const char *script)
{
	char text[2400];
	char path[600];
	char pack[PACK_ID_TEXT_BYTES];
	uint8_t id[PACK_ID_BYTES];
	struct span found = {0};
	struct arena *arena = arena_new(4096);
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	struct db *db = db_open(path, DB_READ, &err);
	ck_assert(db != NULL);
	ck_assert_int_eq(
		db_find_blob(db,
			"SELECT p.id FROM versions v JOIN segments s ON s.part_set = -v.sequence JOIN packs p"
			" ON p.number = s.pack WHERE v.key = CAST('large' AS BLOB)",
			arena, &found, &err),
		1);
	memcpy(id, found.data, sizeof(id));
	pack_id_format((const struct pack_id *)id, pack);
	db_close(db);
	arena_free(arena);
	snprintf(text, sizeof(text),
		"%s OTHER=%s; PACK=packs/%.2s/%s.pack; INDEX=packs/%.2s/%s.index; %s", functions,
		other, pack, pack, pack, pack, script);
	run(folder, text);
}

START_TEST(damage_to_a_file_is_found_and_repaired)
{
	const struct file_case *file_case = &file_cases[_i];
	char *folder = unit_scratch_copy(closed);
	damage(folder, file_case->script);
	const struct found found = check(folder, false);
	ck_assert_msg(
		file_case->kind == FINDING_KINDS || has(&found, file_case->kind, file_case->text),
		"%s:\n%s", file_case->script, told(&found));
	if (file_case->kind == FINDING_ACKNOWLEDGED) { /* no start, so no repair */
		unit_scratch_remove(folder);
		return;
	}
	repair(folder);
	if (file_case->left == FINDING_KINDS) {
		expect_clean(folder, file_case->script);
	} else {
		const struct found left = check(folder, false);
		ck_assert_msg(has(&left, file_case->left, file_case->text), "%s:\n%s",
			file_case->script, told(&left));
		ck_assert_uint_eq(count_of(&left, FINDING_FAULT), 0);
	}
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_damaged_chunk_names_only_what_it_touches)
{
	char *folder = unit_scratch_copy(closed);
	damage(folder, "flip $PACK 5000");
	const struct found found = check(folder, false);
	ck_assert_uint_eq(count_of(&found, FINDING_DAMAGE), 1);
	ck_assert(!has(&found, FINDING_CHUNK, "[neighbour]"));
	repair(folder);
	ck_assert_int_eq(ask(folder, "SELECT count(*) FROM damaged_chunks"), 1);
	const struct found quick = check(folder, true);
	ck_assert_msg(has(&quick, FINDING_CHUNK, "found damaged before"), "%s", told(&quick));
	ck_assert(has(&quick, FINDING_CHUNK, "[large]"));
	unit_scratch_remove(folder);
}
END_TEST

static void write_at(const char *folder, off_t offset, const void *bytes, size_t len)
{
	char path[600];
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	const int fd = open(path, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, len, offset), (ssize_t)len);
	close(fd);
}

static int64_t root_page(const char *folder, const char *name)
{
	char sql[200];
	snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", name);
	return ask(folder, sql);
}

START_TEST(damaged_pages_of_the_catalog_are_found)
{
	static const uint8_t garbage[64] = {7, 7, 7};
	static const struct {
		const char *name;
		enum finding_kind kind;
		bool is_repaired;
	} cases[] = {{"versions_listed", FINDING_INDEX, true}, {"steps", FINDING_TABLE, false}};
	char *folder = unit_scratch_copy(closed);
	const off_t offset = (root_page(folder, cases[_i].name) - 1) * PAGE + 2000;
	write_at(folder, offset, garbage, sizeof(garbage));
	const struct found found = check(folder, true);
	ck_assert_msg(has(&found, cases[_i].kind, cases[_i].name), "%s", told(&found));
	if (cases[_i].is_repaired) {
		repair(folder);
		expect_clean(folder, cases[_i].name);
	}
	unit_scratch_remove(folder);
}
END_TEST

/* What a finding touches is asked of tables that may be damaged themselves. */
START_TEST(damaged_tables_do_not_end_the_check)
{
	static const uint8_t garbage[PAGE] = {7, 7, 7};
	static const char *const tables[] = {"derivations", "derivation_sources", "step_objects",
		"uploads", "segments", "buckets", "versions", "keys", "xorbs"};
	char *folder = unit_scratch_copy(closed);
	damage(folder, "flip $PACK 5000");
	const off_t first = (root_page(folder, tables[_i]) - 1) * PAGE;
	const off_t second = (root_page(folder, "derivations") - 1) * PAGE;
	write_at(folder, first, garbage, sizeof(garbage));
	write_at(folder, second, garbage, sizeof(garbage));
	const struct found found = check(folder, false);
	ck_assert_msg(has(&found, FINDING_TABLE, tables[_i]) ||
			has(&found, FINDING_STRUCTURE, tables[_i]),
		"%s", told(&found));
	ck_assert_msg(_i == 4 || has(&found, FINDING_CHUNK, "chunk "), "%s", told(&found));
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_flipped_bit_of_a_page_is_told_and_goes)
{
	char *folder = unit_scratch_copy(closed);
	char script[600];
	snprintf(script, sizeof(script), "%s flip catalog.db %lld; cp catalog.db before", functions,
		(long long)((root_page(folder, "steps") - 1) * PAGE + 4000));
	run(folder, script);
	const struct found found = check(folder, true);
	ck_assert_msg(has(&found, FINDING_PAGES, "flipped bit"), "%s", told(&found));
	run(folder, "cmp catalog.db before");
	repair(folder);
	run(folder, "! cmp -s catalog.db before");
	expect_clean(folder, "a flipped bit that was put right");
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(the_log_is_read_before_the_catalog)
{
	char *folder = unit_scratch_copy(killed);
	char script[600];
	snprintf(script, sizeof(script), "%s flip catalog.db-wal 5000", functions);
	run(folder, script);
	const struct found mended = check(folder, true);
	ck_assert_msg(has(&mended, FINDING_LOG_END, "catalog.db-wal"), "%s", told(&mended));
	ck_assert_uint_eq(count_of(&mended, FINDING_DAMAGE), 0);
	repair(folder);
	expect_clean(folder, "the log");
	unit_scratch_remove(folder);
	folder = unit_scratch_copy(killed);
	snprintf(script, sizeof(script),
		"%s flip catalog.db-wal 5000; flip catalog.db-wal 5001; flip catalog.db-wal 5007",
		functions);
	run(folder, script);
	const struct found damaged = check(folder, true);
	ck_assert_msg(has(&damaged, FINDING_LOG, "catalog.db-wal"), "%s", told(&damaged));
	unit_scratch_remove(folder);
}
END_TEST

START_TEST(a_check_changes_nothing)
{
	char *folder = unit_scratch_copy(_i == 0 ? closed : killed);
	char *before = unit_scratch_copy(folder);
	char script[600];
	(void)check(folder, false);
	snprintf(script, sizeof(script),
		"rm -f catalog.db-shm chunks.db-shm %s/catalog.db-shm %s/chunks.db-shm;"
		" find . %s -size 0 -name '*-wal' -delete; diff -r . %s",
		before, before, before, before);
	run(folder, script);
	unit_scratch_remove(folder);
	unit_scratch_remove(before);
}
END_TEST

START_TEST(what_cannot_be_checked_is_an_error)
{
	struct found found = {.count = 0};
	struct fsck_report report;
	char *folder = unit_scratch_copy(closed);
	const struct fsck_params params = {
		.folder = folder, .files = file_system(), .found = take, .owner = &found};
	run_sql(folder, "PRAGMA user_version = 3");
	ck_assert_int_eq(fsck_run(&params, &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	run(folder, "rm catalog.db*");
	ck_assert_int_eq(fsck_run(&params, &report, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	unit_scratch_remove(folder);
}
END_TEST

/* Beside an exact acknowledgement a start takes files without a row for garbage. */
START_TEST(a_repair_removes_no_pack_that_lost_its_row)
{
	struct store_fixture fixture = {0};
	struct error ignored;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put(fixture.store, "large", LARGE, 1);
	store_fixture_stop(&fixture);
	run_sql(fixture.folder, "DELETE FROM packs");
	const struct found found = check(fixture.folder, true);
	ck_assert_msg(has(&found, FINDING_LINK, "[large]"), "%s", told(&found));
	struct fsck_repair *repair = fsck_repair_new(fixture.folder, file_system(), NULL);
	(void)fsck_repair_run(repair, &ignored);
	fsck_repair_free(repair);
	run(fixture.folder, "test $(find packs set-aside -name '*.pack' | wc -l) = 1");
	fixture.is_damaged = true;
	store_fixture_start(&fixture);
	store_fixture_close(&fixture);
}
END_TEST

Suite *test_fsck_suite(void);
Suite *test_fsck_suite(void)
{
	Suite *suite = suite_create("fsck");
	TCase *tests = tcase_create("all");
	tcase_set_timeout(tests, 300);
	tcase_add_unchecked_fixture(tests, make_all, remove_all);
	tcase_add_loop_test(tests, a_sound_store_is_clean, 0, 2);
	tcase_add_loop_test(tests, a_wrong_row_is_found_and_says_what_it_touches, 0, ROW_CASES);
	tcase_add_loop_test(tests, damage_to_a_file_is_found_and_repaired, 0, FILE_CASES);
	tcase_add_test(tests, a_damaged_chunk_names_only_what_it_touches);
	tcase_add_loop_test(tests, damaged_pages_of_the_catalog_are_found, 0, 2);
	tcase_add_loop_test(tests, damaged_tables_do_not_end_the_check, 0, 9);
	tcase_add_test(tests, a_flipped_bit_of_a_page_is_told_and_goes);
	tcase_add_test(tests, the_log_is_read_before_the_catalog);
	tcase_add_loop_test(tests, a_check_changes_nothing, 0, 2);
	tcase_add_test(tests, what_cannot_be_checked_is_an_error);
	tcase_add_test(tests, a_repair_removes_no_pack_that_lost_its_row);
	suite_add_tcase(suite, tests);
	return suite;
}
