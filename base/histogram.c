#include "base/histogram.h"

#include <inttypes.h>

#include "base/metric_text.h"

enum { SERIES_MAX_BYTES = 4096 };

static uint64_t print_buckets(const struct histogram *histogram, const struct histogram_plan *plan,
	struct span labels, struct buffer *out);
static void print_bound(const struct histogram_plan *plan, size_t at, struct buffer *bound);

void histogram_observe(
	struct histogram *histogram, const struct histogram_plan *plan, int64_t value)
{
	size_t at = 0;
	ASSERT(plan->count <= HISTOGRAM_BOUNDS_MAX);
	if (value < 0)
		value = 0;
	while (at < plan->count && value > plan->bounds[at])
		at++;
	atomic_fetch_add_explicit(&histogram->counts[at], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum, value, memory_order_relaxed);
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;
	for (size_t i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		count += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
	return count;
}

void histogram_print_family(const struct histogram_plan *plan, struct buffer *out)
{
	metric_text_family(out, plan->name, "histogram", plan->help);
}

void histogram_print(const struct histogram *histogram, const struct histogram_plan *plan,
	struct span labels, struct buffer *out)
{
	const int64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
	const uint64_t count = print_buckets(histogram, plan, labels, out);
	struct buffer name;
	buffer_init(&name, SERIES_MAX_BYTES);
	buffer_format(&name, "%s_sum", plan->name);
	if (plan->is_micros)
		metric_text_millionths(out, buffer_text(&name), labels, sum);
	else
		metric_text_number(out, buffer_text(&name), labels, sum);
	buffer_reset(&name);
	buffer_format(&name, "%s_count", plan->name);
	metric_text_number(out, buffer_text(&name), labels, (int64_t)count);
	buffer_release(&name);
}

/* Each bucket counts the ones below it too. Returns the last count, so that it is also that of the
 * series, whatever is observed meanwhile. */
static uint64_t print_buckets(const struct histogram *histogram, const struct histogram_plan *plan,
	struct span labels, struct buffer *out)
{
	struct buffer name, bound, all;
	uint64_t count = 0;
	buffer_init(&name, SERIES_MAX_BYTES);
	buffer_init(&bound, SERIES_MAX_BYTES);
	buffer_init(&all, SERIES_MAX_BYTES);
	buffer_format(&name, "%s_bucket", plan->name);
	for (size_t i = 0; i <= plan->count; i++) {
		count += atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
		buffer_reset(&bound);
		print_bound(plan, i, &bound);
		buffer_reset(&all);
		buffer_add_span(&all, labels);
		metric_text_label(&all, "le", buffer_span(&bound));
		metric_text_number(out, buffer_text(&name), buffer_span(&all), (int64_t)count);
	}
	buffer_release(&all);
	buffer_release(&bound);
	buffer_release(&name);
	return count;
}

static void print_bound(const struct histogram_plan *plan, size_t at, struct buffer *bound)
{
	if (at == plan->count)
		buffer_add_text(bound, "+Inf");
	else if (plan->is_micros)
		buffer_format(bound, "%.9g", (double)plan->bounds[at] / 1e6);
	else
		buffer_format(bound, "%" PRId64, plan->bounds[at]);
}
