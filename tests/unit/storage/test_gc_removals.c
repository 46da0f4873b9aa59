/* What gc does not remove: a file that the cache reads from, and nothing at all from the moment on in which the catalog is found damaged. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/gc.h"
#include "storage/store_health.h"
#include "storage/store_internal.h"
#include "tests/unit/storage/store_fixture.h"

enum { LARGE = 600 * 1000, PAGE_BYTES = 4096 };

static struct store_fixture fixture;
static struct error err;

/* Damages the catalog when the first file of a pack goes. */
static struct damaging {
	struct file_ops ops;
	int64_t page; /* 0: not yet */
	unsigned unlinked;
} damaging;

static void damage_catalog(void)
{
	static const uint8_t zeros[PAGE_BYTES];
	char *path = store_fixture_path(&fixture, "catalog.db");
	int fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, zeros, sizeof zeros, (damaging.page - 1) * PAGE_BYTES), sizeof zeros);
	close(fd);
	free(path);
	store_health_set_proof(store_health(fixture.store), STORE_DAMAGED, "a page of 'step_views' is damaged");
}

static int damaging_unlink(const struct file_ops *ops, const char *path)
{
	(void)ops;
	if (damaging.page != 0 && strstr(path, "/packs/") != NULL && damaging.unlinked++ == 0)
		damage_catalog();
	return file_system()->unlink(file_system(), path);
}

static void open_with(const struct file_ops *files)
{
	memset(&fixture, 0, sizeof fixture);
	fixture.files = files;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static void put(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(LARGE, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, LARGE), &err) == 0, "%s", err.text);
	free(bytes);
}

static bool holds(const char *key, uint64_t seed)
{
	uint8_t *bytes = fixture_noise(LARGE, seed);
	bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, LARGE));
	free(bytes);
	return result;
}

static int collect(void)
{
	struct gc_request request = {.live_percent = 0};
	return gc_run(store_gc(fixture.store), &request, &err);
}

static int64_t removals(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM removals");
}

static int64_t packs(void)
{
	return fixture_pack_files(&fixture, "-name '*.pack'");
}

/* As when another thread has just committed that the pack lies in a new file, and has not told the cache yet. */
START_TEST(a_file_that_the_cache_reads_is_left)
{
	open_with(NULL);
	put("a", 1);
	ck_assert_int_eq(fixture_run(fixture.store, "INSERT INTO removals (file) SELECT id FROM packs", &err), 0);
	ck_assert_msg(collect() == 0, "%s", err.text);
	ck_assert_int_eq(removals(), 1);
	ck_assert_int_eq(packs(), 1);
	ck_assert(holds("a", 1));
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM removals", &err), 0);
}
END_TEST

START_TEST(a_round_ends_when_damage_is_found)
{
	static const char *const keys[] = {"a", "b", "c", "d"};
	damaging = (struct damaging){.ops = *file_system()};
	damaging.ops.unlink = damaging_unlink;
	open_with(&damaging.ops);
	for (size_t i = 0; i < 4; i++)
		put(keys[i], i + 1);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(packs(), 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", keys[i], NULL, &err), 0);
	damaging.page = fixture_count(fixture.store, "SELECT rootpage FROM sqlite_schema WHERE name = 'step_views'");
	ck_assert_int_eq(collect(), -1);
	ck_assert_int_eq(err.kind, ERROR_DAMAGED);
	ck_assert_int_eq(packs(), 3);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"), 3);
	ck_assert_int_eq(removals(), 1);
}
END_TEST

Suite *test_gc_removals_suite(void);
Suite *test_gc_removals_suite(void)
{
	Suite *suite = suite_create("gc_removals");
	TCase *tests = tcase_create("gc_removals");
	tcase_add_checked_fixture(tests, NULL, tear_down);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_file_that_the_cache_reads_is_left);
	tcase_add_test(tests, a_round_ends_when_damage_is_found);
	suite_add_tcase(suite, tests);
	return suite;
}
