/* A commit whose sync fails: its client gets an error, but the log has its frames, and the next
 * start may take them. So nothing that they name may be removed before that start. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/run_tables/replica_table.h"
#include "storage/runs/replica.h"
#include "storage/upkeep/gc.h"
#include "storage/upkeep/gc_pack.h"
#include "storage/xet/xorb_promise.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/log_sync_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/xorb_fixture.h"

enum { SMALL = 20000, LARGE = 500000, KEYS = 8, HOUR_MS = 3600 * 1000 };

static struct store_fixture fixture;
static struct store_fixture next; /* the start after a kill, on a copy */

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	log_syncs_fail(0, NULL);
	store_fixture_close(&fixture);
}

static int put(const char *key, size_t size, uint64_t seed, struct error *err)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	const int result = fixture_put(fixture.store, "bucket", key, span_of(bytes, size), err);
	free(bytes);
	return result;
}

static void start_on(char *folder)
{
	next = fixture;
	next.folder = folder;
	next.arena = arena_new(64 * 1024 * 1024);
	store_fixture_start(&next);
}

static void start_next(void)
{
	start_on(unit_scratch_copy(fixture.folder));
}

static void expect_next(const char *key, size_t size, uint64_t seed)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_holds(&next, "bucket", key, span_of(bytes, size)), "%s", key);
	free(bytes);
}

/* in the catalog, in the shared pack, in its own */
static const size_t sizes[] = {300, SMALL, LARGE};

START_TEST(an_upload_in_doubt_is_whole_where_it_comes_back)
{
	struct error err = {0};
	ck_assert_int_eq(put("before", SMALL, 1, &err), 0);
	log_syncs_fail(1, NULL);
	ck_assert_int_eq(put("doubtful", sizes[_i], 2, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	start_next();
	expect_next("before", SMALL, 1);
	expect_next("doubtful", sizes[_i], 2); /* the kill left it in the log */
	store_fixture_close(&next);
	ck_assert_int_eq(put("after", SMALL, 3, &err), 0);
	start_next();
	expect_next("before", SMALL, 1);
	expect_next("after", SMALL, 3);
	store_fixture_close(&next);
}
END_TEST

static char *kept; /* the store's folder when the commit broke off */

static void keep_catalog(void)
{
	kept = unit_scratch_copy(fixture.folder);
}

/* Gives the kept folder the present packs: as if the kill came now, before another commit. */
static void bring_packs_up_to_date(void)
{
	char command[1024];
	ck_assert_ptr_ne(kept, NULL);
	snprintf(command, sizeof command, "rm -r '%s/packs' && cp -a '%s/packs' '%s/'", kept,
		fixture.folder, kept);
	ck_assert_int_eq(system(command), 0);
}

/* One pack with few live chunks. */
START_TEST(a_compaction_in_doubt_leaves_both_files)
{
	struct error err = {0};
	struct gc_request request = {0};
	char key[2] = "a";
	for (unsigned i = 0; i < KEYS; i++, key[0]++)
		ck_assert_int_eq(put(key, SMALL, i, &err), 0);
	for (key[0] = 'b'; key[0] < 'a' + KEYS; key[0]++)
		ck_assert_int_eq(fixture_delete(fixture.store, "bucket", key, NULL, &err), 0);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	log_syncs_fail(1, keep_catalog);
	gc_run(store_parts(fixture.store)->gc, &request, &err);
	ck_assert_uint_eq(request.report.packs_compacted, 0);
	bring_packs_up_to_date();
	start_on(kept);
	ck_assert_int_eq(
		fixture_count(next.store, "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL"), 1);
	expect_next("a", SMALL, 0);
	store_fixture_close(&next);
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &request, &err), 0);
	start_next();
	expect_next("a", SMALL, 0);
	store_fixture_close(&next);
}
END_TEST

static const struct xorb_sample sample = {.seed = 9, .chunks = 6, .chunk_bytes = 100001};

static struct xorb sent(void)
{
	struct error err = {0};
	struct xorb xorb;
	bool inserted;
	const struct chunk_id hash = xorb_sample_hash(&sample);
	ck_assert_msg(
		xorb_sample_put(fixture.store, &sample, &inserted, &err) == 0, "%s", err.text);
	ck_assert_int_eq(xorb_find(fixture.store, &hash, &xorb, &err), 0);
	return xorb;
}

static int promise(const struct xorb *xorb, struct error *err)
{
	const int64_t until_ms = fixture.clock.now_ms + HOUR_MS;
	const struct xorb_place place = {xorb->hash, xorb->pack, xorb->first, xorb->count};
	struct call *const made = xorb_promise_call(fixture.store, &place, 1, until_ms);
	const int result = call_run(made, err);
	call_free(made);
	return result;
}

static bool go_on(void *owner, size_t bytes)
{
	(void)owner, (void)bytes;
	return true;
}

/* True when gc cannot go on while references to the pack remain. Waits for readers. */
static bool stands(const struct gc_work *work, struct gc_pack *pack)
{
	if (gc_pack_advance(work, pack))
		return false;
	nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
	return pack->stage == GC_REFERENCES;
}

/* The stage that gc reaches with a pack that nothing needs. */
static enum gc_stage collect(int64_t number)
{
	struct gc_report report = {0};
	const struct gc_work work = {.store = fixture.store,
		.report = &report,
		.live_percent = 90,
		.is_asked = true,
		.pace.spend = go_on};
	struct gc_pack *const pack = gc_pack_look(&work, number);
	ck_assert(pack != NULL && pack->deletes);
	while (pack->stage != GC_DONE && !stands(&work, pack))
		continue;
	const enum gc_stage stage = pack->stage;
	gc_pack_close(&work, pack);
	return stage;
}

/* The row may be there after the next start, and then it keeps the chunks. */
START_TEST(a_promise_in_doubt_keeps_its_pack)
{
	struct error err = {0};
	const struct xorb xorb = sent();
	store_fixture_reopen(&fixture); /* the pack's index is saved */
	ck_assert_int_eq(promise(&xorb, &err), 0);
	ck_assert(!pack_store_is_held(store_packs(fixture.store), &xorb.pack));
	fixture.clock.now_ms += HOUR_MS;
	log_syncs_fail(1, NULL);
	ck_assert_int_eq(promise(&xorb, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	ck_assert_int_eq(collect(xorb.pack_number), GC_REFERENCES);
	ck_assert(xorb_sample_is_there(fixture.store, &sample));
	start_next();
	ck_assert(xorb_sample_is_there(next.store, &sample));
	store_fixture_close(&next);
	store_fixture_reopen(&fixture); /* nothing is in doubt any more */
	ck_assert_int_eq(collect(xorb.pack_number), GC_DONE);
	ck_assert(!xorb_sample_is_there(fixture.store, &sample));
}
END_TEST

static int apply_nothing(struct change *change, struct db *db, struct error *err)
{
	(void)change, (void)db, (void)err;
	return 0;
}

/* Damages the sample. A read finds it, and its row is written. */
static void damage_sample(void)
{
	struct error err = {0};
	struct change change = {.apply = apply_nothing};
	off_t offset;
	const struct chunk_id hash = xorb_sample_hash(&sample);
	char *const path = damage_fixture_find_xorb(&fixture, &hash, &offset);
	damage_fixture_flip(path, offset);
	free(path);
	ck_assert(!xorb_sample_is_there(fixture.store, &sample));
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &change, &err), 0);
}

/* After the next start the row may name the pack's new file, in which the chunks are right. */
START_TEST(a_mending_in_doubt_leaves_both_files)
{
	struct error err = {0};
	bool mended = false;
	(void)sent();
	store_fixture_reopen(&fixture);
	damage_sample();
	log_syncs_fail(1, keep_catalog);
	ck_assert_int_eq(xorb_sample_put(fixture.store, &sample, &mended, &err), -1);
	ck_assert_msg(err.kind == ERROR_IO && !mended, "%s", err.text);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), 2);
	bring_packs_up_to_date();
	start_on(kept);
	ck_assert_int_eq(
		fixture_count(next.store, "SELECT count(*) FROM packs WHERE file IS NOT NULL"), 1);
	ck_assert(xorb_sample_is_there(next.store, &sample));
	store_fixture_close(&next);
	ck_assert(!xorb_sample_is_there(fixture.store, &sample)); /* its mend failed here */
	ck_assert_msg(xorb_sample_put(fixture.store, &sample, &mended, &err) == 0, "%s", err.text);
	ck_assert(mended && xorb_sample_is_there(fixture.store, &sample));
	start_next();
	ck_assert(xorb_sample_is_there(next.store, &sample));
	ck_assert_int_eq(fixture_pack_files(&next, "-name '*.pack'"), 1);
	store_fixture_close(&next);
}
END_TEST

static struct replica_ref replica_of(const char *id)
{
	return (struct replica_ref){
		.run = run_named(span_text("bucket"), span_text("run")), .id = span_text(id)};
}

/* A report of a replica of the run "bucket/run". *out_saved: it need not be saved. */
static void tell(const char *id, bool *out_saved)
{
	struct error err = {0};
	struct replica_message answer;
	const struct replica_message said = {.state = REPLICA_IDLE};
	const struct replica_ref ref = replica_of(id);
	const int result = replica_put(fixture.store, &ref, &said, fixture.arena, &answer, &err);
	ck_assert_msg(result >= 0, "%s", err.text);
	*out_saved = result == 1;
}

static int save_replica(const char *id, struct error *err)
{
	const struct replica_ref ref = replica_of(id);
	return fixture_call(replica_save_call(fixture.store, &ref), err);
}

static int delete_run(struct error *err)
{
	const struct run_ref run = run_named(span_text("bucket"), span_text("run"));
	return fixture_call(run_delete_call(fixture.store, &run), err);
}

START_TEST(a_lease_in_doubt_is_to_be_saved_again)
{
	struct error err = {0};
	bool saved = true;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	tell("w", &saved);
	ck_assert(!saved);
	log_syncs_fail(1, NULL);
	ck_assert_int_eq(save_replica("w", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	saved = true;
	tell("w", &saved);
	ck_assert(!saved);
	ck_assert_int_eq(save_replica("w", &err), 0);
	tell("w", &saved);
	ck_assert(saved);
	start_next();
	ck_assert_uint_eq(replica_table_count(store_parts(next.store)->replicas), 1);
	store_fixture_close(&next);
}
END_TEST

/* The client got an error, so the run counts as not ended. */
START_TEST(a_run_whose_end_is_in_doubt_keeps_its_leases)
{
	struct error err = {0};
	bool saved;
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", NULL, &err), 0);
	tell("w", &saved);
	ck_assert_int_eq(save_replica("w", &err), 0);
	log_syncs_fail(1, NULL);
	ck_assert_int_eq(delete_run(&err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	ck_assert_uint_eq(replica_table_count(store_parts(fixture.store)->replicas), 1);
	ck_assert_int_eq(delete_run(&err), 0);
	ck_assert_uint_eq(replica_table_count(store_parts(fixture.store)->replicas), 0);
}
END_TEST

Suite *test_commit_doubt_suite(void);

Suite *test_commit_doubt_suite(void)
{
	Suite *const suite = suite_create("commit_doubt");
	TCase *const tests = tcase_create("commit_doubt");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, an_upload_in_doubt_is_whole_where_it_comes_back, 0,
		sizeof sizes / sizeof sizes[0]);
	tcase_add_test(tests, a_compaction_in_doubt_leaves_both_files);
	tcase_add_test(tests, a_promise_in_doubt_keeps_its_pack);
	tcase_add_test(tests, a_mending_in_doubt_leaves_both_files);
	tcase_add_test(tests, a_lease_in_doubt_is_to_be_saved_again);
	tcase_add_test(tests, a_run_whose_end_is_in_doubt_keeps_its_leases);
	suite_add_tcase(suite, tests);
	return suite;
}
