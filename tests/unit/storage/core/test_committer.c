#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/core/acknowledged.h"
#include "storage/core/committer.h"

static char *folder;
static char path[512];
static struct db *writer; /* the committer's; used only inside changes */
static struct committer *committer;
static struct metrics *metrics;
static struct db *reader;

static const char SQL_INSERT[] = "INSERT INTO t (id) VALUES (?1)";
static const char SQL_MAX[] = "SELECT COUNT(*) FROM t";
static const char SQL_DEFERRED[] = "INSERT INTO child (parent) VALUES (99)";
static const char SQL_BIG[] = "INSERT INTO big (bytes) VALUES (zeroblob(100000))";

static void set_up(void)
{
	struct error err = {0};
	folder = unit_scratch_make();
	snprintf(path, sizeof(path), "%s/test.db", folder);
	writer = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(
		db_run_script(writer,
			"CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE big (bytes BLOB);"
			"CREATE TABLE parent (id INTEGER PRIMARY KEY);"
			"CREATE TABLE child (parent INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)",
			&err),
		0);
	metrics = metrics_new();
	reader = db_open(path, DB_READ, &err);
	committer = committer_start(
		&(const struct committer_options){.db = writer, .metrics = metrics});
}

static void tear_down(void)
{
	committer_stop(committer);
	db_close(reader);
	metrics_free(metrics);
	unit_scratch_remove(folder);
}

enum wish {
	WISH_INSERT,
	WISH_INSERT_THEN_FAIL,
	WISH_BREAK_COMMIT,
	WISH_FAIL_PLACE,
	WISH_FILL_DISK,
	WISH_WAIT
};

struct test_change {
	struct change change; /* first */
	enum wish wish;
	int64_t id;
	int64_t seen;         /* rows when it ran */
	int64_t rows_at_done; /* rows that a reader saw when done was called */
	atomic_bool running;  /* for WISH_WAIT, like `go` */
	atomic_bool go;
	atomic_bool done;
	int order;
};
static atomic_int order;

static int64_t count(struct db *db)
{
	struct error err = {0};
	int64_t rows = -1;
	ck_assert_int_eq(db_find_i64(db, SQL_MAX, &rows, &err), 1);
	return rows;
}

static int place(struct change *change, struct error *err)
{
	return ((struct test_change *)change)->wish == WISH_FAIL_PLACE
		? error_set(err, ERROR_NO_SPACE, "placing")
		: 0;
}

static int apply(struct change *base, struct db *db, struct error *err)
{
	struct test_change *const change = (struct test_change *)base;
	change->seen = count(db);
	atomic_store(&change->running, true);
	while (change->wish == WISH_WAIT && !atomic_load(&change->go))
		usleep(100);
	if (change->wish == WISH_FILL_DISK)
		return db_run_script(db, "PRAGMA max_page_count=20", err) != 0
			? -1
			: db_run(db, SQL_BIG, err);
	if (db_run(db, SQL_INSERT, err, db_i64(change->id)) != 0)
		return -1;
	if (change->wish == WISH_INSERT_THEN_FAIL)
		return error_set(err, ERROR_PRECONDITION, "refused");
	return change->wish == WISH_BREAK_COMMIT ? db_run(db, SQL_DEFERRED, err) : 0;
}

static void done(struct change *base)
{
	struct test_change *const change = (struct test_change *)base;
	/* only the committer's thread reads while changes run */
	change->rows_at_done = count(reader);
	change->order = atomic_fetch_add(&order, 1);
	atomic_store(&change->done, true);
}

static void submit(struct test_change *change, enum wish wish, int64_t id)
{
	change->change.place = wish == WISH_FAIL_PLACE ? place : NULL;
	change->change.apply = apply;
	change->change.done = done;
	change->wish = wish;
	change->id = id;
	committer_submit(committer, &change->change);
}

static void until_done(const struct test_change *change)
{
	while (!atomic_load(&change->done))
		usleep(200);
}

/* Keeps the committer inside a batch of its own, so that changes queued meanwhile come into one
 * batch. */
static struct test_change *hold(void)
{
	struct test_change *const holder = memory_new(sizeof(*holder));
	submit(holder, WISH_WAIT, 1000000);
	while (!atomic_load(&holder->running))
		usleep(100);
	return holder;
}

static void let_go(struct test_change *holder)
{
	atomic_store(&holder->go, true);
	until_done(holder);
	free(holder);
}

START_TEST(changes_are_durable_before_done_and_in_order)
{
	enum { MANY = 600 };
	struct test_change *const changes = memory_new_array(MANY, sizeof(*changes));
	struct test_change *const holder = hold();
	for (int i = 0; i < MANY; i++)
		submit(&changes[i], WISH_INSERT, i);
	let_go(holder);
	for (int i = 0; i < MANY; i++) {
		until_done(&changes[i]);
		ck_assert(!changes[i].change.failed);
		ck_assert_int_eq(changes[i].seen, i + 1);
		ck_assert_int_gt(changes[i].rows_at_done, i); /* invariant 2 */
		ck_assert(i == 0 || changes[i].order > changes[i - 1].order);
	}
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHANGES), MANY + 1);
	ck_assert_int_lt(metrics_get(metrics, METRIC_COMMITS), 10); /* in batches */
	free(changes);
}
END_TEST

static int insert_alone(struct change *change, struct db *db, struct error *err)
{
	((struct test_change *)change)->seen = count(db);
	if (db_in_transaction(db) || db_begin(db, err) != 0)
		return -1;
	return db_run(db, SQL_INSERT, err, db_i64(((struct test_change *)change)->id)) != 0
		? -1
		: db_commit(db, err);
}

/* A change that runs alone does not wait for later changes and shares its batch with none. */
START_TEST(a_change_that_runs_outside_of_transactions_keeps_its_place)
{
	struct test_change changes[4] = {0};
	struct test_change *const holder = hold();
	for (int64_t i = 0; i < 4; i++) {
		changes[i].change.alone = i == 1 || i == 2 ? insert_alone : NULL;
		submit(&changes[i], WISH_INSERT, i + 1);
	}
	let_go(holder);
	for (int64_t i = 0; i < 4; i++) {
		until_done(&changes[i]);
		ck_assert_msg(!changes[i].change.failed, "%lld: %s", (long long)i,
			changes[i].change.error.text);
		ck_assert_int_eq(changes[i].seen, i + 1); /* and what the holder wrote */
		ck_assert_int_ge(changes[i].rows_at_done, i + 2);
	}
}
END_TEST

START_TEST(a_refused_change_rolls_back_alone)
{
	struct test_change changes[4];
	memset(changes, 0, sizeof(changes));
	struct test_change *const holder = hold();
	submit(&changes[0], WISH_INSERT, 1);
	submit(&changes[1], WISH_INSERT_THEN_FAIL, 2);
	submit(&changes[2], WISH_FAIL_PLACE, 3);
	submit(&changes[3], WISH_INSERT, 4);
	let_go(holder);
	for (int i = 0; i < 4; i++)
		until_done(&changes[i]);
	ck_assert(!changes[0].change.failed && !changes[3].change.failed);
	ck_assert_int_eq(changes[1].change.error.kind, ERROR_PRECONDITION);
	ck_assert_int_eq(changes[2].change.error.kind, ERROR_NO_SPACE);
	ck_assert_int_eq(count(reader), 3);
	ck_assert_int_eq(metrics_get(metrics, METRIC_CHANGES_REFUSED), 2);
}
END_TEST

START_TEST(a_failed_commit_fails_every_change_of_the_batch)
{
	struct test_change changes[4];
	memset(changes, 0, sizeof(changes));
	struct test_change after;
	memset(&after, 0, sizeof(after));
	struct test_change *const holder = hold();
	submit(&changes[0], WISH_INSERT, 1);
	submit(&changes[1], WISH_INSERT_THEN_FAIL, 2); /* judged in a state that was rolled back */
	submit(&changes[2], WISH_BREAK_COMMIT, 3);
	submit(&changes[3], WISH_FAIL_PLACE, 4);
	let_go(holder);
	for (int i = 0; i < 4; i++) {
		until_done(&changes[i]);
		ck_assert(changes[i].change.failed);
		ck_assert_int_eq(
			changes[i].change.error.kind, i == 3 ? ERROR_NO_SPACE : ERROR_INVALID);
		ck_assert(!changes[i].change.in_doubt); /* refused, not broken off */
	}
	submit(&after, WISH_INSERT, 1);
	until_done(&after);
	ck_assert(!after.change.failed);
}
END_TEST

START_TEST(a_full_disk_fails_the_change_and_the_store_goes_on)
{
	struct test_change full;
	struct test_change after;
	memset(&full, 0, sizeof(full));
	memset(&after, 0, sizeof(after));
	submit(&full, WISH_FILL_DISK, 1);
	until_done(&full);
	ck_assert(full.change.failed);
	ck_assert_int_eq(full.change.error.kind, ERROR_NO_SPACE);
	submit(&after, WISH_INSERT, 1);
	until_done(&after);
	ck_assert(!after.change.failed);
	ck_assert_int_eq(after.rows_at_done, 1);
}
END_TEST

START_TEST(run_waits_for_the_outcome)
{
	struct error err = {0};
	struct test_change change = {.change.apply = apply, .wish = WISH_INSERT, .id = 7};
	ck_assert_int_eq(committer_run(committer, &change.change, &err), 0);
	ck_assert_int_eq(count(reader), 1);
	ck_assert_int_eq(committer_run(committer, &change.change, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	ck_assert(change.change.failed);
	change.change.place = place;
	change.wish = WISH_FAIL_PLACE;
	ck_assert_int_eq(committer_run(committer, &change.change, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
}
END_TEST

enum { WAITERS = 8, TURNS = 30 };

struct waiter {
	pthread_t thread;
	int64_t first; /* its ids follow */
	int wrong;     /* outcomes that belong to another waiter */
};

/* Every third change is refused. */
static void *run_and_wait(void *argument)
{
	struct waiter *waiter = argument;
	for (int i = 0; i < TURNS; i++) {
		struct error err = {0};
		bool is_refused = i % 3 == 2;
		struct test_change change = {.change.apply = apply,
			.wish = is_refused ? WISH_INSERT_THEN_FAIL : WISH_INSERT,
			.id = waiter->first + i};
		int result = committer_run(committer, &change.change, &err);
		waiter->wrong += result != (is_refused ? -1 : 0) ||
			change.change.failed != is_refused ||
			err.kind != (is_refused ? ERROR_PRECONDITION : ERROR_NONE);
	}
	return NULL;
}

START_TEST(each_that_waits_learns_of_its_own_change)
{
	struct waiter waiters[WAITERS] = {0};
	for (int i = 0; i < WAITERS; i++) {
		waiters[i].first = 1000 * i;
		ck_assert_int_eq(
			pthread_create(&waiters[i].thread, NULL, run_and_wait, &waiters[i]), 0);
	}
	for (int i = 0; i < WAITERS; i++) {
		pthread_join(waiters[i].thread, NULL);
		ck_assert_int_eq(waiters[i].wrong, 0);
	}
	ck_assert_int_eq(count(reader), WAITERS * TURNS * 2 / 3);
}
END_TEST

START_TEST(stopping_runs_what_is_queued)
{
	enum { MANY = 300 };
	struct error err = {0};
	struct test_change *const changes = memory_new_array(MANY, sizeof(*changes));
	for (int i = 0; i < MANY; i++)
		submit(&changes[i], WISH_INSERT, i);
	committer_stop(committer);
	for (int i = 0; i < MANY; i++)
		ck_assert(atomic_load(&changes[i].done) && !changes[i].change.failed);
	free(changes);
	committer = committer_start(&(const struct committer_options){
		.db = db_open(path, DB_WRITE, &err), .metrics = metrics});
}
END_TEST

static struct acknowledgement noted(const char *in)
{
	struct error err = {0};
	struct acknowledgement last = {0};
	ck_assert_msg(acknowledged_read(in, &last, &err) == 0, "%s", err.text);
	return last;
}

/* As gc does when it writes the catalog again. */
static void begin_the_log_again(void)
{
	struct error err = {0};
	struct db *other = db_open(path, DB_WRITE, &err);
	ck_assert_int_eq(db_vacuum_whole(other, &err), 0);
	ck_assert_int_eq(db_checkpoint_restart(other, &err), 0);
	ck_assert_int_eq(db_run_script(other, "INSERT INTO big (bytes) VALUES (x'')", &err), 0);
	db_close(other);
}

START_TEST(what_is_noted_is_the_last_commit_that_wrote_something)
{
	struct error err = {0};
	struct acknowledgement last;
	struct test_change changes[3];
	char note[600];
	memset(changes, 0, sizeof(changes));
	snprintf(note, sizeof(note), "%s/acknowledged", folder);
	committer_stop(committer);
	writer = db_open(path, DB_WRITE, &err);
	struct acknowledged *const acknowledged =
		acknowledged_open(file_system(), note, &last, &err);
	committer = committer_start(&(const struct committer_options){.db = writer,
		.metrics = metrics,
		.acknowledged = acknowledged,
		.store = {.id = {1}, .life = 1}});
	submit(&changes[0], WISH_INSERT, 1);
	until_done(&changes[0]);
	const struct acknowledgement first = noted(note);
	ck_assert_uint_gt(first.log_frames, 0);
	begin_the_log_again();
	submit(&changes[1], WISH_FAIL_PLACE, 2);
	until_done(&changes[1]);
	const struct acknowledgement second = noted(note);
	ck_assert_uint_eq(second.log_salt, first.log_salt);
	ck_assert_uint_eq(second.log_frames, first.log_frames);
	submit(&changes[2], WISH_INSERT, 3);
	until_done(&changes[2]);
	ck_assert_uint_ne(noted(note).log_salt, first.log_salt);
	committer_stop(committer);
	acknowledged_close(acknowledged);
	committer = committer_start(&(const struct committer_options){
		.db = db_open(path, DB_WRITE, &err), .metrics = metrics});
}
END_TEST

Suite *test_committer_suite(void);
Suite *test_committer_suite(void)
{
	Suite *const suite = suite_create("committer");
	TCase *const tests = tcase_create("committer");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, changes_are_durable_before_done_and_in_order);
	tcase_add_test(tests, a_change_that_runs_outside_of_transactions_keeps_its_place);
	tcase_add_test(tests, a_refused_change_rolls_back_alone);
	tcase_add_test(tests, a_failed_commit_fails_every_change_of_the_batch);
	tcase_add_test(tests, a_full_disk_fails_the_change_and_the_store_goes_on);
	tcase_add_test(tests, run_waits_for_the_outcome);
	tcase_add_test(tests, each_that_waits_learns_of_its_own_change);
	tcase_add_test(tests, stopping_runs_what_is_queued);
	tcase_add_test(tests, what_is_noted_is_the_last_commit_that_wrote_something);
	suite_add_tcase(suite, tests);
	return suite;
}
