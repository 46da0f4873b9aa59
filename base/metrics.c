#include "base/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

struct metrics {
	_Atomic int64_t values[METRIC_COUNT];
};

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

static void add_lowered(struct buffer *out, const char *upper)
{
	for (const char *at = upper; *at != '\0'; at++)
		buffer_add_byte(out,
			*at >= 'A' && *at <= 'Z' ? (uint8_t)(*at + ('a' - 'A')) : (uint8_t)*at);
}

void metrics_print(const struct metrics *metrics, struct buffer *out)
{
	static const struct {
		const char *name, *type, *help;
	} rows[] = {
#define METRIC(name, type, help) [METRIC_##name] = {"deltabucket_" #name, #type, help},
#include "base/metrics.def"
#undef METRIC
	};
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		buffer_add_text(out, "# HELP ");
		add_lowered(out, rows[i].name);
		buffer_format(out, " %s\n# TYPE ", rows[i].help);
		add_lowered(out, rows[i].name);
		buffer_add_byte(out, ' ');
		add_lowered(out, rows[i].type);
		buffer_add_byte(out, '\n');
		add_lowered(out, rows[i].name);
		buffer_format(out, " %" PRId64 "\n", metrics_get(metrics, (enum metric)i));
	}
}
