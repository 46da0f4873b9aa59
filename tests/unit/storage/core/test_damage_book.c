/* Stored bytes are damaged between two starts, and no read has noticed. Uploads of the same bytes
 * that are acknowledged afterwards can be read. */
#include "storage/core/damage_book.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "storage/core/damage_row.h"
#include "storage/core/store.h"
#include "storage/files/batch.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/packs/pack_store_parts.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/run_fixture.h"
#include "tests/unit/unit.h"

Suite *test_damage_book_suite(void);

enum { ONE_CHUNK = 10000, SMALL = 90000, LARGE = 3000000, LARGEST = 9000000 };

static struct store_fixture fixture;
static struct metrics *metrics;
static uint8_t *noise;
static const size_t sizes[] = {ONE_CHUNK, SMALL, LARGE, LARGEST};

/* The disk cannot give reads of this file that cover this byte. */
static _Atomic ino_t bad_file;
static _Atomic off_t bad_byte;

static ssize_t read_but_there(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	struct stat status;
	off_t end = offset;
	(void)ops;
	for (int i = 0; i < count; i++)
		end += (off_t)parts[i].iov_len;
	if (offset <= bad_byte && bad_byte < end && fstat(fd, &status) == 0 &&
		status.st_ino == bad_file) {
		errno = EIO;
		return -1;
	}
	return file_system()->preadv(file_system(), fd, parts, count, offset);
}

static void set_up(void)
{
	struct error err = {0};
	bad_file = 0;
	metrics = metrics_new();
	fixture = (struct store_fixture){.metrics = metrics};
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGEST, 11);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(metrics);
	free(noise);
}

static int put(const char *key, struct span bytes)
{
	struct error err = {0};
	return fixture_put(fixture.store, "box", key, bytes, &err);
}

static bool holds(const char *key, struct span bytes)
{
	return fixture_holds(&fixture, "box", key, bytes);
}

static int64_t stored_bytes(void)
{
	return fixture_count(fixture.store, "SELECT COALESCE(SUM(length), 0) FROM packs");
}

START_TEST(a_put_onto_damaged_chunks_reads_back_and_heals_the_others)
{
	const struct span bytes = span_of(noise, sizes[_i]);
	ck_assert_int_eq(put("old", bytes), 0);
	damage_fixture_flip_object(&fixture, "box", "old");
	ck_assert_int_eq(put("new", bytes), 0);
	ck_assert(holds("new", bytes));
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("old", bytes));
	store_fixture_reopen(&fixture);
	ck_assert(holds("old", bytes) && holds("new", bytes));
}
END_TEST

/* Small uploads share a pack that is still open: it is sealed before it is mended. */
START_TEST(damage_in_the_open_pack_is_mended_too)
{
	const struct span bytes = span_of(noise, SMALL);
	off_t offset;
	ck_assert_int_eq(put("old", bytes), 0);
	char *path = damage_fixture_find(&fixture, "box", "old", 0, &offset);
	damage_fixture_flip(path, offset);
	free(path);
	ck_assert(!holds("old", bytes));
	damage_fixture_await(&fixture, 1);
	ck_assert_int_eq(put("new", bytes), 0);
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("old", bytes) && holds("new", bytes));
	store_fixture_reopen(&fixture);
	ck_assert(holds("old", bytes) && holds("new", bytes));
}
END_TEST

START_TEST(several_damaged_chunks_of_several_packs_are_mended)
{
	const struct span first = span_of(noise, LARGE);
	const struct span second = span_of(noise + LARGE, LARGE);
	struct span both = span_of(noise, 2 * LARGE);
	off_t offsets[2];
	ck_assert(put("first", first) == 0 && put("second", second) == 0);
	char *paths[] = {damage_fixture_find(&fixture, "box", "first", 0, &offsets[0]),
		damage_fixture_find(&fixture, "box", "second", 0, &offsets[1])};
	store_fixture_stop(&fixture);
	for (int i = 0; i < 2; i++) {
		damage_fixture_flip(paths[i], offsets[i]);
		damage_fixture_flip(paths[i], offsets[i] + 1000000); /* another chunk */
		free(paths[i]);
	}
	store_fixture_start(&fixture);
	ck_assert_int_eq(put("both", both), 0);
	ck_assert(holds("both", both));
	ck_assert(put("first", first) == 0 && put("second", second) == 0);
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("first", first) && holds("second", second) && holds("both", both));
}
END_TEST

static int64_t mended(void)
{
	return metrics_get(metrics, METRIC_CHUNKS_MENDED);
}

static bool some_pack_is_referred(void)
{
	struct pack_cache *cache = store_packs(fixture.store)->cache;
	struct pack_id *packs;
	bool some = false;
	size_t count = pack_cache_list(cache, &packs);
	for (size_t i = 0; i < count; i++)
		some |= pack_cache_is_referred(cache, &packs[i]);
	free(packs);
	return some;
}

/* Afterwards gc may delete all of them, also the packs of the sound chunks. */
START_TEST(a_mend_lets_go_of_all_packs)
{
	struct error err = {0};
	struct gc_request round = {0};
	const struct span bytes = span_of(noise, LARGE);
	ck_assert_int_eq(put("old", bytes), 0);
	damage_fixture_flip_object(&fixture, "box", "old");
	ck_assert_int_eq(put("new", bytes), 0);
	for (int i = 0; i < 2000 && (mended() == 0 || some_pack_is_referred()); i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	ck_assert_int_eq(mended(), 1);
	ck_assert(!some_pack_is_referred());
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "old", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "new", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &round, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(round.report.packs_waiting, 0);
	ck_assert_uint_gt(round.report.packs_deleted, 0);
}
END_TEST

/* The second upload neither reads nor stores the chunk. */
START_TEST(what_was_found_right_costs_nothing_more)
{
	const struct span bytes = span_of(noise, LARGE);
	ck_assert_int_eq(put("old", bytes), 0);
	store_fixture_reopen(&fixture);
	const int64_t stored = stored_bytes();
	ck_assert_int_eq(put("new", bytes), 0);
	ck_assert_int_eq(stored_bytes(), stored);
	off_t offset;
	char *path = damage_fixture_find(&fixture, "box", "old", 0, &offset);
	damage_fixture_flip(path, offset);
	/* no read: the bit says that the chunk was found right since the start */
	ck_assert_int_eq(put("newer", bytes), 0);
	ck_assert_int_eq(stored_bytes(), stored);
	damage_fixture_flip(path, offset);
	free(path);
	ck_assert(holds("newer", bytes));
}
END_TEST

static void start_with_bad_disk(const char *key, const struct file_ops *files)
{
	struct stat status;
	off_t offset;
	char *path = damage_fixture_find(&fixture, "box", key, 0, &offset);
	ck_assert_int_eq(stat(path, &status), 0);
	free(path);
	store_fixture_stop(&fixture);
	fixture.files = files;
	store_fixture_start(&fixture);
	bad_byte = offset + PACK_RECORD_HEADER_BYTES + 3;
	bad_file = status.st_ino;
}

/* Only one chunk is stored again: its neighbours, which the same read covers, are right. */
START_TEST(what_the_disk_cannot_read_is_stored_anew)
{
	struct file_ops files = *file_system();
	const struct span bytes = span_of(noise, LARGE);
	files.preadv = read_but_there;
	ck_assert_int_eq(put("old", bytes), 0);
	const int64_t stored = stored_bytes();
	start_with_bad_disk("old", &files);
	ck_assert_int_eq(put("new", bytes), 0);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHUNKS_DAMAGED), 1);
	ck_assert_int_lt(stored_bytes() - stored, 2 * CHUNK_MAX_BYTES);
	ck_assert(holds("new", bytes));
	damage_fixture_await(&fixture, 0);
	ck_assert(holds("old", bytes));
	store_fixture_stop(&fixture);
	fixture.files = NULL;
	store_fixture_start(&fixture);
}
END_TEST

/* A read finds the damage, and a restart does not forget it. */
START_TEST(known_damage_outlives_a_restart_and_is_not_copied)
{
	struct error err = {0};
	struct object source;
	struct object copy;
	const struct span bytes = span_of(noise, LARGE);
	ck_assert_int_eq(put("old", bytes), 0);
	damage_fixture_flip_object(&fixture, "box", "old");
	ck_assert(!holds("old", bytes));
	damage_fixture_await(&fixture, 1);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM damaged_chunks"), 1);
	ck_assert_int_eq(fixture_find(&fixture, "box", "old", &source, &err), 0);
	struct object_copy_params params = {
		.source = &source, .bucket = fixture_bucket("box"), .key = span_text("copy")};
	ck_assert_int_eq(fixture_copy(fixture.store, &params, &copy, &err), -1);
	ck_assert_msg(err.kind == ERROR_CONTENT_DAMAGED && strstr(err.text, "'old'") != NULL, "%s",
		err.text);
	ck_assert_int_eq(put("again", bytes), 0);
	damage_fixture_await(&fixture, 0);
	ck_assert_msg(fixture_copy(fixture.store, &params, &copy, &err) == 0, "%s", err.text);
	ck_assert(holds("copy", bytes));
}
END_TEST

static int may_read(
	void *owner, struct bucket_ref bucket, struct span key, bool is_current, struct error *err)
{
	(void)owner, (void)bucket, (void)key, (void)is_current, (void)err;
	return 1;
}

static struct error run_line(enum batch_kind kind, const struct chunk_id *file)
{
	struct error err = {0};
	struct batch_line line = {.kind = kind,
		.path = span_text("line"),
		.file = *file,
		.source = fixture_bucket("box")};
	const struct batch_params params = {.bucket = fixture_bucket("box"),
		.account = span_text("main"),
		.lines = &line,
		.count = 1,
		.may_read = may_read};
	ck_assert_msg(fixture_call(batch_call(fixture.store, &params), &err) == 0, "%s", err.text);
	return line.error;
}

START_TEST(a_batch_adds_nothing_that_cannot_be_read)
{
	struct error err = {0};
	struct object source;
	const struct span bytes = span_of(noise, sizes[_i]);
	ck_assert_int_eq(put("old", bytes), 0);
	ck_assert_int_eq(fixture_find(&fixture, "box", "old", &source, &err), 0);
	damage_fixture_flip_object(&fixture, "box", "old");
	err = run_line(BATCH_ADD, &source.file_hash);
	ck_assert_msg(err.kind == ERROR_CONTENT_DAMAGED && strstr(err.text, "'line'") != NULL,
		"%d %s", err.kind, err.text);
	damage_fixture_await(&fixture, 1);
	err = run_line(BATCH_COPY, &source.file_hash);
	ck_assert_msg(err.kind == ERROR_CONTENT_DAMAGED, "%d %s", err.kind, err.text);
	ck_assert_int_eq(put("again", bytes), 0);
	damage_fixture_await(&fixture, 0);
	err = run_line(BATCH_ADD, &source.file_hash);
	ck_assert_msg(err.kind == ERROR_NONE, "%s", err.text);
	ck_assert(holds("line", bytes));
}
END_TEST

START_TEST(a_step_is_not_published_of_what_cannot_be_read)
{
	static const char key[] = "run/steps/000001/delta.safetensors";
	struct error err = {0};
	struct run_message run;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "bucket", "run", &run, &err), 0);
	struct step_message step = run_fixture_prepare(&fixture, 0, true, 0);
	run_fixture_publish_ok(&fixture, &step);
	step = run_fixture_step(&fixture, 1);
	run_fixture_put(&fixture, key, span_of(noise, LARGE));
	run_fixture_add_form(
		&fixture, &step, STEP_DELTA, "delta.safetensors", key, span_of(noise, LARGE));
	damage_fixture_flip_object(&fixture, "bucket", key);
	ck_assert_int_eq(run_fixture_publish(&fixture, &step, NULL, &err), -1);
	ck_assert_msg(err.kind == ERROR_CONTENT_DAMAGED && strstr(err.text, key) != NULL, "%d %s",
		err.kind, err.text);
	run_fixture_put(&fixture, key, span_of(noise, LARGE));
	run_fixture_publish_ok(&fixture, &step);
	ck_assert(fixture_holds(&fixture, "bucket", key, span_of(noise, LARGE)));
}
END_TEST

/* gc drops the rows of a pack with the pack. */
START_TEST(rows_go_with_their_pack)
{
	struct error err = {0};
	struct gc_request round = {0};
	const struct span bytes = span_of(noise, LARGE);
	ck_assert_int_eq(put("old", bytes), 0);
	damage_fixture_flip_object(&fixture, "box", "old");
	ck_assert(!holds("old", bytes));
	damage_fixture_await(&fixture, 1);
	ck_assert_int_eq(fixture_delete(fixture.store, "box", "old", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &round, &err) == 0, "%s", err.text);
	damage_fixture_await(&fixture, 0);
}
END_TEST

/* Adds rows for the first five chunks of a pack while the store is closed; with `forgets` it drops
 * two of them. */
static struct pack_id add_rows(bool forgets)
{
	struct error err = {0};
	struct chunk_place place = {0};
	char *path = store_fixture_path(&fixture, "catalog.db");
	struct db *db = db_open(path, DB_WRITE, &err);
	ck_assert_msg(db != NULL, "%s", err.text);
	struct db_statement *pack = db_query(db, "SELECT id FROM packs LIMIT 1", &err);
	ck_assert_int_eq(db_step(pack, &err), 1);
	memcpy(place.pack.bytes, db_column_blob(pack, 0).data, PACK_ID_BYTES);
	db_reset(pack);
	ck_assert(db_keep_sums(db, &err) == 0 && db_begin(db, &err) == 0);
	for (; place.chunk < 5; place.chunk++)
		ck_assert_int_eq(damage_row_add(db, &place, &err), 0);
	ck_assert(!forgets || damage_row_drop(db, &place.pack, 1, 2, &err) == 0);
	ck_assert_int_eq(db_commit(db, &err), 0);
	db_close(db);
	free(path);
	return place.pack;
}

/* Only the rows of the mended chunks are dropped. */
START_TEST(rows_of_other_chunks_stay)
{
	ck_assert_int_eq(put("old", span_of(noise, LARGE)), 0);
	store_fixture_stop(&fixture);
	add_rows(true);
	store_fixture_start(&fixture);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT SUM(1 << chunk) FROM damaged_chunks"),
		1 << 0 | 1 << 3 | 1 << 4);
}
END_TEST

/* The disk can read them again. */
START_TEST(what_is_read_right_again_is_forgotten)
{
	struct error err = {0};
	ck_assert_int_eq(put("old", span_of(noise, LARGE)), 0);
	store_fixture_stop(&fixture);
	const struct pack_run run = {.pack = add_rows(false), .chunks = 4};
	store_fixture_start(&fixture);
	ck_assert_int_eq(pack_store_check_records(store_packs(fixture.store), &run, &err), 0);
	damage_fixture_await(&fixture, 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT chunk FROM damaged_chunks"), 4);
}
END_TEST

Suite *test_damage_book_suite(void)
{
	Suite *suite = suite_create("damage_book");
	TCase *tests = tcase_create("damage");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, a_put_onto_damaged_chunks_reads_back_and_heals_the_others, 0,
		sizeof sizes / sizeof *sizes);
	tcase_add_test(tests, damage_in_the_open_pack_is_mended_too);
	tcase_add_test(tests, several_damaged_chunks_of_several_packs_are_mended);
	tcase_add_test(tests, a_mend_lets_go_of_all_packs);
	tcase_add_test(tests, what_was_found_right_costs_nothing_more);
	tcase_add_test(tests, what_the_disk_cannot_read_is_stored_anew);
	tcase_add_test(tests, known_damage_outlives_a_restart_and_is_not_copied);
	tcase_add_loop_test(tests, a_batch_adds_nothing_that_cannot_be_read, 1, 3);
	tcase_add_test(tests, a_step_is_not_published_of_what_cannot_be_read);
	tcase_add_test(tests, rows_go_with_their_pack);
	tcase_add_test(tests, rows_of_other_chunks_stay);
	tcase_add_test(tests, what_is_read_right_again_is_forgotten);
	suite_add_tcase(suite, tests);
	return suite;
}
