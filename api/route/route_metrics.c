/* At the start all rows get the number of their operation, so that counting a request is a look-up
 * by the row's place in its table. */
#include "api/route/route_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "api/route/router.h"
#include "base/histogram.h"
#include "base/memory.h"
#include "base/metric_text.h"

enum { LABELS_MAX_BYTES = 1024, CLASSES = 6 };

static const char no_route[] = "none";
static const char *const class_labels[CLASSES] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

static const int64_t duration_bounds[] = {1000, 5 * 1000, 25 * 1000, 100 * 1000, 500 * 1000,
	2500 * 1000, 10 * 1000 * 1000, 60 * 1000 * 1000};
static const struct histogram_plan durations = {
	.name = "deltabucket_request_duration_seconds",
	.help = "From the first line of each request to the end of its reply, by operation; without"
		" long polls and streams of events.",
	.bounds = duration_bounds,
	.count = sizeof(duration_bounds) / sizeof(duration_bounds[0]),
	.is_micros = true,
};
static const int64_t size_bounds[] = {
	1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20, (int64_t)1 << 30};
static const struct histogram_plan sizes = {
	.name = "deltabucket_reply_size_bytes",
	.help = "Body bytes of each reply, by operation.",
	.bounds = size_bounds,
	.count = sizeof(size_bounds) / sizeof(size_bounds[0]),
};
static const char replies_name[] = "deltabucket_replies_total";

struct operation {
	const char *face;
	const char *name;
	struct histogram durations;
	struct histogram sizes;
	_Atomic uint64_t replies[CLASSES];
};

struct table {
	const struct route *routes;
	size_t count;
	unsigned *numbers; /* of the rows' operations */
};

enum { TABLES = 7, FACES = 4 };

struct route_metrics {
	struct table tables[TABLES];
	struct operation *operations;
	size_t count;
	size_t capacity;
};

static void add_table(struct route_metrics *metrics, size_t at, const struct route *routes);
static unsigned number_of(struct route_metrics *metrics, const char *face, const char *name);
static struct operation *find(
	const struct route_metrics *metrics, const struct route_sample *sample);
static bool find_operation(
	const struct route_metrics *metrics, const char *face, const char *name, unsigned *out);
static bool is_used(const struct operation *operation);
static void print_labels(const struct operation *operation, struct buffer *labels);
static void print_histograms(
	const struct route_metrics *metrics, const struct histogram_plan *plan, struct buffer *out);
static void print_replies(const struct route_metrics *metrics, struct buffer *out);

struct route_metrics *route_metrics_new(void)
{
	static const struct route *const tables[TABLES] = {admin_routes, console_routes,
		steps_routes, hot_load_routes, hub_routes, xet_routes, s3_routes};
	static const struct face *const faces[FACES] = {
		&face_s3, &face_hub, &face_xet, &face_steps};
	struct route_metrics *const metrics = memory_new(sizeof(*metrics));
	/* first, so that they are found at once */
	for (size_t i = 0; i < FACES; i++)
		number_of(metrics, faces[i]->name, no_route);
	for (size_t i = 0; i < TABLES; i++)
		add_table(metrics, i, tables[i]);
	return metrics;
}

void route_metrics_free(struct route_metrics *metrics)
{
	if (metrics == NULL)
		return;
	for (size_t i = 0; i < TABLES; i++)
		free(metrics->tables[i].numbers);
	free(metrics->operations);
	free(metrics);
}

void route_metrics_count(struct route_metrics *metrics, const struct route_sample *sample)
{
	if (metrics == NULL)
		return;
	struct operation *const operation = find(metrics, sample);
	const int class = sample->status / 100;
	ASSERT(class >= 0 && class < CLASSES);
	atomic_fetch_add_explicit(&operation->replies[class], 1, memory_order_relaxed);
	histogram_observe(&operation->sizes, &sizes, (int64_t)sample->reply_bytes);
	if (!sample->waited && sample->status != 0)
		histogram_observe(&operation->durations, &durations, sample->us);
}

void route_metrics_print(const struct route_metrics *metrics, struct buffer *out)
{
	print_histograms(metrics, &durations, out);
	print_histograms(metrics, &sizes, out);
	print_replies(metrics, out);
}

static void add_table(struct route_metrics *metrics, size_t at, const struct route *routes)
{
	struct table *const table = &metrics->tables[at];
	table->routes = routes;
	while (routes[table->count].pattern != NULL)
		table->count++;
	table->numbers = memory_new_array(table->count, sizeof(*table->numbers));
	for (size_t i = 0; i < table->count; i++)
		table->numbers[i] = number_of(metrics, routes[i].face->name, routes[i].name);
}

/* Adds the operation unless it is there. */
static unsigned number_of(struct route_metrics *metrics, const char *face, const char *name)
{
	unsigned number;
	if (find_operation(metrics, face, name, &number))
		return number;
	metrics->operations = memory_make_room(metrics->operations, metrics->count,
		&metrics->capacity, sizeof(*metrics->operations));
	struct operation *const operation = &metrics->operations[metrics->count];
	memset(operation, 0, sizeof(*operation));
	operation->face = face;
	operation->name = name;
	return (unsigned)metrics->count++;
}

static struct operation *find(
	const struct route_metrics *metrics, const struct route_sample *sample)
{
	const uintptr_t place = (uintptr_t)sample->route;
	unsigned number;
	for (size_t i = 0; sample->route != NULL && i < TABLES; i++) {
		const struct table *const table = &metrics->tables[i];
		const uintptr_t first = (uintptr_t)table->routes;
		if (place >= first && place < (uintptr_t)(table->routes + table->count))
			return &metrics->operations[table->numbers[(place - first) /
				sizeof(*table->routes)]];
	}
	const bool is_known = find_operation(metrics, sample->face->name, no_route, &number);
	ASSERT(is_known);
	return &metrics->operations[number];
}

static bool find_operation(
	const struct route_metrics *metrics, const char *face, const char *name, unsigned *out)
{
	for (size_t i = 0; i < metrics->count; i++)
		if (strcmp(metrics->operations[i].name, name) == 0 &&
			strcmp(metrics->operations[i].face, face) == 0) {
			*out = (unsigned)i;
			return true;
		}
	return false;
}

static bool is_used(const struct operation *operation)
{
	return histogram_count(&operation->sizes) > 0;
}

static void print_histograms(
	const struct route_metrics *metrics, const struct histogram_plan *plan, struct buffer *out)
{
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	histogram_print_family(plan, out);
	for (size_t i = 0; i < metrics->count; i++) {
		const struct operation *const operation = &metrics->operations[i];
		const struct histogram *const histogram =
			plan == &sizes ? &operation->sizes : &operation->durations;
		if (histogram_count(histogram) == 0)
			continue;
		print_labels(operation, &labels);
		histogram_print(histogram, plan, buffer_span(&labels), out);
	}
	buffer_release(&labels);
}

static void print_labels(const struct operation *operation, struct buffer *labels)
{
	buffer_reset(labels);
	metric_text_label(labels, "face", span_text(operation->face));
	metric_text_label(labels, "route", span_text(operation->name));
}

/* All classes of an operation that was used, so that a rate over them begins at 0. */
static void print_replies(const struct route_metrics *metrics, struct buffer *out)
{
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	metric_text_family(out, replies_name, "counter",
		"Replies by operation and class of status; none: the client left before.");
	for (size_t i = 0; i < metrics->count; i++) {
		const struct operation *const operation = &metrics->operations[i];
		for (size_t class = 0; is_used(operation) && class < CLASSES; class ++) {
			print_labels(operation, &labels);
			metric_text_label(&labels, "status", span_text(class_labels[class]));
			metric_text_number(out, replies_name, buffer_span(&labels),
				(int64_t)atomic_load_explicit(
					&operation->replies[class], memory_order_relaxed));
		}
	}
	buffer_release(&labels);
}
