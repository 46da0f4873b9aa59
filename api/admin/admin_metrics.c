/* A helper reads the catalog and the disk. The registry is printed after that, when this request
 * does not wait any more, so that it does not count itself. What cannot be read is left out: a
 * damaged catalog must not hide the metrics that say so. */
#include "api/admin/admin_metrics.h"

#include "api/exchange/body_work.h"
#include "api/route/route_metrics.h"
#include "base/metric_text.h"
#include "base/process_stat.h"
#include "storage/overview/run_gauges.h"
#include "storage/upkeep/store_gauges.h"

enum { METRICS_MAX_BYTES = 8 * 1024 * 1024, LABELS_MAX_BYTES = 256 };

struct metrics_page {
	struct call call; /* first */
	const struct api_context *context;
	struct buffer body;
};

static enum call_next admin_metrics_measure(struct call *call, struct error *err);
static void admin_metrics_release(struct call *call);
static void tell(const struct api_context *context, const struct error *err);
static void print_build(struct buffer *out);

static const struct call_kind kind = {
	.stages = {{.help = admin_metrics_measure}}, .release = admin_metrics_release};

enum next admin_metrics_begin(struct exchange *exchange)
{
	struct metrics_page *const page =
		call_new(sizeof(*page), &kind, exchange->context->store, 0);
	page->context = exchange->context;
	buffer_init(&page->body, METRICS_MAX_BYTES);
	return exchange_await(exchange, &page->call);
}

enum next admin_metrics_resume(struct exchange *exchange)
{
	struct metrics_page *const page = (struct metrics_page *)exchange->call;
	struct error err = {0};
	if (call_outcome(&page->call, &err) != 0)
		return exchange_fail(exchange, &err);
	metrics_print(page->context->metrics, &page->body);
	if (page->context->route_metrics != NULL)
		route_metrics_print(page->context->route_metrics, &page->body);
	return exchange_reply_buffer(
		exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &page->body);
}

static enum call_next admin_metrics_measure(struct call *call, struct error *err)
{
	struct metrics_page *const page = (struct metrics_page *)call;
	const struct api_context *const context = page->context;
	struct buffer *const body = &page->body;
	struct process_stat stat;
	if (store_gauges_measure(context->store, err) != 0)
		tell(context, err);
	metrics_set(context->metrics, METRIC_BODIES_WAITING,
		(int64_t)body_work_waiting(context->body_work));
	if (run_gauges_print(context->store, body, err) != 0)
		tell(context, err);
	process_stat_read(&stat);
	process_stat_print(&stat, body);
	print_build(body);
	return CALL_NEXT;
}

static void admin_metrics_release(struct call *call)
{
	buffer_release(&((struct metrics_page *)call)->body);
}

static void tell(const struct api_context *context, const struct error *err)
{
	if (context->log != NULL)
		log_failure(context->log, LOG_WARNING, NULL, "metrics_incomplete", err);
}

static void print_build(struct buffer *out)
{
	static const char name[] = "deltabucket_build_info";
	struct buffer labels;
	buffer_init(&labels, LABELS_MAX_BYTES);
	metric_text_label(&labels, "version", span_text(PACKAGE_VERSION));
	metric_text_family(out, name, "gauge", "Always 1; its label is the server's version.");
	metric_text_number(out, name, buffer_span(&labels), 1);
	buffer_release(&labels);
}
