/* The text format wants all series of a name together. So the runs are read first, and each row of
 * the table below then prints its series of all of them. */
#include "storage/upkeep/run_gauges.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/metric_text.h"
#include "storage/run_tables/replica_table.h"
#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"

enum { ARENA_BYTES = 4 * 1024 * 1024, LABELS_MAX_BYTES = 8 * 1024 };

struct gauged_run {
	struct run_latest latest;
	struct run_row row;
	struct replica_fleet fleet;
	uint64_t lag_steps;
	int64_t lag_ms;
};

struct gauged {
	struct store *store;
	struct arena *arena;
	struct gauged_run runs[RUN_GAUGES_MAX];
	size_t count;
};

static int read_all(struct gauged *all, struct error *err);
static int read_runs(struct gauged *all, struct db *db, struct error *err);
static int read_run(
	struct gauged *all, struct db *db, const struct run_latest *latest, struct error *err);
static int read_lag(struct gauged *all, struct db *db, struct gauged_run *run, struct error *err);
static int64_t head_step(const struct gauged_run *run);
static int64_t head_ms(const struct gauged_run *run);
static int64_t steps(const struct gauged_run *run);
static int64_t bytes(const struct gauged_run *run);
static int64_t expired(const struct gauged_run *run);
static int64_t without_step(const struct gauged_run *run);
static int64_t behind(const struct gauged_run *run);
static int64_t lag_steps(const struct gauged_run *run);
static int64_t lag_ms(const struct gauged_run *run);
static void print_states(const struct gauged *all, struct buffer *out);
static void print_gauge(const struct gauged *all, size_t at, struct buffer *out);
static void print_labels(const struct gauged_run *run, struct buffer *labels);

static const struct {
	const char *name;
	const char *help;
	int64_t (*value)(const struct gauged_run *run);
	bool is_ms;      /* exported as seconds */
	bool needs_head; /* runs without a head have no such series */
} gauges[] = {
	{"deltabucket_run_head_step", "The newest step of the run.", head_step, false, true},
	{"deltabucket_run_head_timestamp_seconds",
		"When this step was published, in seconds since 1970.", head_ms, true, true},
	{"deltabucket_run_kept_steps", "Steps of the run that are kept.", steps, false, false},
	{"deltabucket_run_kept_bytes", "Bytes of the forms of these steps.", bytes, false, false},
	{"deltabucket_run_replicas_expired", "Replicas whose lease has ended within the last hour.",
		expired, false, false},
	{"deltabucket_run_replicas_without_step", "Replicas with a lease that hold no step yet.",
		without_step, false, false},
	{"deltabucket_run_replicas_behind",
		"Replicas with a lease that hold a step below the one to serve.", behind, false,
		false},
	{"deltabucket_run_lag_steps",
		"Steps between the step to serve and the replica that is farthest from it.",
		lag_steps, false, false},
	{"deltabucket_run_lag_seconds",
		"For how long the replica that is farthest behind could have gone on.", lag_ms,
		true, false},
};

int run_gauges_print(struct store *store, struct buffer *out, struct error *err)
{
	struct gauged *const all = memory_new(sizeof(*all));
	all->store = store;
	all->arena = arena_new(ARENA_BYTES);
	const int result = read_all(all, err);
	if (result == 0) {
		print_states(all, out);
		for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
			print_gauge(all, i, out);
	}
	arena_free(all->arena);
	free(all);
	return result;
}

static int read_all(struct gauged *all, struct error *err)
{
	struct db *const db = store_snapshot_take(all->store, err);
	if (db == NULL)
		return -1;
	uint64_t count = 0;
	int result = read_runs(all, db, err);
	if (result == 0)
		result = run_row_count(db, &count, err);
	store_snapshot_give(all->store, db);
	if (result == 0)
		metrics_set(store_metrics(all->store), METRIC_RUNS_LEFT_OUT,
			(int64_t)count - (int64_t)all->count);
	return result;
}

static int read_runs(struct gauged *all, struct db *db, struct error *err)
{
	struct run_latest latest[RUN_GAUGES_MAX];
	size_t count;
	if (run_row_latest(db, RUN_GAUGES_MAX, all->arena, latest, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (read_run(all, db, &latest[i], err) != 0)
			return -1;
	return 0;
}

static int read_run(
	struct gauged *all, struct db *db, const struct run_latest *latest, struct error *err)
{
	struct gauged_run *const run = &all->runs[all->count];
	run->latest = *latest;
	const int found = run_row_find_id(db, latest->id, NULL, &run->row, NULL, err);
	if (found != 1)
		return found;
	replica_table_fleet(store_parts(all->store)->replicas, latest->id,
		run_row_target(&run->row), &run->fleet);
	all->count++;
	return run->row.has_head && run->fleet.has_oldest ? read_lag(all, db, run, err) : 0;
}

/* As the replicas themselves are told (storage/runs/replica.c): one below the step to serve lags
 * since the step after its own was published, one above it since the rollback. */
static int read_lag(struct gauged *all, struct db *db, struct gauged_run *run, struct error *err)
{
	const uint64_t target = run_row_target(&run->row);
	const int64_t now_ms = store_now_ms(all->store);
	struct step_row next;
	if (run->fleet.newest > target) {
		run->lag_steps = run->fleet.newest - target;
		run->lag_ms = now_ms - run->row.rollback.created_ms;
	}
	if (run->fleet.oldest >= target)
		return 0;
	if (target - run->fleet.oldest > run->lag_steps)
		run->lag_steps = target - run->fleet.oldest;
	const int found = step_row_find(db, run->row.id, run->fleet.oldest + 1, &next, err);
	if (found == 1 && now_ms - next.created_ms > run->lag_ms)
		run->lag_ms = now_ms - next.created_ms;
	return found < 0 ? -1 : 0;
}

static int64_t head_step(const struct gauged_run *run)
{
	return (int64_t)run->row.head;
}

static int64_t head_ms(const struct gauged_run *run)
{
	return run->latest.published_ms;
}

static int64_t steps(const struct gauged_run *run)
{
	return (int64_t)run->row.steps;
}

static int64_t bytes(const struct gauged_run *run)
{
	return (int64_t)run->row.bytes;
}

static int64_t expired(const struct gauged_run *run)
{
	return (int64_t)run->fleet.expired;
}

static int64_t without_step(const struct gauged_run *run)
{
	return (int64_t)run->fleet.without_step;
}

static int64_t behind(const struct gauged_run *run)
{
	return (int64_t)run->fleet.behind;
}

static int64_t lag_steps(const struct gauged_run *run)
{
	return (int64_t)run->lag_steps;
}

static int64_t lag_ms(const struct gauged_run *run)
{
	return run->lag_ms > 0 ? run->lag_ms : 0;
}

static void print_states(const struct gauged *all, struct buffer *out)
{
	static const char name[] = "deltabucket_run_replicas";
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	metric_text_family(
		out, name, "gauge", "Replicas of the run with a lease, by what they do.");
	for (size_t i = 0; i < all->count; i++)
		for (int state = 0; state < REPLICA_STATE_COUNT; state++) {
			print_labels(&all->runs[i], &labels);
			metric_text_label(&labels, "state",
				span_text(replica_state_name((enum replica_state)state)));
			metric_text_number(out, name, buffer_span(&labels),
				(int64_t)all->runs[i].fleet.states[state]);
		}
	buffer_release(&labels);
}

static void print_gauge(const struct gauged *all, size_t at, struct buffer *out)
{
	const char *const name = gauges[at].name;
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	metric_text_family(out, name, "gauge", gauges[at].help);
	for (size_t i = 0; i < all->count; i++) {
		const struct gauged_run *const run = &all->runs[i];
		if (gauges[at].needs_head && !run->row.has_head)
			continue;
		print_labels(run, &labels);
		if (gauges[at].is_ms)
			metric_text_millionths(
				out, name, buffer_span(&labels), gauges[at].value(run) * 1000);
		else
			metric_text_number(out, name, buffer_span(&labels), gauges[at].value(run));
	}
	buffer_release(&labels);
}

static void print_labels(const struct gauged_run *run, struct buffer *labels)
{
	buffer_reset(labels);
	metric_text_label(labels, "bucket", run->latest.bucket);
	metric_text_label(labels, "run", run->latest.name);
}
