/* Counts observations in a few buckets, for Prometheus. An observation is two atomic additions and
 * takes no lock. Any thread. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>

#include "base/buffer.h"

enum { HISTOGRAM_BOUNDS_MAX = 12 };

/* What the histograms of one family share. */
struct histogram_plan {
	const char *name;
	const char *help;
	/* the highest values of the buckets, rising; a last bucket has everything above */
	const int64_t *bounds;
	size_t count;   /* at most HISTOGRAM_BOUNDS_MAX */
	bool is_micros; /* values are microseconds and are exported as seconds */
};

struct histogram { /* one series; zeroed at first */
	_Atomic uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1];
	_Atomic int64_t sum;
};

/* A value below 0 counts as 0. */
void histogram_observe(
	struct histogram *histogram, const struct histogram_plan *plan, int64_t value);
uint64_t histogram_count(const struct histogram *histogram); /* of all observations */
/* Adds HELP and TYPE of the family. */
void histogram_print_family(const struct histogram_plan *plan, struct buffer *out);
/* Adds the series with these labels (base/metric_text.h). */
void histogram_print(const struct histogram *histogram, const struct histogram_plan *plan,
	struct span labels, struct buffer *out);

#endif
