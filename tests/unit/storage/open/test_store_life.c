/* The lives of a store. No pack is made in a life that is not noted, and every acknowledged change
 * is noted, never more. Also what a start may delete. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/core/acknowledged.h"
#include "storage/core/store.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_format.h"
#include "storage/packs/set_aside.h"
#include "storage/packs/store_health.h"
#include "storage/start/catalog.h"
#include "tests/unit/power_disk.h"
#include "tests/unit/storage/store_fixture.h"

enum { SIZE = 60000, CHANGE_AT = 40 };

static struct store_fixture fixture;
static struct error err;

static void put(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(SIZE, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, SIZE), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static bool holds(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(SIZE, seed);
	bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, SIZE));
	free(bytes);
	return result;
}

static void set_up(void)
{
	fixture = (struct store_fixture){0};
	err = (struct error){0};
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put("first", 1);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

/* In the script $F is the folder. */
static int64_t run(const char *script)
{
	char command[2000];
	long long number = 0;
	snprintf(command, sizeof command, "F=%s; %s", fixture.folder, script);
	FILE *pipe = popen(command, "r");
	ck_assert(pipe != NULL);
	int got = fscanf(pipe, "%lld", &number);
	ck_assert_msg(pclose(pipe) == 0, "%s", command);
	return got == 1 ? number : -1;
}

static struct acknowledgement noted_in(const char *folder)
{
	char path[600];
	struct acknowledgement last;
	snprintf(path, sizeof path, "%s/acknowledged", folder);
	ck_assert_msg(acknowledged_read(path, &last, &err) == 0, "%s", err.text);
	return last;
}

static int64_t number_in(const char *folder, const char *sql)
{
	char path[600];
	snprintf(path, sizeof path, "%s/catalog.db", folder);
	struct db *db = db_open(path, DB_READ, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	int64_t number = -1;
	ck_assert_msg(db_find_i64(db, sql, &number, &err) == 1, "%s", err.text);
	db_close(db);
	return number;
}

static const char SQL_LIFE[] = "SELECT life FROM store";
static const char SQL_CHANGE[] = "SELECT change FROM sums";

/* The highest life in the headers of packs. */
static uint32_t newest_pack_in(const char *folder)
{
	char command[700];
	char path[4096];
	uint32_t newest = 0;
	snprintf(command, sizeof command, "find %s/packs -name '*.pack' 2>/dev/null", folder);
	FILE *pipe = popen(command, "r");
	while (fscanf(pipe, "%4095s", path) == 1) {
		uint8_t header[PACK_HEADER_BYTES];
		struct pack_origin origin;
		int fd = open(path, O_RDONLY);
		if (read(fd, header, sizeof header) == sizeof header &&
			pack_format_read_origin(header, &origin))
			newest = origin.life > newest ? origin.life : newest;
		close(fd);
	}
	pclose(pipe);
	return newest;
}

START_TEST(no_pack_is_of_a_life_that_the_note_does_not_know)
{
	size_t count;
	bool has_packs = false;
	store_fixture_stop(&fixture);
	struct power_disk *disk = power_disk_new(fixture.folder);
	fixture.files = power_disk_files(disk);
	power_disk_cut_each(disk, (enum power_cut)_i);
	store_fixture_start(&fixture);
	put("second", 2);
	store_fixture_stop(&fixture);
	power_disk_cut_now(disk, "nothing more");
	const struct power_taken *taken = power_disk_taken(disk, &count);
	for (size_t i = 0; i < count; i++) {
		uint64_t noted = noted_in(taken[i].folder).store.life;
		uint32_t packs = newest_pack_in(taken[i].folder);
		ck_assert_msg(
			packs <= noted && noted <= (uint64_t)number_in(taken[i].folder, SQL_LIFE),
			"cut before \"%s\"", taken[i].line);
		has_packs |= packs == 2;
	}
	ck_assert(has_packs);
	ck_assert_uint_eq(noted_in(taken[count - 1].folder).store.life, 2);
	power_disk_free(disk);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

static _Atomic unsigned notes;
static _Atomic bool is_ahead;

static ssize_t look_at_write(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	static const char name[] = "/acknowledged";
	char link[64];
	char path[4096] = {0};
	const struct file_ops *files = ops->state;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t got = readlink(link, path, sizeof path - 1);
	if (got > (ssize_t)sizeof name && strcmp(path + got - (sizeof name - 1), name) == 0) {
		notes++;
		if ((int64_t)little_endian_get((const uint8_t *)data + CHANGE_AT, 8) >
			number_in(fixture.folder, SQL_CHANGE))
			is_ahead = true;
	}
	return files->pwrite(files, fd, data, len, offset);
}

START_TEST(what_is_confirmed_is_noted_and_never_more)
{
	struct file_ops files = *file_system();
	files.state = (void *)file_system();
	files.pwrite = look_at_write;
	store_fixture_stop(&fixture);
	fixture.files = &files;
	store_fixture_start(&fixture);
	for (int i = 0; i < 3; i++) {
		char name[32];
		unsigned before = notes;
		snprintf(name, sizeof name, "bucket-%d", i);
		ck_assert_int_eq(fixture_create_bucket(fixture.store, name, "main", &err), 0);
		struct acknowledgement last = noted_in(fixture.folder);
		ck_assert_uint_gt(notes, before);
		ck_assert_int_eq(last.change, fixture_count(fixture.store, SQL_CHANGE));
		ck_assert(acknowledged_is_exact(&last));
		ck_assert_uint_gt(last.log_frames, 0);
	}
	unsigned before = notes;
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"PRAGMA defer_foreign_keys=ON; INSERT INTO versions (bucket) VALUES (12345)",
			&err),
		-1);
	ck_assert_uint_le(notes, before + 1);
	ck_assert(!is_ahead);
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

static void meddle_in(const struct store_fixture *with, const char *sql, bool keeps_sums)
{
	char *path = store_fixture_path(with, "catalog.db");
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	if (keeps_sums)
		ck_assert_int_eq(db_keep_sums(db, &err), 0);
	ck_assert_msg(
		db_run_script(db, "PRAGMA foreign_keys=OFF", &err) == 0 && db_begin(db, &err) == 0,
		"%s", err.text);
	ck_assert_msg(
		db_run_script(db, sql, &err) == 0 && db_commit(db, &err) == 0, "%s", err.text);
	db_close(db);
	free(path);
}

static void meddle(const char *sql, bool keeps_sums)
{
	meddle_in(&fixture, sql, keeps_sums);
}

/* Fixtures begin with copies of one catalog. This makes one a store of its own. */
static void open_another_store(struct store_fixture *other)
{
	store_fixture_open(other);
	store_fixture_stop(other);
	meddle_in(other, "UPDATE store SET id = randomblob(16)", true);
	char *note = store_fixture_path(other, "acknowledged");
	ck_assert_int_eq(unlink(note), 0);
	free(note);
	store_fixture_start(other);
}

/* A pack that the last life made and no row names. It is garbage only if the table's sum proves
 * that no row is lost, and the note proves that no later change is missing. */
static const struct {
	bool is_row_lost, is_note_copied, is_note_lost;
} without_row[] = {
	{false, false, false}, {true, false, false}, {false, true, false}, {false, false, true}};

START_TEST(a_row_that_a_disk_lost_costs_no_pack)
{
	bool is_lost = without_row[_i].is_row_lost, is_copied = without_row[_i].is_note_copied;
	store_fixture_stop(&fixture);
	meddle("DELETE FROM segments; DELETE FROM versions; DELETE FROM packs; DELETE FROM bucket_totals",
		!is_lost);
	fixture.is_damaged = is_lost;
	if (is_copied)
		run("cp $F/acknowledged $F/copy && mv $F/copy $F/acknowledged");
	if (without_row[_i].is_note_lost)
		run("rm $F/acknowledged");
	int64_t packs = run("find $F/packs -name '*.pack' | wc -l");
	ck_assert_int_gt(packs, 0);
	store_fixture_start(&fixture);
	ck_assert_int_eq(run("find $F/packs -name '*.pack' | wc -l"), 0);
	ck_assert_int_eq(run("find $F/set-aside -name '*.pack' 2>/dev/null | wc -l"),
		is_lost || is_copied || without_row[_i].is_note_lost ? packs : 0);
}
END_TEST

/* Packs that were added, or lost while others are there, do not make the catalog wrong: the rest is
 * served. */
START_TEST(a_pack_of_another_store_or_a_missing_one_stops_no_start)
{
	struct store_fixture other = {0};
	char script[1200];
	open_another_store(&other);
	snprintf(script, sizeof script,
		"rm $F/packs/*/*; for f in $(find %s/packs -name '*.pack'); do d=$(basename $(dirname $f));"
		" mkdir -p $F/packs/$d; cp $f $F/packs/$d/; done",
		other.folder);
	ck_assert_int_eq(fixture_create_bucket(other.store, "bucket", "main", &err), 0);
	uint8_t *bytes = fixture_noise(SIZE, 5);
	ck_assert_int_eq(fixture_put(other.store, "bucket", "key", span_of(bytes, SIZE), &err), 0);
	store_fixture_reopen(&fixture); /* the next one gets a pack of its own */
	put("second", 2);
	store_fixture_stop(&fixture);
	char *all = unit_scratch_copy(fixture.folder);
	run(script);
	snprintf(script, sizeof script,
		"p=$(ls -t %s/packs/*/*.pack | head -n 1); d=$(basename $(dirname $p)); cp -a %s/packs/$d/* $F/packs/$d/",
		all, all);
	run(script);
	store_fixture_start(&fixture);
	ck_assert_int_eq(holds("first", 1) + holds("second", 2), 1);
	ck_assert_int_eq(run("find $F/set-aside -name '*.pack' 2>/dev/null | wc -l"), 1);
	free(bytes);
	store_fixture_close(&other);
	unit_scratch_remove(all);
}
END_TEST

START_TEST(tails_behind_what_is_committed_stay)
{
	if (_i == 0)
		store_fixture_reopen(&fixture); /* seals them */
	char *killed = unit_scratch_copy(fixture.folder);
	store_fixture_stop(&fixture);
	unit_scratch_remove(fixture.folder);
	fixture.folder = killed;
	int64_t before = run(
		"for f in $(find $F/packs -name '*.pack'); do head -c 1000 /dev/urandom >> $f; done;"
		" cat $(find $F/packs -name '*.pack') | wc -c");
	store_fixture_start(&fixture);
	ck_assert(holds("first", 1));
	ck_assert_int_eq(run("cat $(find $F/packs -name '*.pack') | wc -c"), before);
}
END_TEST

static int refuse_note(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	const struct file_ops *files = ops->state;
	size_t len = strlen(path);
	if (len > 12 && strcmp(path + len - 12, "acknowledged") == 0 &&
		(flags & O_ACCMODE) != O_RDONLY) {
		errno = EROFS;
		return -1;
	}
	return files->open(files, path, flags, mode);
}

static void take_catalog(const char *from)
{
	char script[1200];
	snprintf(script, sizeof script,
		"rm -f $F/catalog.db*; cp -a %s/catalog.db %s/acknowledged $F/; cp -a %s/catalog.db-wal $F/ 2>/dev/null || true",
		from, from, from);
	run(script);
}

START_TEST(a_disk_that_takes_no_writes_is_only_read)
{
	struct file_ops files = *file_system();
	files.state = (void *)file_system();
	files.open = refuse_note;
	char *killed = unit_scratch_copy(fixture.folder);
	store_fixture_stop(&fixture);
	unit_scratch_remove(fixture.folder);
	fixture.folder = killed;
	int64_t before = run(
		"cat $F/catalog.db $F/catalog.db-wal $F/acknowledged $(find $F/packs -type f) | cksum");
	fixture.files = &files;
	fixture.is_damaged = true; /* the test does not wait until it is found sound */
	store_fixture_start(&fixture);
	ck_assert(holds("first", 1));
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "another", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_READ_ONLY);
	ck_assert(!store_health_may_delete(store_health(fixture.store)));
	store_fixture_stop(&fixture);
	ck_assert_int_eq(
		run("cat $F/catalog.db $F/catalog.db-wal $F/acknowledged $(find $F/packs -type f) | cksum"),
		before);
	fixture.files = NULL;
	fixture.is_damaged = false;
	store_fixture_start(&fixture);
	ck_assert(holds("first", 1));
}
END_TEST

static int forbid_note(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	int fd = refuse_note(ops, path, flags, mode);
	if (fd < 0 && errno == EROFS)
		errno = EACCES;
	return fd;
}

/* For example a file of another user: the operator must correct that, and the store is not served
 * read-only for it. */
START_TEST(a_note_that_cannot_be_opened_is_no_disk_without_writes)
{
	struct file_ops files = *file_system();
	files.state = (void *)file_system();
	files.open = forbid_note;
	store_fixture_stop(&fixture);
	const struct store_options options = {.folder = fixture.folder, .files = &files};
	ck_assert_ptr_null(store_open(&options, &err));
	ck_assert_int_eq(err.os_errno, EACCES);
	store_fixture_start(&fixture);
	ck_assert(holds("first", 1));
}
END_TEST

START_TEST(a_damaged_log_is_refused_on_a_disk_that_takes_no_writes)
{
	struct file_ops files = *file_system();
	files.state = (void *)file_system();
	files.open = refuse_note;
	store_fixture_reopen(&fixture); /* moves the log into the catalog */
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket-2", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket-3", "main", &err), 0);
	char *killed = unit_scratch_copy(fixture.folder);
	store_fixture_stop(&fixture);
	unit_scratch_remove(fixture.folder);
	fixture.folder = killed;
	run("yes | head -c 700 | dd of=$F/catalog.db-wal bs=1 seek=556 conv=notrunc 2>/dev/null");
	const struct store_options refuse = {.folder = fixture.folder, .files = &files};
	fixture.store = store_open(&refuse, &err);
	ck_assert_ptr_null(fixture.store);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	const struct store_options read = {
		.folder = fixture.folder, .files = &files, .after_damage = AFTER_DAMAGE_READ_ONLY};
	fixture.store = store_open(&read, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	ck_assert(holds("first", 1));
	store_close(fixture.store);
	fixture.store = NULL;
}
END_TEST

/* The catalog as it was earlier in the last life, without a log. It does not name a pack that this
 * life made, and that pack is not garbage. */
START_TEST(what_an_older_catalog_of_the_same_life_does_not_name_is_set_aside)
{
	char path[700];
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "another", "main", &err), 0);
	char *older = unit_scratch_copy(fixture.folder);
	snprintf(path, sizeof path, "%s/catalog.db", older);
	db_close(db_open(path, DB_WRITE, &err)); /* the log moves into the catalog */
	put("second", 2);
	store_fixture_stop(&fixture);
	snprintf(path, sizeof path, "rm -f $F/catalog.db*; cp -a %s/catalog.db $F/", older);
	run(path);
	run("mv $F/journal $F/journal-away");
	const struct store_options options = {.folder = fixture.folder,
		.pack_max_bytes = 1024 * 1024,
		.after_damage = AFTER_DAMAGE_SERVE};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	ck_assert(holds("first", 1));
	ck_assert_int_eq(run("find $F/set-aside -name '*.pack' | wc -l"), 1);
	unit_scratch_remove(older);
}
END_TEST

START_TEST(no_life_is_begun_twice)
{
	char *older = unit_scratch_copy(fixture.folder);
	store_fixture_reopen(&fixture);
	store_fixture_reopen(&fixture); /* life 3, which made no pack */
	ck_assert_uint_eq(store_life(fixture.store), 3);
	store_fixture_stop(&fixture);
	char note[1200];
	snprintf(note, sizeof note, "rm -f $F/catalog.db*; cp -a %s/catalog.db* $F/", older);
	run(note);
	run("mv $F/journal $F/journal-away");
	const struct store_options options = {.folder = fixture.folder,
		.pack_max_bytes = 1024 * 1024,
		.after_damage = AFTER_DAMAGE_SERVE};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	ck_assert_uint_eq(store_life(fixture.store), 4);
	unit_scratch_remove(older);
}
END_TEST

/* The start is refused after the copy was made. */
START_TEST(a_copy_goes_with_a_start_that_is_refused)
{
	struct file_ops files = *file_system();
	char catalog[600];
	char copy[64];
	files.state = (void *)file_system();
	files.open = refuse_note;
	store_fixture_stop(&fixture);
	run("rm $F/catalog.db*");
	snprintf(catalog, sizeof catalog, "%s/catalog.db", fixture.folder);
	db_close(catalog_open(catalog, &err)); /* of another store */
	const struct store_options options = {.folder = fixture.folder, .files = &files};
	ck_assert_ptr_null(store_open(&options, &err));
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	snprintf(copy, sizeof copy, "deltabucket-catalog-%016llx",
		(unsigned long long)xxh3_64(span_text(catalog)));
	char find[700];
	snprintf(find, sizeof find,
		"ls -d /dev/shm/%s /tmp/%s ${TMPDIR:-/tmp}/%s 2>/dev/null | wc -l", copy, copy,
		copy);
	ck_assert_int_eq(run(find), 0);
	fixture.store = NULL;
}
END_TEST

/* Serves from an older catalog, then from the right one again. */
START_TEST(what_is_named_again_comes_back)
{
	char *older = unit_scratch_copy(fixture.folder);
	store_fixture_reopen(&fixture);
	put("second", 2);
	store_fixture_stop(&fixture);
	char *right = unit_scratch_copy(fixture.folder);
	take_catalog(older);
	/* now only the packs show that the catalog is older */
	run("rm $F/acknowledged; mv $F/journal $F/journal-away");
	const struct store_options options = {.folder = fixture.folder,
		.pack_max_bytes = 1024 * 1024,
		.after_damage = AFTER_DAMAGE_SERVE};
	struct store *store = store_open(&options, &err);
	ck_assert_msg(store != NULL, "%s", err.text);
	store_close(store);
	ck_assert_int_eq(run("find $F/set-aside -name '*.pack' | wc -l"), 1);
	take_catalog(right);
	store_fixture_start(&fixture);
	ck_assert(holds("first", 1) && holds("second", 2));
	ck_assert_int_eq(run("find $F/set-aside -name '*.pack' | wc -l"), 0);
	unit_scratch_remove(older);
	unit_scratch_remove(right);
}
END_TEST

Suite *test_store_life_suite(void);
Suite *test_store_life_suite(void)
{
	Suite *suite = suite_create("store_life");
	TCase *tests = tcase_create("store_life");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, no_pack_is_of_a_life_that_the_note_does_not_know, 0, POWER_CUTS);
	tcase_add_test(tests, what_is_confirmed_is_noted_and_never_more);
	tcase_add_loop_test(tests, a_row_that_a_disk_lost_costs_no_pack, 0,
		sizeof without_row / sizeof *without_row);
	tcase_add_test(tests, a_pack_of_another_store_or_a_missing_one_stops_no_start);
	tcase_add_loop_test(tests, tails_behind_what_is_committed_stay, 0, 2);
	tcase_add_test(tests, a_disk_that_takes_no_writes_is_only_read);
	tcase_add_test(tests, a_note_that_cannot_be_opened_is_no_disk_without_writes);
	tcase_add_test(tests, a_damaged_log_is_refused_on_a_disk_that_takes_no_writes);
	tcase_add_test(tests, what_an_older_catalog_of_the_same_life_does_not_name_is_set_aside);
	tcase_add_test(tests, no_life_is_begun_twice);
	tcase_add_test(tests, a_copy_goes_with_a_start_that_is_refused);
	tcase_add_test(tests, what_is_named_again_comes_back);
	suite_add_tcase(suite, tests);
	return suite;
}
