/*   look --sound--> proven, then wait for a page that is found damaged, and look again
 *    |---an index, or the use of pages--> rebuild, twice at most, then look again
 *    '---a table--> damaged: named in the log, /-/ready and a metric; look again after 15 minutes
 *
 * A rebuild is a change that the committer runs alone, so no commit comes while it runs. */
#include "storage/start/catalog_checker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/worker_thread.h"
#include "storage/buckets/bucket_access.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/core/store_row.h"
#include "storage/db/db_check.h"
#include "storage/db/db_rebuild.h"
#include "storage/packs/store_health.h"

enum {
	WATCH_MS = 1000,           /* between two looks at whether a page was found damaged */
	AGAIN_MS = 15 * 60 * 1000, /* between two looks while the catalog is damaged */
	REBUILDS = 2,              /* in a row; what is still not sound then counts as damage */
	TEXT_BYTES = 400
};

struct catalog_checker {
	struct store *store;
	struct worker_thread thread;
	uint64_t damage_seen; /* db_damage as the last look accounts for it */
	uint64_t mended_seen; /* db_mended, as far as the metric has it */
	unsigned rebuilds;    /* since everything was last found sound */
	int64_t look_due_ms;  /* the next look at a damaged catalog, by the monotonic clock */
	/* findings of the running or last look */
	size_t table_findings;
	size_t other_findings; /* of indexes and of the use of pages */
	char worst[TEXT_BYTES];
};

/* For a rebuild that finds two current versions of a key: the newest stays current, and the other
 * is kept as a hidden version under its id. Then the totals of buckets are counted again. */
static const char *const settled_tables[] = {"versions", "bucket_totals", NULL};
static const char SQL_SETTLE[] =
	"UPDATE versions SET state = 0, retired_ms = NULL WHERE state = 1 AND EXISTS (SELECT 1 FROM"
	" (SELECT bucket, key, max(sequence) AS newest FROM versions NOT INDEXED WHERE state = 1"
	" GROUP BY bucket, key HAVING count(*) > 1) d"
	" WHERE d.bucket = versions.bucket AND d.key = versions.key AND versions.sequence < d.newest);"
	"UPDATE bucket_totals SET files = t.files, bytes = t.bytes FROM"
	" (SELECT bucket, count(*) AS files, coalesce(sum(size), 0) AS bytes FROM versions NOT INDEXED"
	" WHERE state = 1 AND is_marker = 0 GROUP BY bucket) t"
	" WHERE t.bucket = bucket_totals.bucket AND (bucket_totals.files <> t.files OR bucket_totals.bytes <> t.bytes)";

struct checker_change {
	struct change change; /* first */
	struct store *store;
};

static int64_t catalog_checker_round(void *owner);
static void note(const struct catalog_checker *checker, enum work_state state, const char *what);
static void watch_file(struct catalog_checker *checker);
static void try_write(struct catalog_checker *checker);
static int catalog_checker_apply_try(struct change *change, struct db *db, struct error *err);
static bool is_settled(struct catalog_checker *checker);
static bool has_new_damage(struct catalog_checker *checker);
static int look(struct catalog_checker *checker, struct error *err);
static void catalog_checker_take_finding(void *owner, const struct db_finding *finding);
static bool catalog_checker_goes_on(void *owner);
static int name_wrong_access(struct catalog_checker *checker, struct db *db, struct error *err);
static int64_t judge(struct catalog_checker *checker);
static int64_t set_damaged(struct catalog_checker *checker, const char *why);
static int rebuild(struct catalog_checker *checker, struct error *err);
static int catalog_checker_run_rebuild(struct change *change, struct db *db, struct error *err);

struct catalog_checker *catalog_checker_start(struct store *store)
{
	static const struct worker_thread_plan plan = {
		.name = "catalog_check", .first_ms = 0, .round = catalog_checker_round};
	struct catalog_checker *checker = memory_new(sizeof(*checker));
	checker->store = store;
	note(checker, WORK_RESTING, "");
	worker_thread_start(&checker->thread, &plan, checker);
	return checker;
}

void catalog_checker_stop(struct catalog_checker *checker)
{
	if (checker == NULL)
		return;
	worker_thread_stop(&checker->thread);
	worker_thread_release(&checker->thread);
	free(checker);
}

static int64_t catalog_checker_round(void *owner)
{
	struct catalog_checker *checker = owner;
	struct store_health *health = store_health(checker->store);
	struct error err = {0};
	watch_file(checker);
	if (store_health_wants_try(health))
		try_write(checker);
	if (is_settled(checker))
		return WATCH_MS;
	if (store_health_proof(health) == STORE_PROVEN)
		store_health_set_proof(health, STORE_UNPROVEN, NULL);
	note(checker, WORK_WORKING, "checks the whole catalog");
	const int looked = look(checker, &err);
	note(checker, WORK_RESTING, looked == 0 ? "has checked the whole catalog" : "");
	if (looked == 0)
		return judge(checker);
	if (err.kind == ERROR_BUSY)
		return WATCH_MS; /* the store is closing */
	log_failure(store_log(checker->store), LOG_ERROR, NULL, "catalog_finding", &err);
	return set_damaged(checker, err.text);
}

static void note(const struct catalog_checker *checker, enum work_state state, const char *what)
{
	work_notes_set(store_work_notes(checker->store), WORK_CATALOG_CHECK, state, "%s", what);
}

/* Whether the catalog still has its name: a file that was deleted is served until the end. */
static void watch_file(struct catalog_checker *checker)
{
	struct error ignored;
	bool has_name = true;
	struct db *db = store_reader_take(checker->store, &ignored);
	if (db == NULL)
		return;
	(void)db_probe(db, &has_name, &ignored);
	store_reader_give(checker->store, db);
	store_health_set_unnamed(store_health(checker->store), !has_name);
}

/* Commits a change that changes nothing. */
static void try_write(struct catalog_checker *checker)
{
	struct checker_change change = {
		.change = {.apply = catalog_checker_apply_try}, .store = checker->store};
	struct error why;
	const int result = committer_run(store_committer(checker->store), &change.change, &why);
	store_health_note_try(store_health(checker->store), result == 0 ? NULL : &why);
}

static int catalog_checker_apply_try(struct change *change, struct db *db, struct error *err)
{
	return store_row_set_life(db, store_life(((struct checker_change *)change)->store), err);
}

/* Whether this round has nothing to look at. */
static bool is_settled(struct catalog_checker *checker)
{
	enum store_proof proof = store_health_proof(store_health(checker->store));
	if (proof == STORE_DAMAGED)
		return clock_monotonic_ms() < checker->look_due_ms;
	return proof == STORE_PROVEN && !has_new_damage(checker);
}

static bool has_new_damage(struct catalog_checker *checker)
{
	struct error ignored;
	struct db *db = store_reader_take(checker->store, &ignored);
	bool has = db == NULL || db_damage(db) != checker->damage_seen;
	if (db != NULL)
		store_reader_give(checker->store, db);
	return has;
}

static int look(struct catalog_checker *checker, struct error *err)
{
	const struct db_check check = {.found = catalog_checker_take_finding,
		.goes_on = catalog_checker_goes_on,
		.owner = checker};
	const int64_t begun_us = clock_monotonic_us();
	struct db *db = db_open(store_catalog_path(checker->store), DB_READ, err);
	if (db == NULL)
		return -1;
	checker->table_findings = 0;
	checker->other_findings = 0;
	checker->damage_seen = db_damage(db);
	int result = db_check(db, &check, err);
	if (result == 0 && checker->table_findings == 0)
		result = name_wrong_access(checker, db, err);
	uint64_t mended = db_mended(db);
	metrics_add(store_metrics(checker->store), METRIC_CATALOG_MENDED,
		(int64_t)(mended - checker->mended_seen));
	checker->mended_seen = mended;
	if (result == 0 && checker->table_findings + checker->other_findings == 0)
		checker->damage_seen = db_damage(db); /* pages found damaged meanwhile are right */
	db_close(db);
	if (result == 0)
		metrics_work(store_metrics(checker->store), METRIC_WORK_CATALOG_CHECK, begun_us);
	return result;
}

static void catalog_checker_take_finding(void *owner, const struct db_finding *finding)
{
	struct catalog_checker *checker = owner;
	bool is_table = finding->kind == DB_FINDING_TABLE;
	const struct log_field fields[] = {log_text("table", finding->table),
		log_text("index", finding->index != NULL ? finding->index : ""),
		log_text("message", finding->detail)};
	log_event(store_log(checker->store), is_table ? LOG_ERROR : LOG_WARNING, NULL,
		"catalog_finding", fields, 3);
	if (checker->table_findings == 0 && (is_table || checker->other_findings == 0))
		snprintf(checker->worst, sizeof(checker->worst), "%s %s: %s",
			is_table ? "table" : "index",
			is_table || finding->index == NULL ? finding->table : finding->index,
			finding->detail);
	checker->table_findings += is_table;
	checker->other_findings += !is_table;
}

static bool catalog_checker_goes_on(void *owner)
{
	return !worker_thread_is_stopping(&((struct catalog_checker *)owner)->thread);
}

/* Logs the buckets that are private now because their rights are damaged. */
static int name_wrong_access(struct catalog_checker *checker, struct db *db, struct error *err)
{
	enum { ARENA_BYTES = 4096 };
	int64_t bucket = INT64_MIN;
	int got = 1;
	/* in a snapshot, because a bucket that a change has half written is not damaged */
	if (db_snapshot_begin(db, err) != 0)
		return -1;
	while (got == 1) {
		struct arena *arena = arena_new(ARENA_BYTES);
		struct span name = {NULL, 0};
		got = bucket_access_next_wrong(db, bucket, arena, &bucket, &name, err);
		const struct log_field field = log_span("bucket", name);
		if (got == 1)
			log_event(store_log(checker->store), LOG_ERROR, NULL,
				"bucket_access_damaged", &field, 1);
		arena_free(arena);
	}
	db_snapshot_end(db);
	return got;
}

/* Acts on the findings. Returns the milliseconds until the next round; 0: look again at once. */
static int64_t judge(struct catalog_checker *checker)
{
	struct store_health *health = store_health(checker->store);
	struct error err = {0};
	if (checker->table_findings + checker->other_findings == 0) {
		checker->rebuilds = 0;
		store_health_set_proof(health, STORE_PROVEN, NULL);
		return WATCH_MS;
	}
	if (checker->table_findings > 0 || checker->rebuilds >= REBUILDS ||
		store_health_may_write(health, &err) != 0)
		return set_damaged(checker, checker->worst);
	return rebuild(checker, &err) == 0 ? 0 : set_damaged(checker, err.text);
}

static int64_t set_damaged(struct catalog_checker *checker, const char *why)
{
	ASSERT(why != NULL);
	checker->look_due_ms = clock_monotonic_ms() + AGAIN_MS;
	store_health_set_proof(store_health(checker->store), STORE_DAMAGED, why);
	return WATCH_MS;
}

static int rebuild(struct catalog_checker *checker, struct error *err)
{
	struct checker_change change = {
		.change = {.alone = catalog_checker_run_rebuild}, .store = checker->store};
	ASSERT(checker->table_findings == 0 && checker->rebuilds < REBUILDS);
	checker->rebuilds++;
	if (committer_run(store_committer(checker->store), &change.change, err) != 0)
		return -1;
	log_event(store_log(checker->store), LOG_WARNING, NULL, "catalog_rebuilt", NULL, 0);
	metrics_add(store_metrics(checker->store), METRIC_CATALOG_MENDED, 1);
	return 0;
}

static int catalog_checker_run_rebuild(struct change *change, struct db *db, struct error *err)
{
	struct store *store = ((struct checker_change *)change)->store;
	char scratch[4096];
	snprintf(scratch, sizeof(scratch), "%s.rebuilt", store_catalog_path(store));
	const struct db_rebuild rebuild = {
		.scratch = scratch, .settle_tables = settled_tables, .settle_sql = SQL_SETTLE};
	return db_rebuild(db, &rebuild, err);
}
