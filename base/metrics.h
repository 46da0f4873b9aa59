/* The registry of metrics: one atomic number for each METRIC of metrics.def, and one histogram for
 * each WORK. One registry per server (no globals). Any thread; nothing takes a lock. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buffer.h"

enum metric {
#define METRIC(name, type, exported, help) METRIC_##name,
#define WORK(name, label)
#include "base/metrics.def"
#undef METRIC
#undef WORK
	METRIC_COUNT
};

enum metric_work {
#define METRIC(name, type, exported, help)
#define WORK(name, label) METRIC_WORK_##name,
#include "base/metrics.def"
#undef METRIC
#undef WORK
	METRIC_WORK_COUNT
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
/* `metrics` may be NULL in the calls below, which then do nothing: most tests have none. */
void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount);
void metrics_set(struct metrics *metrics, enum metric metric, int64_t value);
int64_t metrics_get(const struct metrics *metrics, enum metric metric);
/* Work of this kind has ended that began at `begun_us` (clock_monotonic_us). */
void metrics_work(struct metrics *metrics, enum metric_work work, int64_t begun_us);
/* How often work of this kind has ended. */
uint64_t metrics_work_count(const struct metrics *metrics, enum metric_work work);
/* Adds all metrics in Prometheus' text format. Kinds of work that have not ended yet are left
 * out. */
void metrics_print(const struct metrics *metrics, struct buffer *out);

#endif
