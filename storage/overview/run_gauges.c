/* The text format wants all series of a name together. So the runs are read first, and each row of
 * the table below then prints its series of all of them. */
#include "storage/overview/run_gauges.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/metric_text.h"
#include "storage/overview/run_glance.h"
#include "storage/run_tables/run_row.h"

enum { ARENA_BYTES = 16 * 1024 * 1024, LABELS_MAX_BYTES = 8 * 1024 };

struct gauged {
	struct store *store;
	struct arena *arena;
	int64_t ids[RUN_GAUGES_MAX]; /* of the runs' rows */
	size_t id_count;
	struct run_glance runs[RUN_GAUGES_MAX]; /* without those that have ended meanwhile */
	size_t count;
};

static int read_all(struct gauged *all, struct error *err);
static int read_ids(struct gauged *all, struct error *err);
static void print_states(const struct gauged *all, struct buffer *out);
static void print_gauge(const struct gauged *all, size_t at, struct buffer *out);
static void print_labels(const struct run_glance *run, struct buffer *labels);

#define AT(member) offsetof(struct run_glance, member)

static const struct {
	const char *name;
	const char *help;
	size_t at;       /* of a number of 64 bits in struct run_glance */
	bool is_ms;      /* exported as seconds */
	bool needs_head; /* runs without a head have no such series */
} gauges[] = {
	{"deltabucket_run_head_step", "The newest step of the run.", AT(run.head), false, true},
	{"deltabucket_run_head_timestamp_seconds",
		"When this step was published, in seconds since 1970.", AT(head_created_ms), true,
		true},
	{"deltabucket_run_kept_steps", "Steps of the run that are kept.", AT(run.steps), false,
		false},
	{"deltabucket_run_kept_bytes", "Bytes of the forms of these steps.", AT(run.bytes), false,
		false},
	{"deltabucket_run_replicas_expired", "Replicas whose lease has ended within the last hour.",
		AT(counts.expired), false, false},
	{"deltabucket_run_replicas_without_step", "Replicas with a lease that hold no step yet.",
		AT(counts.without_step), false, false},
	{"deltabucket_run_replicas_behind",
		"Replicas with a lease that hold a step below the one to serve.", AT(behind), false,
		false},
	{"deltabucket_run_lag_steps",
		"Steps between the step to serve and the replica that is farthest from it.",
		AT(lag_steps), false, false},
	{"deltabucket_run_lag_seconds",
		"For how long the replica that is farthest behind could have gone on.",
		AT(lag_seconds), false, false},
	{"deltabucket_run_oldest_report_seconds",
		"The time since the earliest last report of a replica with a lease; 0: there is none.",
		AT(counts.oldest_report_s), false, false},
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
	if (read_ids(all, err) != 0)
		return -1;
	for (size_t i = 0; i < all->id_count; i++) {
		const int found = run_glance_find(
			all->store, all->ids[i], all->arena, &all->runs[all->count], err);
		if (found < 0)
			return -1;
		all->count += (size_t)found;
	}
	return 0;
}

static int read_ids(struct gauged *all, struct error *err)
{
	struct db *const db = store_reader_take(all->store, err);
	uint64_t count = 0;
	const bool failed = db == NULL ||
		run_row_latest(db, RUN_GAUGES_MAX, all->ids, &all->id_count, err) != 0 ||
		run_row_count(db, &count, err) != 0;
	store_reader_give(all->store, db);
	if (failed)
		return -1;
	metrics_set(store_metrics(all->store), METRIC_RUNS_LEFT_OUT,
		(int64_t)count - (int64_t)all->id_count);
	return 0;
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
				(int64_t)all->runs[i].counts.states[state]);
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
		const struct run_glance *const run = &all->runs[i];
		int64_t value;
		if (gauges[at].needs_head && !run->run.has_head)
			continue;
		print_labels(run, &labels);
		memcpy(&value, (const char *)run + gauges[at].at, sizeof(value));
		if (gauges[at].is_ms)
			metric_text_millionths(out, name, buffer_span(&labels), value * 1000);
		else
			metric_text_number(out, name, buffer_span(&labels), value);
	}
	buffer_release(&labels);
}

static void print_labels(const struct run_glance *run, struct buffer *labels)
{
	buffer_reset(labels);
	metric_text_label(labels, "bucket", run->run.bucket);
	metric_text_label(labels, "run", run->run.run);
}
