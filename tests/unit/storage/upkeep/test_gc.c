/* gc gives space back, and removes nothing that is needed. */
#include "storage/upkeep/gc.h"

#include <pthread.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/pack_touches.h"
#include "storage/core/store.h"
#include "storage/db/db_internal.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/open/store_open.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/upkeep/gc_pack.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/unit.h"

enum { LARGE = 600 * 1000, SMALL = 20 * 1000, MANY = 40 };

static struct store_fixture fixture;

static void setup(void)
{
	struct error err = {0};
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void teardown(void)
{
	store_fixture_close(&fixture);
}

static void put(const char *key, size_t size, uint64_t seed)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(size, seed);
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_of(bytes, size), &err) == 0,
		"%s", err.text);
	free(bytes);
}

static void delete (const char *key)
{
	struct error err = {0};
	ck_assert_msg(
		fixture_delete(fixture.store, "bucket", key, NULL, &err) == 0, "%s", err.text);
}

static bool holds(const char *key, size_t size, uint64_t seed)
{
	uint8_t *const bytes = fixture_noise(size, seed);
	const bool result = fixture_holds(&fixture, "bucket", key, span_of(bytes, size));
	free(bytes);
	return result;
}

static struct gc_report collect_with(unsigned live_percent, bool dry_run)
{
	struct error err = {0};
	struct gc_request request = {.dry_run = dry_run, .live_percent = live_percent};
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	return request.report;
}

static struct gc_report collect(void)
{
	return collect_with(0, false);
}

/* A round that runs beside the test. */
struct round {
	struct call *call;
	atomic_bool is_done;
};

static void round_is_done(void *round)
{
	atomic_store(&((struct round *)round)->is_done, true);
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void round_start(struct round *round)
{
	const struct gc_request request = {.dry_run = false};
	round->call = gc_call(store_parts(fixture.store)->gc, &request);
	atomic_store(&round->is_done, false);
	call_start(round->call, round_is_done, round);
}

static struct gc_report round_end(struct round *round)
{
	struct error err = {0};
	for (int i = 0; i < 3000 && !atomic_load(&round->is_done); i++)
		rest(10);
	ck_assert(atomic_load(&round->is_done));
	ck_assert_msg(call_outcome(round->call, &err) == 0, "%s", err.text);
	const struct gc_report report = gc_result(round->call)->report;
	call_free(round->call);
	return report;
}

static int64_t pack_rows(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM packs");
}

/* The files below packs: each pack has its file and an index. */
static int64_t shell_number(const char *command_end)
{
	char command[1200];
	long long number = -1;
	snprintf(command, sizeof command, "cd %s && %s", fixture.folder, command_end);
	FILE *const pipe = popen(command, "r");
	ck_assert(pipe != NULL && fscanf(pipe, "%lld", &number) == 1);
	pclose(pipe);
	return number;
}

static int64_t files(void)
{
	return shell_number("find packs -type f | wc -l");
}

static int64_t bytes_in_packs(void)
{
	return shell_number(
		"find packs -type f -name '*.pack' -printf '%s\\n' | awk '{s+=$1} END {print s+0}'");
}

START_TEST(a_pack_that_nothing_leads_to_goes)
{
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	const int64_t before = bytes_in_packs();
	struct gc_report report = collect();
	ck_assert_uint_eq(report.packs, 2);
	ck_assert_uint_eq(report.packs_deleted + report.packs_compacted, 0);
	delete ("a");
	report = collect();
	ck_assert_uint_eq(report.packs_deleted, 1);
	ck_assert_uint_eq(report.packs_compacted, 0);
	ck_assert_int_eq(bytes_in_packs(), before - (int64_t)report.bytes_freed);
	ck_assert_int_eq(pack_rows(), 1);
	ck_assert_int_eq(files(), 2);
	ck_assert(holds("b", LARGE, 2));
	put("a", LARGE, 1); /* nothing in it is found any more */
	ck_assert(holds("a", LARGE, 1));
	ck_assert_int_eq(pack_rows(), 2);
	store_fixture_reopen(&fixture);
	ck_assert(holds("a", LARGE, 1) && holds("b", LARGE, 2));
}
END_TEST

/* How many packs a round of gc's own would look at. */
static size_t due(void)
{
	int64_t packs[8];
	return pack_touches_due(store_pack_touches(fixture.store), 0, packs, 8);
}

START_TEST(a_dry_run_tells_and_does_nothing)
{
	put("a", LARGE, 1);
	delete ("a");
	const int64_t before = bytes_in_packs();
	const struct gc_report would = collect_with(0, true);
	ck_assert_uint_eq(would.packs_deleted, 1);
	ck_assert_uint_ge(would.bytes_freed, LARGE);
	ck_assert_int_eq(bytes_in_packs(), before);
	ck_assert_int_eq(pack_rows(), 1);
	ck_assert_uint_eq(due(), 1); /* it leaves gc as much to look at as before */
	const struct gc_report did = collect();
	ck_assert_uint_eq(did.bytes_freed, would.bytes_freed);
	ck_assert_int_eq(bytes_in_packs(), 0);
}
END_TEST

/* One kind of leftovers cannot be swept. The kinds behind it are swept all the same, and the packs
 * of both kinds that went well go. */
START_TEST(a_sweep_that_fails_stops_no_other)
{
	struct error err = {0};
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"CREATE TRIGGER refuse BEFORE DELETE ON folds BEGIN SELECT RAISE(ABORT, 'no'); END",
			&err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO folds (run, from_step, to_step, kind, state, format, bytes, used_ms)"
			" VALUES (99, 1, 2, 0, 3, x'00', 0, 0)",
			&err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"INSERT INTO xet_files (hash, size, part_set, contents, is_made, expires_ms, sum)"
			" VALUES (x'01', 1, 1, 1, 0, 0, 0)",
			&err),
		0);
	delete ("a");
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.sweeps_failed, 1);
	ck_assert_uint_eq(report.packs_deleted, 1);
	/* by this round or by the sweeper */
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM xet_files"), 0);
	ck_assert(holds("b", LARGE, 2));
	ck_assert_int_eq(fixture_run(fixture.store, "DROP TRIGGER refuse", &err), 0);
	ck_assert_uint_eq(collect().sweeps_failed, 0);
}
END_TEST

struct index_damage {
	struct change change; /* first */
	const char *condition;
};

/* The schema is edited, which connections otherwise refuse. */
static int apply_index_damage(struct change *change, struct db *db, struct error *err)
{
	char script[600];
	snprintf(script, sizeof script,
		"DROP INDEX segments_pack; CREATE INDEX segments_pack ON segments (pack, first, count)%s;"
		" PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE INDEX segments_pack ON segments (pack, first, count)'"
		" WHERE name = 'segments_pack'; PRAGMA writable_schema=RESET;",
		((struct index_damage *)change)->condition);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	const int result = db_run_script(db, script, err);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return result;
}

/* The index of segments by pack has only the entries with `condition`, and SQLite does not know
 * that the others are missing. */
static void damage_index(const char *condition)
{
	struct error err = {0};
	struct index_damage damage = {
		.change = {.apply = apply_index_damage}, .condition = condition};
	ck_assert_msg(committer_run(store_committer(fixture.store), &damage.change, &err) == 0,
		"%s", err.text);
}

/* The next start finds it and makes it again from its table, before gc works. */
START_TEST(a_damaged_index_is_rebuilt_after_the_next_start)
{
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	delete ("b");
	damage_index(" WHERE part_set > 0");
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM segments INDEXED BY segments_pack WHERE pack > 0"),
		0);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM segments INDEXED BY segments_pack WHERE pack > 0"),
		1);
	ck_assert_uint_eq(collect().packs_deleted, 1);
	ck_assert_int_eq(pack_rows(), 1);
	ck_assert(holds("a", LARGE, 1));
}
END_TEST

START_TEST(a_damaged_index_costs_no_pack)
{
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	delete ("b");
	damage_index(" WHERE part_set > 0");
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM segments INDEXED BY segments_pack WHERE pack > 0"),
		0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM segments WHERE part_set < 0"),
		1);
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.packs_deleted, 1); /* to which nothing led */
	ck_assert_uint_eq(report.packs_compacted, 0);
	ck_assert_int_eq(pack_rows(), 1);
	ck_assert(holds("a", LARGE, 1));
}
END_TEST

static void put_many(unsigned count, uint64_t seed)
{
	for (unsigned i = 0; i < count; i++) {
		char key[16];
		snprintf(key, sizeof key, "many%u", i);
		put(key, SMALL, seed + i);
	}
}

static void expect_many(unsigned from, unsigned to, unsigned step, uint64_t seed)
{
	for (unsigned i = from; i < to; i += step) {
		char key[16];
		snprintf(key, sizeof key, "many%u", i);
		ck_assert_msg(holds(key, SMALL, seed + i), "%s", key);
	}
}

static void delete_many_but(unsigned step)
{
	for (unsigned i = 0; i < MANY; i++) {
		char key[16];
		snprintf(key, sizeof key, "many%u", i);
		if (i % step != 0)
			delete (key);
	}
}

START_TEST(a_damaged_index_costs_no_chunk)
{
	put_many(MANY, 100);
	delete_many_but(8);
	damage_index(" WHERE part_set <> -1");
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.packs_deleted + report.packs_compacted, 0);
	expect_many(0, MANY, 8, 100);
}
END_TEST

START_TEST(a_pack_of_which_little_lives_is_written_anew)
{
	put_many(MANY, 100);
	delete_many_but(8);
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.packs_compacted, 1);
	ck_assert_int_eq(bytes_in_packs(),
		shell_number("ls packs/*/*.pack | wc -l") == 1 ? bytes_in_packs() : -1);
	ck_assert_int_lt(bytes_in_packs(), (MANY / 8) * SMALL * 12 / 10);
	ck_assert_int_eq(files(), 2);
	ck_assert_int_eq(fixture_count(fixture.store,
				 "SELECT COUNT(*) FROM packs WHERE file IS NOT NULL AND state = 1"),
		1);
	expect_many(0, MANY, 8, 100);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(files(), 2);
	expect_many(0, MANY, 8, 100);
	delete_many_but(16);
	ck_assert_uint_eq(collect_with(90, false).packs_compacted, 1);
	expect_many(0, MANY, 16, 100);
	store_fixture_reopen(&fixture);
	expect_many(0, MANY, 16, 100);
	ck_assert_uint_eq(collect().bytes_freed, 0);
	delete_many_but(MANY + 1);
	delete ("many0");
	ck_assert_uint_eq(collect().packs_deleted, 1);
	ck_assert_int_eq(files(), 0);
}
END_TEST

/* 0: in the process that wrote them; 1: in the next one, which has only the chunk index */
START_TEST(chunks_of_a_compacted_pack_are_found_and_absent_ones_stored_anew)
{
	struct metrics *const metrics = fixture.metrics = metrics_new();
	store_fixture_reopen(&fixture);
	put_many(MANY, 100);
	delete_many_but(8);
	collect();
	if (_i == 1)
		store_fixture_reopen(&fixture);
	const int64_t before = bytes_in_packs();
	put("again", SMALL, 100 + 8); /* lives in the compacted pack */
	ck_assert_int_eq(bytes_in_packs(), before);
	put("anew", SMALL, 100 + 9); /* does not */
	ck_assert_int_gt(bytes_in_packs(), before + SMALL);
	ck_assert(holds("again", SMALL, 108) && holds("anew", SMALL, 109));
	/* its absence is not damage */
	ck_assert_int_eq(metrics_get(metrics, METRIC_RECORDS_CORRUPT), 0);
	fixture.metrics = NULL;
	store_fixture_reopen(&fixture);
	metrics_free(metrics);
}
END_TEST

static int64_t removals(void)
{
	return fixture_count(fixture.store, "SELECT COUNT(*) FROM removals");
}

/* Dropped and compacted packs: their files stay known until they are gone. */
START_TEST(a_file_that_cannot_be_removed_goes_with_a_later_round)
{
	static struct file_faults faults; /* outlives the store */
	file_faults_init(&faults, 0, 0, EIO);
	store_fixture_stop(&fixture);
	fixture.files = &faults.ops;
	store_fixture_start(&fixture);
	put("dead", LARGE, 1000);
	put_many(MANY, 2000);
	delete ("dead");
	delete_many_but(6);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	faults.sticky = true;
	faults.kinds = FILE_FAULT_UNLINK;
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.packs_deleted, 1);
	ck_assert_uint_eq(report.packs_compacted, 1);
	ck_assert_int_eq(removals(), 2);
	ck_assert_int_eq(files(), 6);
	faults.kinds = 0;
	if (_i == 0)
		collect();
	else
		store_fixture_reopen(&fixture);
	ck_assert_int_eq(files(), 2);
	ck_assert_int_eq(shell_number("ls set-aside 2>/dev/null | wc -l"), 0);
	collect();
	ck_assert_int_eq(removals(), 0);
	expect_many(0, MANY, 6, 2000);
	fixture.files = NULL;
}
END_TEST

START_TEST(packs_that_live_enough_are_left_alone)
{
	put_many(MANY, 100);
	for (unsigned i = 0; i < MANY; i += 4) {
		char key[16];
		snprintf(key, sizeof key, "many%u", i);
		delete (key);
	}
	ck_assert_uint_eq(collect_with(50, false).packs_compacted, 0);
	ck_assert_uint_eq(collect_with(90, false).packs_compacted, 1);
	expect_many(1, MANY, 4, 100);
}
END_TEST

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "bucket", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static void read_rest(struct body_source *source, struct buffer *out)
{
	struct error err = {0};
	ptrdiff_t got;
	do {
		uint8_t *const into = buffer_reserve(out, 50000);
		got = source->read(source, into, 50000, &err);
		ck_assert_msg(got >= 0, "%s", err.text);
		buffer_commit(out, (size_t)got);
	} while (got > 0);
}

/* 0: the whole pack goes; 1: most of it. */
START_TEST(a_read_that_began_before_reads_on)
{
	struct error err = {0};
	struct round round;
	struct buffer got;
	if (_i == 1)
		put_many(MANY, 100);
	put("read", _i == 1 ? 5 * SMALL : LARGE, 7);
	const struct object object = find("read");
	struct body_source *const source =
		object_open(fixture.store, &object, 0, object.size, &err);
	ck_assert_ptr_nonnull(source);
	delete ("read");
	if (_i == 1)
		delete_many_but(8);
	round_start(&round);
	rest(300);
	ck_assert(!atomic_load(&round.is_done));
	buffer_init(&got, LARGE + 100000);
	read_rest(source, &got);
	uint8_t *const bytes = fixture_noise((size_t)object.size, 7);
	ck_assert(span_equal(buffer_span(&got), span_of(bytes, (size_t)object.size)));
	source->close(source);
	const struct gc_report report = round_end(&round);
	ck_assert_uint_eq(report.packs_waiting, 0);
	ck_assert_uint_eq(_i == 1 ? report.packs_compacted : report.packs_deleted, 1);
	if (_i == 1)
		expect_many(0, MANY, 8, 100);
	free(bytes);
	buffer_release(&got);
}
END_TEST

START_TEST(a_connection_that_is_out_may_yet_hold)
{
	struct error err = {0};
	struct round round;
	put("a", LARGE, 1);
	delete ("a");
	struct db *const db = store_reader_take(fixture.store, &err);
	round_start(&round);
	rest(300);
	ck_assert(!atomic_load(&round.is_done));
	ck_assert_int_eq(files(), 2);
	store_reader_give(fixture.store, db);
	ck_assert_uint_eq(round_end(&round).packs_deleted, 1);
}
END_TEST

struct upload {
	struct object_put *put;
	uint8_t *bytes;
};

static void no_room(void *owner)
{
	(void)owner;
}

/* Written, so that its chunks were looked up, and not yet finished. */
static void upload_begin(struct upload *upload, const char *key, uint64_t seed)
{
	struct error err = {0};
	upload->bytes = fixture_noise(LARGE, seed);
	const struct object_put_params params = {
		.bucket = fixture_bucket("bucket"), .key = span_text(key), .room = no_room};
	upload->put = object_put_open(fixture.store, &params, &err);
	ck_assert_ptr_nonnull(upload->put);
	ck_assert_int_eq(
		object_put_write(upload->put, span_of(upload->bytes, LARGE), &err), SINK_TAKEN);
}

static void upload_end(struct upload *upload)
{
	struct error err = {0};
	ck_assert_msg(fixture_call(object_put_call(upload->put), &err) == 0, "%s", err.text);
	free(upload->bytes);
}

START_TEST(an_upload_that_found_chunks_keeps_their_pack)
{
	struct round round;
	struct upload upload;
	put("old", LARGE, 1);
	rest(100); /* the chunk index learns of the pack */
	upload_begin(&upload, "new", 1);
	delete ("old");
	round_start(&round);
	rest(300);
	ck_assert(!atomic_load(&round.is_done));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM packs WHERE state = 2 AND condemned_ms IS NOT NULL"),
		1);
	upload_end(&upload);
	ck_assert_uint_eq(round_end(&round).packs_deleted, 0);
	ck_assert(holds("new", LARGE, 1));
	ck_assert_int_eq(
		fixture_count(fixture.store,
			"SELECT COUNT(*) FROM packs WHERE state = 1 AND condemned_ms IS NULL"),
		1);
	put("newer", LARGE, 1); /* spared, so its chunks are found again */
	ck_assert_int_eq(pack_rows(), 1);
	ck_assert(holds("newer", LARGE, 1));
}
END_TEST

START_TEST(nothing_is_found_in_a_condemned_pack)
{
	struct error err = {0};
	struct round round;
	put("old", LARGE, 1);
	rest(100);
	delete ("old");
	struct db *const db = store_reader_take(fixture.store, &err); /* holds the round up */
	round_start(&round);
	for (int i = 0; i < 500 &&
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE state = 2") == 0;
		i++)
		rest(10);
	put("new", LARGE, 1);
	ck_assert_int_eq(pack_rows(), 2);
	store_reader_give(fixture.store, db);
	ck_assert_uint_eq(round_end(&round).packs_deleted, 1);
	ck_assert(holds("new", LARGE, 1));
}
END_TEST

/* As UploadPartCopy does it: its rows come from a snapshot that is older than gc's. */
START_TEST(rows_that_are_copied_keep_their_chunks)
{
	struct error err = {0};
	struct round round;
	put_many(MANY, 100);
	store_fixture_reopen(&fixture);
	const struct object object = find("many3");
	struct db *const db = store_reader_take(fixture.store, &err);
	struct part_range range = {.length = object.size};
	struct version version;
	ck_assert_int_eq(db_snapshot_begin(db, &err), 0);
	ck_assert_int_eq(version_find_sequence(db, object.sequence, NULL, &version, &err), 1);
	ck_assert_int_eq(
		part_set_load(db, version.part_set, version.size, version.contents, &range, &err),
		0);
	delete_many_but(8);
	round_start(&round);
	rest(300); /* gc has taken its view, in which the source is gone */
	const struct pack_id pack = range.segments[0].pack;
	ck_assert(!pack_store_refer(store_packs(fixture.store), &pack));
	pack_store_refer_again(store_packs(fixture.store), &pack);
	db_snapshot_end(db);
	store_reader_give(fixture.store, db);
	rest(300);
	ck_assert(!atomic_load(&round.is_done));
	const struct chunk_place place = {.pack = pack, .chunk = range.segments[0].first};
	uint8_t into[CHUNK_MAX_BYTES];
	size_t len;
	ck_assert_int_eq(
		pack_store_read_chunk(store_packs(fixture.store), &place, NULL, into, &len, &err),
		0);
	pack_store_unrefer(store_packs(fixture.store), &pack);
	ck_assert_uint_eq(round_end(&round).packs_compacted, 1);
	ck_assert_int_eq(
		pack_store_read_chunk(store_packs(fixture.store), &place, NULL, into, &len, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	free(range.segments);
	expect_many(0, MANY, 8, 100);
}
END_TEST

static bool go_on(void *owner, size_t bytes)
{
	(void)owner;
	(void)bytes;
	return true;
}

/* Referred to by rows that came and went after gc's view. 0: the pack would be compacted; 1:
 * deleted. */
START_TEST(a_pack_that_is_referred_to_at_the_last_moment_stays)
{
	struct error err = {0};
	struct gc_report report = {0};
	put_many(MANY, 100);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	const struct gc_work work = {.store = fixture.store,
		.report = &report,
		.live_percent = 90,
		.is_asked = true,
		.pace.spend = go_on};
	put("other", SMALL, 1);
	delete_many_but(_i == 0 ? 8 : 2 * MANY);
	if (_i == 1)
		delete ("many0");
	struct gc_pack *pack = NULL;
	for (int i = 0; i < 100 && pack == NULL; i++, rest(10))
		pack = gc_pack_look(&work, 1);
	ck_assert_ptr_nonnull(pack);
	for (int i = 0; i < 500 && pack->stage != GC_ACT; i++)
		if (!gc_pack_advance(&work, pack))
			rest(10);
	ck_assert_int_eq(pack->stage, GC_ACT);
	const struct pack_id id = pack->record.id;
	pack_store_refer_again(store_packs(fixture.store), &id);
	gc_pack_advance(&work, pack);
	ck_assert_int_eq(pack->stage, GC_DONE);
	gc_pack_close(&work, pack);
	ck_assert_uint_eq(report.packs_compacted + report.packs_deleted, 0);
	const struct chunk_place place = {.pack = id, .chunk = 3};
	uint8_t into[CHUNK_MAX_BYTES];
	size_t len;
	ck_assert_int_eq(
		pack_store_read_chunk(store_packs(fixture.store), &place, NULL, into, &len, &err),
		0);
	pack_store_unrefer(store_packs(fixture.store), &id);
	ck_assert_uint_eq(due(), 1);
	report = collect();
	ck_assert_uint_eq(_i == 0 ? report.packs_compacted : report.packs_deleted, 1);
	expect_many(0, _i == 0 ? MANY : 0, 8, 100);
	ck_assert(holds("other", SMALL, 1));
}
END_TEST

START_TEST(an_idle_log_is_cut)
{
	for (unsigned i = 0; i < 600; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		put(key, 1000, i);
	}
	int64_t size = shell_number("stat -c %s catalog.db-wal");
	ck_assert_int_gt(size, 1024 * 1024);
	for (int i = 0; i < 100 && size > 0; i++) {
		rest(100);
		size = shell_number("stat -c %s catalog.db-wal");
	}
	ck_assert_int_eq(size, 0);
}
END_TEST

START_TEST(a_condemned_pack_is_removed_after_the_next_start)
{
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	delete ("a");
	struct error err = {0};
	ck_assert_int_eq(
		fixture_run(fixture.store, "UPDATE packs SET state = 2, condemned_ms = 1", &err),
		0);
	store_fixture_reopen(&fixture);
	ck_assert(holds("b", LARGE, 2));
	ck_assert_uint_eq(collect().packs_deleted, 1);
	ck_assert(holds("b", LARGE, 2)); /* spared: it is needed */
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE state = 1"), 1);
	ck_assert_int_eq(files(), 2);
}
END_TEST

static void open_with(const struct gc_options *gc, bool memory)
{
	struct error err = {0};
	store_close(fixture.store);
	const struct store_options options = {.folder = fixture.folder,
		.clock = &fixture.clock.source,
		.pack_max_bytes = 1024 * 1024,
		.gc = *gc,
		.memory_packs = memory};
	fixture.store = store_open(&options, &err);
	ck_assert_msg(fixture.store != NULL, "%s", err.text);
	fixture_await_start(fixture.store);
}

START_TEST(promised_packs_stay)
{
	open_with(&(struct gc_options){.promise_ms = 3600 * 1000}, false);
	put("a", LARGE, 1);
	delete ("a");
	ck_assert_uint_eq(collect().packs_deleted, 0);
	ck_assert_int_eq(files(), 2);
	fixture.clock.now_ms += 3600 * 1000 + 1;
	ck_assert_uint_eq(collect().packs_deleted, 1);
}
END_TEST

static void wait_for_files(int64_t expected)
{
	for (int i = 0; i < 1000 && files() != expected; i++)
		rest(10);
	ck_assert_int_eq(files(), expected);
}

START_TEST(the_store_gives_space_back_by_itself)
{
	put("old", LARGE, 3);
	delete ("old");
	/* what a stop forgot is found by the first round */
	open_with(&(struct gc_options){.interval_s = 1}, false);
	wait_for_files(0);
	put("a", LARGE, 1);
	put("b", LARGE, 2);
	delete ("a");
	wait_for_files(2);
	ck_assert(holds("b", LARGE, 2));
}
END_TEST

START_TEST(a_damaged_record_stops_its_pack_alone)
{
	put_many(MANY, 100);
	put("other", LARGE, 5);
	store_fixture_reopen(&fixture); /* seals the shared pack */
	delete_many_but(8);
	delete ("other");
	char command[1200];
	/* The first object lives: a byte in it. */
	snprintf(command, sizeof command,
		"f=$(ls -S %s/packs/*/*.pack | head -1); printf X | dd of=$f bs=1 seek=5000 conv=notrunc 2>/dev/null",
		fixture.folder);
	ck_assert_int_eq(system(command), 0);
	const struct gc_report report = collect();
	ck_assert_uint_eq(report.packs_compacted, 0);
	ck_assert_uint_eq(report.packs_deleted, 1);
	expect_many(8, MANY, 8, 100);
	ck_assert(!holds("many0", SMALL, 100));
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(files(), 2);
}
END_TEST

START_TEST(catalog_and_chunk_index_shrink_too)
{
	for (unsigned i = 0; i < 2000; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		put(key, i % 2 == 0 ? 600 : 1500, i);
	}
	for (unsigned i = 1; i < 2000; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		delete (key);
	}
	const int64_t before = shell_number(
		"stat -c %s catalog.db catalog.db-wal chunks.db chunks.db-wal | awk '{s+=$1} END {print s}'");
	collect();
	const int64_t after = shell_number(
		"stat -c %s catalog.db catalog.db-wal chunks.db chunks.db-wal | awk '{s+=$1} END {print s}'");
	ck_assert_int_gt(before, 2000000);
	ck_assert_int_lt(after, 700000);
	ck_assert(holds("k0", 600, 0));
}
END_TEST

START_TEST(requests_end_when_the_store_closes)
{
	struct error err = {0};
	struct round round;
	put("a", LARGE, 1);
	delete ("a");
	struct db *const db = store_reader_take(fixture.store, &err);
	round_start(&round);
	rest(100);
	gc_quiesce(store_parts(fixture.store)->gc);
	for (int i = 0; i < 500 && !atomic_load(&round.is_done); i++)
		rest(10);
	ck_assert(atomic_load(&round.is_done));
	ck_assert_int_eq(call_outcome(round.call, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	call_free(round.call);
	struct gc_request late = {0};
	ck_assert_int_eq(gc_run(store_parts(fixture.store)->gc, &late, &err), -1);
	store_reader_give(fixture.store, db);
	store_fixture_reopen(&fixture);
	ck_assert_uint_eq(collect().packs_deleted, 1);
}
END_TEST

/* A model: what each key holds, as a seed and a size; 0: nothing. */
enum { MODEL_KEYS = 24, MODEL_STEPS = 160 };
struct model_key {
	uint64_t seed;
	size_t size;
};

static void model_check(const struct model_key *model)
{
	struct error err = {0};
	for (unsigned i = 0; i < MODEL_KEYS; i++) {
		char key[16];
		struct object object;
		snprintf(key, sizeof key, "m%u", i);
		if (model[i].size > 0)
			ck_assert_msg(holds(key, model[i].size, model[i].seed), "%s", key);
		else
			ck_assert_int_eq(fixture_find(&fixture, "bucket", key, &object, &err), -1);
	}
}

static void copy(unsigned from, unsigned to)
{
	struct error err = {0};
	char source[16];
	char target[16];
	struct object object;
	snprintf(source, sizeof source, "m%u", from);
	snprintf(target, sizeof target, "m%u", to);
	const struct object found = find(source);
	struct object_copy_params params = {
		.source = &found, .bucket = fixture_bucket("bucket"), .key = span_text(target)};
	ck_assert_msg(fixture_copy(fixture.store, &params, &object, &err) == 0, "%s", err.text);
}

static void model_step(struct model_key *model, uint64_t *state)
{
	static const size_t sizes[] = {700, 3000, 20000, 70000, 300000, 900000};
	const uint64_t random = *state =
		*state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	const unsigned key = (unsigned)(random >> 33) % MODEL_KEYS;
	const unsigned other = (unsigned)(random >> 40) % MODEL_KEYS;
	char name[16];
	snprintf(name, sizeof name, "m%u", key);
	switch (random >> 60) {
	case 0:
	case 1:
	case 2:
		delete (name);
		model[key].size = 0;
		break;
	case 3:
	case 4:
		if (model[key].size > 0 && other != key) {
			copy(key, other);
			model[other] = model[key];
		}
		break;
	case 5:
		collect_with(10 + (unsigned)(random >> 50) % 90, false);
		break;
	default:
		/* There are few seeds, so that much repeats. */
		model[key] = (struct model_key){(random >> 20) % 12,
			sizes[(random >> 25) % (sizeof sizes / sizeof *sizes)]};
		put(name, model[key].size, model[key].seed);
		break;
	}
}

START_TEST(any_sequence_keeps_what_was_put)
{
	struct model_key model[MODEL_KEYS] = {{0}};
	uint64_t state = 77 + (uint64_t)_i;
	const bool memory = _i % 2 == 1;
	if (memory) {
		struct error err = {0};
		open_with(&(struct gc_options){0}, true);
		ck_assert(fixture_create_bucket(fixture.store, "bucket", "main", &err) == 0 ||
			err.kind == ERROR_BUCKET_OWNED);
	}
	for (unsigned i = 0; i < MODEL_STEPS; i++) {
		model_step(model, &state);
		if (i % 40 == 39)
			model_check(model);
		if (!memory && i % 60 == 59)
			store_fixture_reopen(&fixture);
	}
	collect();
	model_check(model);
	for (unsigned i = 0; i < MODEL_KEYS; i++) {
		char key[16];
		snprintf(key, sizeof key, "m%u", i);
		delete (key);
	}
	collect();
	ck_assert_int_eq(pack_rows(), 0);
	if (!memory)
		ck_assert_int_eq(files(), 0);
}
END_TEST

/* Uploads of contents that other threads put too, deletes, reads and gc, all at once. */
enum { RACERS = 3, RACE_ROUNDS = 40, RACE_CONTENTS = 4 };
struct racer {
	pthread_t thread;
	unsigned number;
	const char *failure;
};
static atomic_bool race_is_over;

static bool racer_holds(const struct racer *racer, const char *key, struct span bytes)
{
	(void)racer;
	struct error err = {0};
	struct object object;
	struct buffer got;
	struct arena *const arena = arena_new(1024 * 1024);
	const struct object_ref ref = {.bucket = fixture_bucket("bucket"), .key = span_text(key)};
	buffer_init(&got, 1024 * 1024);
	bool same = object_find(fixture.store, &ref, arena, &object, &err) == 0 &&
		fixture_read(fixture.store, &object, 0, object.size, &got, &err) == 0;
	same = same && span_equal(buffer_span(&got), bytes);
	if (!same)
		fprintf(stderr, "%s: %s\n", key, err.text);
	buffer_release(&got);
	arena_free(arena);
	return same;
}

static void *race(void *argument)
{
	struct racer *const racer = argument;
	char key[16];
	snprintf(key, sizeof key, "racer%u", racer->number);
	for (unsigned i = 0; i < RACE_ROUNDS && racer->failure == NULL; i++) {
		struct error err = {0};
		const uint64_t seed = (i * 7 + racer->number * 3) % RACE_CONTENTS;
		const size_t size = 30000 + 150000 * (size_t)(i % 3);
		uint8_t *const bytes = fixture_noise(size, seed);
		if (fixture_put(fixture.store, "bucket", key, span_of(bytes, size), &err) != 0)
			racer->failure = "put";
		else if (!racer_holds(racer, key, span_of(bytes, size)))
			racer->failure = "read";
		else if (i % 4 == 3 &&
			fixture_delete(fixture.store, "bucket", key, NULL, &err) != 0)
			racer->failure = "delete";
		free(bytes);
	}
	return NULL;
}

static void *race_collect(void *argument)
{
	(void)argument;
	while (!atomic_load(&race_is_over)) {
		struct error err = {0};
		struct gc_request request = {.live_percent = 95};
		if (gc_run(store_parts(fixture.store)->gc, &request, &err) != 0)
			fprintf(stderr, "gc: %s\n", err.text);
	}
	return NULL;
}

START_TEST(everything_at_once)
{
	struct racer racers[RACERS];
	pthread_t collector;
	atomic_store(&race_is_over, false);
	ck_assert_int_eq(pthread_create(&collector, NULL, race_collect, NULL), 0);
	for (unsigned i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){.number = i};
		ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(racers[i].thread, NULL);
	atomic_store(&race_is_over, true);
	pthread_join(collector, NULL);
	for (unsigned i = 0; i < RACERS; i++)
		ck_assert_msg(racers[i].failure == NULL, "%s of racer %u", racers[i].failure, i);
	for (unsigned i = 0; i < RACERS; i++) {
		char key[16];
		snprintf(key, sizeof key, "racer%u", i);
		delete (key);
	}
	collect();
	ck_assert_int_eq(pack_rows(), 0);
	ck_assert_int_eq(files(), 0);
}
END_TEST

Suite *test_gc_suite(void);
Suite *test_gc_suite(void)
{
	Suite *const suite = suite_create("gc");
	TCase *const one = tcase_create("gc");
	tcase_add_checked_fixture(one, setup, teardown);
	tcase_set_timeout(one, 120);
	tcase_add_test(one, a_pack_that_nothing_leads_to_goes);
	tcase_add_test(one, a_dry_run_tells_and_does_nothing);
	tcase_add_test(one, a_sweep_that_fails_stops_no_other);
	tcase_add_test(one, a_damaged_index_is_rebuilt_after_the_next_start);
	tcase_add_test(one, a_damaged_index_costs_no_pack);
	tcase_add_test(one, a_damaged_index_costs_no_chunk);
	tcase_add_loop_test(one, a_pack_that_is_referred_to_at_the_last_moment_stays, 0, 2);
	tcase_add_test(one, a_pack_of_which_little_lives_is_written_anew);
	tcase_add_loop_test(
		one, chunks_of_a_compacted_pack_are_found_and_absent_ones_stored_anew, 0, 2);
	tcase_add_loop_test(one, a_file_that_cannot_be_removed_goes_with_a_later_round, 0, 2);
	tcase_add_test(one, packs_that_live_enough_are_left_alone);
	tcase_add_loop_test(one, a_read_that_began_before_reads_on, 0, 2);
	tcase_add_test(one, a_connection_that_is_out_may_yet_hold);
	tcase_add_test(one, an_upload_that_found_chunks_keeps_their_pack);
	tcase_add_test(one, nothing_is_found_in_a_condemned_pack);
	tcase_add_test(one, rows_that_are_copied_keep_their_chunks);
	tcase_add_test(one, an_idle_log_is_cut);
	tcase_add_test(one, a_condemned_pack_is_removed_after_the_next_start);
	tcase_add_test(one, promised_packs_stay);
	tcase_add_test(one, the_store_gives_space_back_by_itself);
	tcase_add_test(one, a_damaged_record_stops_its_pack_alone);
	tcase_add_test(one, catalog_and_chunk_index_shrink_too);
	tcase_add_test(one, requests_end_when_the_store_closes);
	tcase_add_loop_test(one, any_sequence_keeps_what_was_put, 0, 2);
	tcase_add_test(one, everything_at_once);
	suite_add_tcase(suite, one);
	return suite;
}
