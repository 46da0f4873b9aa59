#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "storage/core/committer.h"
#include "storage/db/db.h"
#include "storage/objects/object_list.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "storage/start/catalog.h"
#include "tests/unit/storage/store_fixture.h"

enum { DISARMED = 1 << 30 };

static struct store_fixture fixture;
static struct file_faults faults;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	file_faults_init(&faults, 0, DISARMED, EIO);
	fixture.files = &faults.ops;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* Opens the store again over files that fail in this way once they are armed. Helpers read the
 * table meanwhile, so only the countdown may change. */
static void reopen_over_faults(int kinds, int failure, bool sticky)
{
	store_close(fixture.store);
	file_faults_init(&faults, kinds, DISARMED, failure);
	faults.sticky = sticky;
	const struct store_options options = {
		.folder = fixture.folder, .files = &faults.ops, .pack_max_bytes = 1024 * 1024};
	struct error err = {0};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
}

static void arm(int countdown)
{
	__atomic_store_n(&faults.countdown, countdown, __ATOMIC_SEQ_CST);
}

/* The n-th write or sync of a put fails: the put reports it, earlier content stays, and the next
 * put and the next start work. */
static const struct {
	size_t size;
	int kinds;
	int failure;
} failing[] = {
	{50000, FILE_FAULT_WRITE, ENOSPC},
	{50000, FILE_FAULT_SYNC, EIO},
	{50000, FILE_FAULT_OPEN, EMFILE},
	{2500000, FILE_FAULT_WRITE, ENOSPC},
	{2500000, FILE_FAULT_SYNC, EIO},
	{2500000, FILE_FAULT_RENAME, EIO},
	{2500000, FILE_FAULT_OPEN, EMFILE},
	{500, FILE_FAULT_WRITE, ENOSPC},
};

START_TEST(every_failing_write_of_a_put_is_reported_and_harmless)
{
	uint8_t *const before = fixture_noise(300000, 1);
	uint8_t *const bytes = fixture_noise(2500000, 2);
	struct error err = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "before", span_of(before, 300000), &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "small", span_of(before, 30000), &err), 0);
	reopen_over_faults(failing[_i].kinds, failing[_i].failure, false);
	int refused = 0;
	int spared = 0;
	for (int n = 0; n < 60 && spared < 3; n++) {
		bytes[n] ^= 0x55; /* new chunks each time */
		arm(n);
		const int result = fixture_put(
			fixture.store, "bucket", "new", span_of(bytes, failing[_i].size), &err);
		arm(DISARMED);
		if (result == 0)
			ck_assert(fixture_holds(
				&fixture, "bucket", "new", span_of(bytes, failing[_i].size)));
		else
			ck_assert_int_eq(err.kind,
				failing[_i].failure == ENOSPC ? ERROR_NO_SPACE : ERROR_IO);
		refused += result != 0;
		spared = result == 0 ? spared + 1 : 0;
		ck_assert(fixture_holds(&fixture, "bucket", "before", span_of(before, 300000)));
		ck_assert(fixture_holds(&fixture, "bucket", "small", span_of(before, 30000)));
		ck_assert_int_eq(
			fixture_put(fixture.store, "bucket", "after", span_of(bytes, 40000), &err),
			0);
		ck_assert(fixture_holds(&fixture, "bucket", "after", span_of(bytes, 40000)));
	}
	if (failing[_i].size > INLINE_MAX_BYTES && failing[_i].kinds != FILE_FAULT_RENAME &&
		failing[_i].kinds != FILE_FAULT_OPEN)
		ck_assert_int_gt(refused, 0);
	ck_assert_int_eq(spared, 3);
	store_fixture_reopen(&fixture);
	ck_assert(fixture_holds(&fixture, "bucket", "before", span_of(before, 300000)));
	ck_assert(fixture_holds(&fixture, "bucket", "after", span_of(bytes, 40000)));
	free(bytes);
	free(before);
}
END_TEST

static int apply_padding(struct change *change, struct db *db, struct error *err)
{
	(void)change;
	return db_run_script(
		db, "INSERT INTO run_schemas (run, schema) VALUES (-1, zeroblob(6000000))", err);
}

/* The disk space of the packs folder, in KiB. */
static int64_t kib_on_disk(void)
{
	char command[1200];
	long long kib = -1;
	snprintf(command, sizeof(command), "du -sk %s/packs", fixture.folder);
	FILE *const pipe = popen(command, "r");
	ck_assert(pipe != NULL && fscanf(pipe, "%lld", &kib) == 1);
	pclose(pipe);
	return kib;
}

/* The log cannot grow while packs can, so COMMIT breaks off. Only the next start finds out whether
 * it happened, so the bytes stay until then. Here it did not happen. */
START_TEST(an_upload_in_doubt_keeps_its_bytes_until_the_next_start)
{
	const size_t len = _i == 0 ? 100000 : 2000000;
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(90000, 3);
	uint8_t *const unsure = fixture_noise(len, 4);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "key", span_of(bytes, 90000), &err), 0);
	/* its snapshot keeps the log from beginning again */
	struct db *const reader = store_reader_take(fixture.store, &err);
	ck_assert_int_eq(db_snapshot_begin(reader, &err), 0);
	int64_t versions = 0;
	ck_assert_int_eq(db_find_i64(reader, "SELECT COUNT(*) FROM versions", &versions, &err), 1);
	struct change padding = {.apply = apply_padding};
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &padding, &err) == 0, "%s", err.text);
	struct rlimit before;
	getrlimit(RLIMIT_FSIZE, &before);
	const struct rlimit tight = {.rlim_cur = 4000000, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &tight);
	const int64_t kib = kib_on_disk();
	const int result = fixture_put(fixture.store, "bucket", "key", span_of(unsure, len), &err);
	setrlimit(RLIMIT_FSIZE, &before);
	ck_assert_int_eq(result, -1);
	ck_assert_msg(err.kind == ERROR_IO, "%s", err.text);
	db_snapshot_end(reader);
	store_reader_give(fixture.store, reader);
	ck_assert_int_ge(kib_on_disk(), kib + (int64_t)(len / 1024) - 10);
	store_fixture_reopen(&fixture);
	/* Bytes after the committed length of the shared pack stay until it is compacted. */
	ck_assert_int_lt(kib_on_disk(), kib + (_i == 0 ? 150 : 50));
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_of(bytes, 90000)));
	free(unsure);
	free(bytes);
}
END_TEST

START_TEST(deleting_works_on_a_full_disk)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(50000, 1);
	ck_assert_int_eq(fixture_put(fixture.store, "bucket", "k", span_of(bytes, 50000), &err), 0);
	reopen_over_faults(FILE_FAULT_WRITE | FILE_FAULT_SYNC, ENOSPC, true);
	arm(0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "k2", span_of(bytes + 5, 40000), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "k", NULL, &err), 0);
	arm(DISARMED);
	free(bytes);
}
END_TEST

/* As after a crash: another store opens a copy of the folder of an open store. */
START_TEST(what_was_acknowledged_survives_without_a_close)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(2000000, 6);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "large", span_of(bytes, 2000000), &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "middle", span_of(bytes + 100, 100000), &err),
		0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "inline", span_of(bytes, 100), &err), 0);
	char command[1200];
	char *const copy = store_fixture_path(&fixture, "copy");
	snprintf(command, sizeof(command),
		"mkdir %s && cd %s && cp -r catalog.db* chunks.db* packs copy/", copy,
		fixture.folder);
	ck_assert_int_eq(system(command), 0);
	struct store_fixture other = {.folder = copy, .arena = fixture.arena};
	const struct store_options options = {.folder = copy};
	other.store = store_open(&options, &err);
	ck_assert_msg(other.store != NULL, "%s", err.text);
	ck_assert(fixture_holds(&other, "bucket", "large", span_of(bytes, 2000000)));
	ck_assert(fixture_holds(&other, "bucket", "middle", span_of(bytes + 100, 100000)));
	ck_assert(fixture_holds(&other, "bucket", "inline", span_of(bytes, 100)));
	ck_assert_int_eq(
		fixture_put(other.store, "bucket", "more", span_of(bytes, 1500000), &err), 0);
	ck_assert(fixture_holds(&other, "bucket", "more", span_of(bytes, 1500000)));
	store_close(other.store);
	free(copy);
	free(bytes);
}
END_TEST

START_TEST(a_lost_chunk_index_is_made_anew)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(3000000, 6);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "first", span_of(bytes, 3000000), &err), 0);
	store_close(fixture.store);
	char *const path = store_fixture_path(&fixture, "chunks.db");
	ck_assert_int_eq(unlink(path), 0);
	const struct store_options options = {.folder = fixture.folder};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	const int64_t packs = fixture_count(fixture.store, "SELECT SUM(length) FROM packs");
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "again", span_of(bytes, 3000000), &err), 0);
	ck_assert(fixture_holds(&fixture, "bucket", "again", span_of(bytes, 3000000)));
	/* the content was found in the packs */
	ck_assert_int_lt(
		fixture_count(fixture.store, "SELECT SUM(length) FROM packs"), packs + 1000000);
	free(path);
	free(bytes);
}
END_TEST

START_TEST(packs_without_a_catalog_are_not_touched)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(50000, 6);
	ck_assert_int_eq(
		fixture_put(fixture.store, "bucket", "key", span_of(bytes, 50000), &err), 0);
	store_close(fixture.store);
	char *const path = store_fixture_path(&fixture, "catalog.db");
	char *const away = store_fixture_path(&fixture, "away.db");
	ck_assert_int_eq(rename(path, away), 0);
	const struct store_options options = {.folder = fixture.folder};
	ck_assert_ptr_null(store_open(&options, &err));
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(rename(away, path), 0);
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	ck_assert(fixture_holds(&fixture, "bucket", "key", span_of(bytes, 50000)));
	free(away);
	free(path);
	free(bytes);
}
END_TEST

START_TEST(a_newer_catalog_is_refused)
{
	struct error err = {0};
	store_close(fixture.store);
	char *const path = store_fixture_path(&fixture, "catalog.db");
	struct db *const db = db_open(path, DB_WRITE, &err);
	int version;
	int application;
	ck_assert_int_eq(db_get_version(db, &version, &application, &err), 0);
	ck_assert_int_eq(db_set_version(db, 1000, CATALOG_APPLICATION, &err), 0);
	const struct store_options options = {.folder = fixture.folder};
	ck_assert_ptr_null(store_open(&options, &err));
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert_int_eq(db_set_version(db, version, CATALOG_APPLICATION, &err), 0);
	db_close(db);
	fixture.store = store_open(&options, &err);
	ck_assert_ptr_nonnull(fixture.store);
	free(path);
}
END_TEST

START_TEST(memory_packs_serve)
{
	struct error err = {0};
	char *const folder = store_fixture_path(&fixture, "memory");
	const struct store_options options = {.folder = folder, .memory_packs = true};
	struct store_fixture other = {
		.folder = folder, .arena = fixture.arena, .store = store_open(&options, &err)};
	ck_assert_msg(other.store != NULL, "%s", err.text);
	uint8_t *const bytes = fixture_noise(400000, 6);
	ck_assert_int_eq(fixture_create_bucket(other.store, "abc", "main", &err), 0);
	ck_assert_int_eq(fixture_put(other.store, "abc", "k", span_of(bytes, 400000), &err), 0);
	ck_assert(fixture_holds(&other, "abc", "k", span_of(bytes, 400000)));
	store_close(other.store);
	free(folder);
	free(bytes);
}
END_TEST

enum { WORKERS = 4, ROUNDS = 25 };

struct worker {
	pthread_t thread;
	unsigned number;
	const char *fault; /* a failure, reported on the test's own thread */
};

/* Puts, overwrites, reads and deletes its own keys, and one that all workers share. */
static void *work(void *argument)
{
	struct worker *const worker = argument;
	for (unsigned round = 0; round < ROUNDS && worker->fault == NULL; round++) {
		struct error err = {0};
		char key[32];
		struct object object;
		struct object_list page;
		const struct object_ref shared = {
			.bucket = fixture_bucket("bucket"), .key = span_text("shared")};
		struct arena *const arena = arena_new(4 * 1024 * 1024);
		struct store_fixture own = {.store = fixture.store, .arena = arena};
		const size_t len = (size_t[]){500, 20000, 400000}[round % 3];
		uint8_t *const bytes = fixture_noise(len, worker->number * 1000 + round / 2);
		snprintf(key, sizeof(key), "key-%u-%u", worker->number, round % 5);
		if (fixture_put(fixture.store, "bucket", key, span_of(bytes, len), &err) != 0 ||
			fixture_put(fixture.store, "bucket", "shared", span_of(bytes, len), &err) !=
				0)
			worker->fault = "put";
		else if (!fixture_holds(&own, "bucket", key, span_of(bytes, len)))
			worker->fault = "get";
		else if (object_find(fixture.store, &shared, arena, &object, &err) != 0)
			worker->fault = "shared";
		const struct object_list_params params = {.bucket = fixture_bucket("bucket"),
			.prefix = span_text("key-"),
			.limit = 100};
		if (object_list(fixture.store, &params, arena, &page, &err) != 0 ||
			page.entry_count == 0)
			worker->fault = "list";
		if (round % 5 == 4 && fixture_delete(fixture.store, "bucket", key, NULL, &err) != 0)
			worker->fault = "delete";
		free(bytes);
		arena_free(arena);
	}
	return NULL;
}

START_TEST(many_at_once)
{
	struct worker workers[WORKERS] = {{.number = 0}};
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].number = i;
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		ck_assert_msg(workers[i].fault == NULL, "worker %u: %s", i, workers[i].fault);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state = 1"),
		WORKERS * 4 + 1);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE state <> 1"), 0);
	store_fixture_reopen(&fixture);
}
END_TEST

Suite *test_store_suite(void);
Suite *test_store_suite(void)
{
	Suite *const suite = suite_create("store");
	TCase *const tests = tcase_create("store");
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, every_failing_write_of_a_put_is_reported_and_harmless, 0,
		sizeof(failing) / sizeof(failing[0]));
	tcase_add_loop_test(tests, an_upload_in_doubt_keeps_its_bytes_until_the_next_start, 0, 2);
	tcase_add_test(tests, deleting_works_on_a_full_disk);
	tcase_add_test(tests, what_was_acknowledged_survives_without_a_close);
	tcase_add_test(tests, a_lost_chunk_index_is_made_anew);
	tcase_add_test(tests, packs_without_a_catalog_are_not_touched);
	tcase_add_test(tests, a_newer_catalog_is_refused);
	tcase_add_test(tests, memory_packs_serve);
	tcase_add_test(tests, many_at_once);
	suite_add_tcase(suite, tests);
	return suite;
}
