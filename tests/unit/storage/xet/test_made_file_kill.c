/* Makes the files of two derived versions, with room for one of them. The process is killed, or an
 * operation fails, at its n-th write, sync, rename, unlink or open below packs; n grows until
 * everything succeeds. Each time the next start has whole files or none, can make both, and has
 * nothing of them when they have expired. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/open/store_open.h"
#include "storage/xet/made_file.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/kill_fixture.h"

Suite *test_made_file_kill_suite(void);

enum { FILES = 2, LARGE = 20000, ROUNDS_MAX = 200 };

static struct store_fixture fixture;
static struct derived_checkpoint base;
static struct derived_checkpoint next[FILES];
static struct object objects[FILES];
static char *template; /* a folder */
static int64_t packs;  /* without made files */

static struct store *open_store(const struct file_ops *files)
{
	struct error err = {0};
	const struct store_options options = {.folder = fixture.folder,
		.files = files,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.made_max_bytes = base.bytes.len * 3 / 2}};
	return store_open(&options, &err);
}

static int64_t count_packs(void)
{
	const int64_t count = fixture_pack_files(&fixture, "! -name '*.index'");
	ck_assert_int_eq(count, fixture_count(fixture.store, "SELECT count(*) FROM packs"));
	return count;
}

static void collect(void)
{
	struct error err = {0};
	struct gc_request request = {0};
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
}

static void prepare(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	derived_checkpoint_make(&base, LARGE, 0);
	const struct object root = derived_fixture_put(&fixture, "b", "base", &base);
	for (unsigned i = 0; i < FILES; i++) {
		derived_checkpoint_make(&next[i], LARGE, i + 1);
		objects[i] = derived_fixture_put_swapped(
			&fixture, "b", i == 0 ? "one" : "two", &base, &root, &next[i]);
	}
	collect();
	packs = count_packs();
	store_close(fixture.store);
	template = fixture.folder;
}

static void finish(void)
{
	for (unsigned i = 0; i < FILES; i++)
		derived_checkpoint_release(&next[i]);
	derived_checkpoint_release(&base);
	arena_free(fixture.arena);
	unit_scratch_remove(template);
}

/* How many were made before one failed. */
static unsigned make_all(struct store *store)
{
	struct error err = {0};
	unsigned made = 0;
	while (made < FILES && derived_fixture_make(store, objects[made].sequence, &err) == 0)
		made++;
	return made;
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	struct store *const store = open_store(files);
	if (store == NULL)
		return 1;
	for (unsigned i = 0; i < FILES; i++) {
		if (derived_fixture_make(store, objects[i].sequence, &err) != 0)
			return 2;
		kill_child_tell(child);
	}
	store_close(store);
	return 0;
}

/* Checks the next start: every made file is whole, and the last one is there. */
static void expect_whole(unsigned made)
{
	for (unsigned i = 0; i < FILES; i++) {
		const bool is_there = derived_fixture_made_holds(
			&fixture, &objects[i].file_hash, buffer_span(&next[i].bytes));
		ck_assert(is_there || made != FILES || i + 1 < FILES);
	}
	ck_assert_int_le(fixture_count(fixture.store, "SELECT count(*) FROM xet_files"), 1);
}

static void expect_recovered(unsigned made)
{
	fixture.store = open_store(NULL);
	ck_assert(fixture.store != NULL);
	ck_assert_int_le(count_packs(), packs + FILES);
	expect_whole(made);
	ck_assert_uint_eq(make_all(fixture.store), FILES);
	ck_assert(derived_fixture_made_holds(
		&fixture, &objects[FILES - 1].file_hash, buffer_span(&next[FILES - 1].bytes)));
	const int64_t now_ms = fixture.clock.now_ms;
	fixture.clock.now_ms += MADE_FILE_MS;
	collect();
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM xet_files"), 0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM part_sets WHERE id > 0"), 0);
	ck_assert_int_eq(count_packs(), packs);
	ck_assert(fixture_holds(&fixture, "b", "one", buffer_span(&next[0].bytes)));
	store_close(fixture.store);
	fixture.clock.now_ms = now_ms;
	unit_scratch_remove(fixture.folder);
}

START_TEST(a_kill_anywhere_leaves_no_half_made_file)
{
	bool alive = false;
	int round = 0;
	prepare();
	for (; round < ROUNDS_MAX && !alive; round += unit_stride(5)) {
		fixture.folder = unit_scratch_copy(template);
		struct kill_child child = {
			.kinds = KILL_ANYWHERE, .countdown = round, .work = work};
		int made;
		alive = kill_child_run(&child, &made);
		expect_recovered((unsigned)made);
	}
	finish();
	ck_assert(alive);
	ck_assert_int_gt(round, 8); /* it was killed at many points */
}
END_TEST

START_TEST(a_failure_anywhere_leaves_no_half_made_file)
{
	bool clean = false;
	int round = 0;
	prepare();
	for (; round < ROUNDS_MAX && !clean; round += unit_stride(5)) {
		struct file_faults faults;
		unsigned made = 0;
		file_faults_init(&faults, KILL_ANYWHERE, round, ENOSPC);
		faults.sticky = true;
		fixture.folder = unit_scratch_copy(template);
		fixture.store = open_store(&faults.ops);
		if (fixture.store != NULL) {
			made = make_all(fixture.store);
			clean = faults.countdown >= 0;
			faults.kinds = 0;
			expect_whole(made);
			store_close(fixture.store);
		}
		expect_recovered(made);
	}
	finish();
	ck_assert(clean);
	ck_assert_int_gt(round, 3);
}
END_TEST

Suite *test_made_file_kill_suite(void)
{
	Suite *const suite = suite_create("made_file_kill");
	TCase *const tests = tcase_create("made_file_kill");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_anywhere_leaves_no_half_made_file);
	tcase_add_test(tests, a_failure_anywhere_leaves_no_half_made_file);
	suite_add_tcase(suite, tests);
	return suite;
}
