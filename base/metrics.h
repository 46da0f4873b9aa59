/* The registry of metrics: one atomic number per row of metrics.def. One registry per server (no
 * globals). Any thread. */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buffer.h"

enum metric {
#define METRIC(name, type, help) METRIC_##name,
#include "base/metrics.def"
#undef METRIC
	METRIC_COUNT
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);
/* `metrics` may be NULL in the calls below, which then do nothing: most tests have none. */
void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount);
void metrics_set(struct metrics *metrics, enum metric metric, int64_t value);
int64_t metrics_get(const struct metrics *metrics, enum metric metric);
/* Adds all metrics in Prometheus text format 0.0.4. */
void metrics_print(const struct metrics *metrics, struct buffer *out);

#endif
