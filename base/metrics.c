#include "base/metrics.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/memory.h"
#include "base/metric_text.h"

enum { LABELS_MAX_BYTES = 128 };

struct metrics {
	_Atomic int64_t values[METRIC_COUNT];
	struct histogram work[METRIC_WORK_COUNT];
};

static const struct {
	const char *name, *type, *help;
} rows[] = {
#define COUNTER                            "counter"
#define GAUGE                              "gauge"
#define METRIC(name, type, exported, help) [METRIC_##name] = {"deltabucket_" exported, type, help},
#define WORK(name, label)
#include "base/metrics.def"
#undef METRIC
#undef WORK
#undef COUNTER
#undef GAUGE
};

static const char *const work_labels[] = {
#define METRIC(name, type, exported, help)
#define WORK(name, label) [METRIC_WORK_##name] = label,
#include "base/metrics.def"
#undef METRIC
#undef WORK
};

/* From a commit on a fast disk to the proof of a large checkpoint. */
static const int64_t work_bounds[] = {1000, 5000, 25 * 1000, 100 * 1000, 500 * 1000, 2500 * 1000,
	15 * 1000 * 1000, 60 * 1000 * 1000, 600 * 1000 * 1000};

static const struct histogram_plan work_plan = {
	.name = "deltabucket_work_duration_seconds",
	.help = "How long each piece of work behind the requests took, by its kind.",
	.bounds = work_bounds,
	.count = sizeof(work_bounds) / sizeof(work_bounds[0]),
	.is_micros = true,
};

static void print_work(const struct metrics *metrics, struct buffer *out);

struct metrics *metrics_new(void)
{
	return memory_new(sizeof(struct metrics));
}

void metrics_free(struct metrics *metrics)
{
	free(metrics);
}

void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount)
{
	ASSERT((unsigned)metric < METRIC_COUNT);
	if (metrics != NULL)
		atomic_fetch_add_explicit(&metrics->values[metric], amount, memory_order_relaxed);
}

void metrics_set(struct metrics *metrics, enum metric metric, int64_t value)
{
	ASSERT((unsigned)metric < METRIC_COUNT);
	if (metrics != NULL)
		atomic_store_explicit(&metrics->values[metric], value, memory_order_relaxed);
}

int64_t metrics_get(const struct metrics *metrics, enum metric metric)
{
	ASSERT((unsigned)metric < METRIC_COUNT);
	return metrics != NULL
		? atomic_load_explicit(&metrics->values[metric], memory_order_relaxed)
		: 0;
}

void metrics_work(struct metrics *metrics, enum metric_work work, int64_t begun_us)
{
	ASSERT((unsigned)work < METRIC_WORK_COUNT);
	if (metrics != NULL)
		histogram_observe(
			&metrics->work[work], &work_plan, clock_monotonic_us() - begun_us);
}

uint64_t metrics_work_count(const struct metrics *metrics, enum metric_work work)
{
	ASSERT((unsigned)work < METRIC_WORK_COUNT);
	return metrics != NULL ? histogram_count(&metrics->work[work]) : 0;
}

void metrics_print(const struct metrics *metrics, struct buffer *out)
{
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		metric_text_family(out, rows[i].name, rows[i].type, rows[i].help);
		metric_text_number(
			out, rows[i].name, span_of(NULL, 0), metrics_get(metrics, (enum metric)i));
	}
	if (metrics != NULL)
		print_work(metrics, out);
}

static void print_work(const struct metrics *metrics, struct buffer *out)
{
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	histogram_print_family(&work_plan, out);
	for (size_t i = 0; i < METRIC_WORK_COUNT; i++) {
		if (histogram_count(&metrics->work[i]) == 0)
			continue;
		buffer_reset(&labels);
		metric_text_label(&labels, "work", span_text(work_labels[i]));
		histogram_print(&metrics->work[i], &work_plan, buffer_span(&labels), out);
	}
	buffer_release(&labels);
}
