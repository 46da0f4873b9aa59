/* A start with a catalog that does not belong to the packs, or has lost acknowledged changes. A
 * refused start leaves each file as it was. A start that the operator lets go on deletes nothing.
 * Also the beginning of a new life. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/open/store_open.h"
#include "storage/packs/set_aside.h"
#include "storage/packs/store_health.h"
#include "storage/start/catalog.h"
#include "storage/start/migration_list.h"
#include "storage/start/store_start.h"
#include "tests/unit/power_disk.h"
#include "tests/unit/storage/store_fixture.h"

enum { SIZE = 60000, LIVES = 2 };

/* Made once for all tests: a closed store of two lives, and copies of its folder as a kill would
 * have left it, in the first life and in the second one. */
static char *closed;
static char *first_life;
static char *second_life;
static char *second_life_closed; /* the same after the log was moved into the catalog */

static char *folder; /* of the running test */
static struct store *store;
static struct error err;

static void put(struct store_fixture *fixture, const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(SIZE, seed);
	ck_assert_msg(fixture_put(fixture->store, "bucket", key, span_of(bytes, SIZE), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static void close_catalog_of(const char *in)
{
	char path[600];
	snprintf(path, sizeof path, "%s/catalog.db", in);
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	db_close(db);
}

static void make_all(void)
{
	struct store_fixture fixture = {0};
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	put(&fixture, "first", 1);
	first_life = unit_scratch_copy(fixture.folder);
	put(&fixture, "second", 2);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket-2", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket-3", "main", &err), 0);
	second_life = unit_scratch_copy(fixture.folder);
	second_life_closed = unit_scratch_copy(fixture.folder);
	close_catalog_of(second_life_closed);
	put(&fixture, "third", 3);
	store_fixture_stop(&fixture);
	closed = unit_scratch_copy(fixture.folder);
	store_fixture_close(&fixture);
}

static void remove_all(void)
{
	unit_scratch_remove(closed);
	unit_scratch_remove(first_life);
	unit_scratch_remove(second_life);
	unit_scratch_remove(second_life_closed);
}

static void set_up(void)
{
	folder = unit_scratch_copy(closed);
	store = NULL;
	err = (struct error){0};
}

static void tear_down(void)
{
	store_close(store);
	unit_scratch_remove(folder);
}

static int open_with(enum after_damage after, const struct file_ops *files)
{
	const struct store_options options = {.folder = folder,
		.files = files,
		.pack_max_bytes = 1024 * 1024,
		.after_damage = after};
	err = (struct error){0};
	store = store_open(&options, &err);
	return store != NULL ? 0 : -1;
}

static int open_as(enum after_damage after)
{
	return open_with(after, NULL);
}

static void close_it(void)
{
	store_close(store);
	store = NULL;
}

static bool holds(const char *key, uint64_t seed)
{
	struct store_fixture fixture = {
		.folder = folder, .store = store, .arena = arena_new(1 << 24)};
	uint8_t *bytes = fixture_noise(SIZE, seed);
	bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, SIZE));
	free(bytes);
	arena_free(fixture.arena);
	return result;
}

/* In the script $F is the folder, and $O is `other`. */
static void run(const char *script, const char *other)
{
	char command[4000];
	snprintf(command, sizeof command, "F=%s; O=%s; %s", folder, other, script);
	ck_assert_msg(system(command) == 0, "%s", command);
}

/* Names and checksums of all files, without the chunk index, which a start may make again, and
 * without an empty log. free() it. */
static char *look_at_all(void)
{
	char command[2000];
	char *text = memory_new(64 * 1024);
	snprintf(command, sizeof command,
		"cd %s && rm -f catalog.db-shm && find . -name catalog.db-wal -size 0 -delete && find . ! -name 'chunks.db*' |"
		" LC_ALL=C sort && find . -type f ! -name 'chunks.db*' -exec md5sum {} + | LC_ALL=C sort -k 2",
		folder);
	FILE *pipe = popen(command, "r");
	ck_assert(pipe != NULL);
	ck_assert_uint_gt(fread(text, 1, 64 * 1024 - 1, pipe), 0);
	pclose(pipe);
	return text;
}

/* Puts the catalog of another folder here, with its log. */
static void put_catalog(const char *from)
{
	run("rm -f $F/catalog.db*", "");
	run("cp -a $O/catalog.db $F/", from);
	char log[600];
	snprintf(log, sizeof log, "%s/catalog.db-wal", from);
	if (file_exists(log))
		run("cp -a $O/catalog.db-wal $F/", from);
}

static void drop_note(void)
{
	run("rm $F/acknowledged", "");
}

static void empty_it(void)
{
	run("rm -f $F/catalog.db-*; : > $F/catalog.db", "");
}

static void lose_it(void)
{
	run("rm -f $F/catalog.db*", "");
}

static void lose_it_with_its_note(void)
{
	lose_it();
	drop_note();
}

/* Loses the catalog of a store without packs: all are lost, or it never had any. */
static void lose_it_and_the_packs(void)
{
	lose_it();
	run("rm -r $F/packs/*", "");
}

/* A start that went on with another catalog has set them aside. */
static void lose_it_while_the_packs_are_set_aside(void)
{
	lose_it_with_its_note();
	run("mkdir $F/set-aside && mv $(find $F/packs -type f) $F/set-aside", "");
}

/* SQLite would remove a log without its database. */
static void lose_all_but_the_log(void)
{
	lose_it_with_its_note();
	run("rm -r $F/packs/*; cp -a $O/catalog.db-wal $F/", second_life);
}

static void put_new_one(void)
{
	char *made = unit_scratch_make();
	char path[600];
	snprintf(path, sizeof path, "%s/catalog.db", made);
	struct db *db = catalog_open(path, &err);
	db_close(db);
	put_catalog(made);
	unit_scratch_remove(made);
}

static void put_new_one_without_note(void)
{
	put_new_one();
	drop_note();
}

static void put_first_life(void)
{
	put_catalog(first_life);
}

static void put_first_life_without_note(void)
{
	put_catalog(first_life);
	drop_note();
}

static void put_second_life(void)
{
	put_catalog(second_life_closed);
}

static void put_second_life_with_its_log(void)
{
	put_catalog(second_life);
}

/* Gives the packs names that no row has: an id ends in other digits, whatever they were. */
static void rename_packs(void)
{
	run("cd $F/packs && for f in */*; do s=${f%.*}; e=${s#\"${s%???}\"};"
	    " mv $f ${s%???}$(echo $e | tr 0-9a-f 1-9a-f0).${f##*.}; done",
		"");
	drop_note();
}

static void empty_the_packs(void)
{
	run("rm -r $F/packs/*", "");
}

static void empty_the_packs_of_a_killed_store(void)
{
	run("rm -r $F/*; cp -a $O/. $F/; rm -r $F/packs/*", first_life);
}

static bool takes_packs_away(void (*spoil)(void))
{
	return spoil == rename_packs || spoil == empty_the_packs ||
		spoil == empty_the_packs_of_a_killed_store;
}

static void put_old_one(const char *row)
{
	char path[600];
	lose_it();
	snprintf(path, sizeof path, "%s/catalog.db", folder);
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	for (size_t i = 0; i < 4; i++)
		ck_assert_msg(db_run_script(db, migration_list[i].sql, &err) == 0, "%s", err.text);
	ck_assert_int_eq(db_set_version(db, 4, CATALOG_APPLICATION, &err), 0);
	ck_assert_msg(db_run_script(db, row, &err) == 0, "%s", err.text);
	db_close(db);
}

static const char row_of_missing[] =
	"INSERT INTO packs (id, state, length, chunks) VALUES (x'ab000000000000000000000000000000', 1, 500, 1)";

static void put_old_one_that_lacks_a_pack(void)
{
	put_old_one(row_of_missing);
	run("rm -r $F/packs/* $F/acknowledged", "");
}

static void put_old_one_beside_newer_packs(void)
{
	put_old_one("SELECT 1");
	drop_note();
}

static void put_old_one_into_a_store_with_an_id(void)
{
	put_old_one("SELECT 1");
	run("rm -r $F/packs/*", "");
}

static void damage_log(void)
{
	static const char junk[700] = {1, 2, 3, 4, 5};
	char path[600];
	put_catalog(second_life);
	run("cp -a $O/acknowledged $F/", second_life);
	snprintf(path, sizeof path, "%s/catalog.db-wal", folder);
	int fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, junk, sizeof junk, 32 + 24 + 500), sizeof junk);
	close(fd);
}

/* The damage to the store, words of the refusal, and whether another policy lets it start. */
static const struct {
	void (*spoil)(void);
	const char *says;
	bool can_go_on;
	bool reads_first; /* if it goes on, the first object is there */
} damages[] = {
	{empty_it, "is empty", false, false},
	{lose_it, "is missing", false, false},
	{lose_it_with_its_note, "is missing", false, false},
	{lose_it_and_the_packs, "is missing", false, false},
	{lose_it_while_the_packs_are_set_aside, "is missing", false, false},
	{lose_all_but_the_log, "is missing", false, false},
	{put_new_one, "another store", false, false},
	{put_new_one_without_note, "different stores", false, false},
	{put_old_one_beside_newer_packs, "from before stores had ids", false, false},
	{put_old_one_into_a_store_with_an_id, "from before stores had ids", false, false},
	{put_old_one_that_lacks_a_pack, "names a pack that is not there", false, false},
	{put_first_life,
		"is older than this store: it was last used at start 1, and the newest start was number 2",
		true, true},
	{put_second_life, "changes are lost", true, true},
	{put_second_life_with_its_log, "acknowledged changes after frame", true, true},
	{put_first_life_without_note, "is older than the packs beside it", true, true},
	{rename_packs, "none of them is here; ", true, false},
	{empty_the_packs, "none of them is here. Put packs/ back", true, false},
	{empty_the_packs_of_a_killed_store, "none of them is here. Put packs/ back", true, false},
	{damage_log, "acknowledged changes after frame", true, true},
};
enum { DAMAGES = sizeof damages / sizeof *damages };

/* The advice for the operator is the end of the message, which is never cut off. */
static void expect_advice(void)
{
	static const char LAST[] = " or read what this one knows with --after-damage read-only.";
	size_t len = strlen(err.text);
	ck_assert_msg(len > strlen(LAST) && strcmp(err.text + len - strlen(LAST), LAST) == 0, "%s",
		err.text);
}

/* Gives the folder of the test a path that is too long for a message. */
static void move_deep(void)
{
	char *deep = memory_new(600);
	snprintf(deep, 600, "%s/%0200d/%0120d", folder, 0, 0);
	run("mkdir -p $O && find $F -mindepth 1 -maxdepth 1 ! -name '0*' -exec mv {} $O \\;", deep);
	memcpy(folder, deep, strlen(deep) + 1); /* unit_scratch_copy gives it room */
	free(deep);
}

static void expect_refused(enum after_damage after, const char *says)
{
	char *before = look_at_all();
	ck_assert_int_eq(open_as(after), -1);
	char *now = look_at_all();
	ck_assert_msg(strstr(err.text, says) != NULL, "%s", err.text);
	ck_assert_str_eq(now, before);
	free(before);
	free(now);
}

START_TEST(what_is_wrong_is_refused_and_nothing_changes)
{
	damages[_i].spoil();
	expect_refused(AFTER_DAMAGE_REFUSE, damages[_i].says);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	put_catalog(closed);
	run("cp -a $O/acknowledged $F/", closed);
	run("rm -rf $F/packs; cp -a $O/packs $F/", closed); /* some tests took them away */
	ck_assert_msg(open_as(AFTER_DAMAGE_REFUSE) == 0, "%s", err.text);
	ck_assert(holds("first", 1) && holds("second", 2) && holds("third", 3));
}
END_TEST

START_TEST(a_refusal_ends_with_what_can_be_done_however_long_the_path)
{
	if (!damages[_i].can_go_on)
		return;
	char *shallow = memory_copy_text(folder);
	damages[_i].spoil();
	ck_assert_int_eq(open_as(AFTER_DAMAGE_REFUSE), -1);
	expect_advice();
	move_deep();
	ck_assert_int_eq(open_as(AFTER_DAMAGE_REFUSE), -1);
	ck_assert_ptr_nonnull(strstr(err.text, " [...] "));
	expect_advice();
	ck_assert(takes_packs_away(damages[_i].spoil) ||
		strstr(err.text, "deltabucketd rebuild --replace; or ") != NULL);
	memcpy(folder, shallow, strlen(shallow) + 1);
	free(shallow);
}
END_TEST

START_TEST(what_cannot_be_right_is_refused_whatever_is_asked_for)
{
	if (damages[_i].can_go_on || damages[_i].spoil == put_old_one_that_lacks_a_pack)
		return;
	damages[_i].spoil();
	expect_refused(AFTER_DAMAGE_READ_ONLY, damages[_i].says);
	expect_refused(AFTER_DAMAGE_SERVE, damages[_i].says);
}
END_TEST

/* An old catalog gets an id only if the operator accepts it as the right one. Reading it is not
 * that. */
START_TEST(an_old_catalog_that_lacks_a_pack_is_not_read_only_either)
{
	put_old_one_that_lacks_a_pack();
	expect_refused(AFTER_DAMAGE_READ_ONLY, "names a pack that is not there");
	expect_refused(AFTER_DAMAGE_SERVE, "deltabucketd rebuild --replace makes a catalog");
	run("mv $F/journal $F/journal-away", "");
	ck_assert_msg(open_as(AFTER_DAMAGE_SERVE) == 0, "%s", err.text);
}
END_TEST

/* It works on a copy of the catalog, which is removed with the process. */
START_TEST(a_store_that_is_only_read_changes_nothing)
{
	if (!damages[_i].can_go_on)
		return;
	damages[_i].spoil();
	char *before = look_at_all();
	ck_assert_msg(open_as(AFTER_DAMAGE_READ_ONLY) == 0, "%s", err.text);
	char *copy = memory_copy_text(store_catalog_path(store));
	ck_assert_msg(strncmp(copy, folder, strlen(folder)) != 0 && file_exists(copy), "%s", copy);
	ck_assert_int_eq(holds("first", 1), damages[_i].reads_first);
	ck_assert_int_eq(fixture_create_bucket(store, "another", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_READ_ONLY);
	ck_assert(!store_health_may_delete(store_health(store)));
	ck_assert(store_health_wait(store_health(store), 60 * 1000));
	close_it();
	char *now = look_at_all();
	ck_assert_str_eq(now, before);
	ck_assert_msg(!file_exists(copy), "%s", copy);
	free(before);
	free(now);
	free(copy);
}
END_TEST

static void expect_all_packs(void)
{
	run("cd $O/packs && for f in */*.pack; do cmp -s $f $F/packs/$f || cmp -s $f $F/set-aside/${f#*/} || exit 1; done",
		closed);
}

/* It goes on once the journal, which has what this catalog lost, is out of its way. */
START_TEST(a_start_that_goes_on_sets_aside_what_it_does_not_name)
{
	if (!damages[_i].can_go_on || takes_packs_away(damages[_i].spoil))
		return;
	damages[_i].spoil();
	expect_refused(AFTER_DAMAGE_SERVE, "deltabucketd rebuild --replace makes a catalog");
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	run("mv $F/journal $F/journal-away", "");
	ck_assert_msg(open_as(AFTER_DAMAGE_SERVE) == 0, "%s", err.text);
	ck_assert_int_eq(store_health_may_write(store_health(store), &err), 0);
	ck_assert(!damages[_i].reads_first || holds("first", 1));
	ck_assert_uint_eq(store_life(store), LIVES + 1); /* no life is begun twice */
	close_it();
	expect_all_packs();
}
END_TEST

Suite *test_store_start_suite(void);
Suite *test_store_start_suite(void)
{
	Suite *suite = suite_create("store_start");
	TCase *tests = tcase_create("store_start");
	tcase_add_unchecked_fixture(tests, make_all, remove_all);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, what_is_wrong_is_refused_and_nothing_changes, 0, DAMAGES);
	tcase_add_loop_test(
		tests, a_refusal_ends_with_what_can_be_done_however_long_the_path, 0, DAMAGES);
	tcase_add_loop_test(
		tests, what_cannot_be_right_is_refused_whatever_is_asked_for, 0, DAMAGES);
	tcase_add_test(tests, an_old_catalog_that_lacks_a_pack_is_not_read_only_either);
	tcase_add_loop_test(tests, a_store_that_is_only_read_changes_nothing, 0, DAMAGES);
	tcase_add_loop_test(
		tests, a_start_that_goes_on_sets_aside_what_it_does_not_name, 0, DAMAGES);
	suite_add_tcase(suite, tests);
	return suite;
}
