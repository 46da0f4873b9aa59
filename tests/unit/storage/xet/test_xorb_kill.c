/* A child uploads xorbs and is killed at its n-th write, sync, rename or unlink below packs, also
 * during its start. The parent opens the folder: every acknowledged xorb reads as it was sent, one
 * more may, and no pack is left over. Then n grows, on the same folder. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/open/store_open.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/kill_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"

Suite *test_xorb_kill_suite(void);

enum { OPERATIONS = 7, LEAP = 5, ROUNDS_MAX = 300, HOUR_MS = 3600 * 1000 };

/* Other samples in each round, and the last one again. */
static const struct xorb_sample kinds[OPERATIONS] = {
	{.chunks = 2, .chunk_bytes = 20000},
	{.chunks = 30, .chunk_bytes = 90000},
	{.chunks = 1, .chunk_bytes = 50, .codec = CODEC_RAW},
	{.chunks = 9, .chunk_bytes = 100000, .codec = CODEC_BG4_LZ4},
	{.chunks = 3, .chunk_bytes = 100000},
	{.chunks = 4, .chunk_bytes = 30000},
	{.chunks = 4, .chunk_bytes = 30000},
};

static struct store_fixture fixture;

static struct xorb_sample sample_of(int round, int operation)
{
	struct xorb_sample sample = kinds[operation];
	sample.seed = (uint64_t)round * OPERATIONS +
		(uint64_t)(operation == OPERATIONS - 1 ? operation - 1 : operation) + 1;
	return sample;
}

static int work(const struct kill_child *child, const struct file_ops *files)
{
	struct error err = {0};
	const int round = child->countdown;
	const struct store_options options = {.folder = fixture.folder,
		.files = files,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.upload_promise_ms = HOUR_MS}};
	struct store *const store = store_open(&options, &err);
	if (store == NULL)
		return 1;
	for (int i = 0; i < OPERATIONS; i++) {
		const struct xorb_sample sample = sample_of(round, i);
		bool inserted;
		if (xorb_sample_put(store, &sample, &inserted, &err) != 0 ||
			inserted == (i == OPERATIONS - 1))
			return 2;
		kill_child_tell(child);
	}
	store_close(store);
	return 0;
}

static void expect_all(int round, int acknowledged)
{
	for (int i = 0; i < acknowledged; i++) {
		const struct xorb_sample sample = sample_of(round, i);
		ck_assert_msg(xorb_sample_is_there(fixture.store, &sample), "round %d, upload %d",
			round, i);
	}
}

/* A xorb that is found is whole, acknowledged or not: invariant 1. */
static void verify(int round, int acknowledged, int before)
{
	struct error err = {0};
	struct xorb xorb;
	const struct store_options options = {.folder = fixture.folder,
		.pack_max_bytes = 1024 * 1024,
		.xet = {.upload_promise_ms = HOUR_MS}};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "round %d: %s", round, err.text);
	ck_assert_int_eq(fixture_pack_files(&fixture, "! -name '*.index'"),
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs"));
	expect_all(round, acknowledged);
	expect_all(round - unit_stride(LEAP), before);
	for (int i = acknowledged; i < OPERATIONS; i++) {
		const struct xorb_sample sample = sample_of(round, i);
		const struct chunk_id hash = xorb_sample_hash(&sample);
		const bool is_found = xorb_find(fixture.store, &hash, &xorb, &err) == 0;
		ck_assert(!is_found ||
			(i <= acknowledged + 1 && xorb_sample_is_there(fixture.store, &sample)));
	}
	store_close(fixture.store);
}

START_TEST(a_kill_at_any_write_loses_no_acknowledged_xorb)
{
	bool alive = false;
	int round = 0;
	int before = 0;
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	store_close(fixture.store);
	for (; round < ROUNDS_MAX && !alive; round += unit_stride(LEAP)) {
		struct kill_child child = {.kinds = KILL_ANYWHERE & ~FILE_FAULT_OPEN,
			.countdown = round,
			.work = work};
		int acknowledged;
		alive = kill_child_run(&child, &acknowledged);
		verify(round, acknowledged, before);
		before = acknowledged;
	}
	ck_assert(alive);
	ck_assert_int_eq(before, OPERATIONS);
	ck_assert_int_gt(round, 2 * OPERATIONS);
	arena_free(fixture.arena);
	unit_scratch_remove(fixture.folder);
}
END_TEST

Suite *test_xorb_kill_suite(void)
{
	Suite *const suite = suite_create("xorb_kill");
	TCase *const tests = tcase_create("xorb_kill");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_kill_at_any_write_loses_no_acknowledged_xorb);
	suite_add_tcase(suite, tests);
	return suite;
}
