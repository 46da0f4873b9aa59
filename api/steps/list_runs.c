#include "api/steps/handlers.h"

#include "api/steps/steps_request.h"
#include "base/format/json_node.h"

enum {
	PAGE_RUNS = 100,
	PAGE_MAX_RUNS = 1000,
	BODY_MAX_BYTES = 8 * 1024 * 1024,
	RUN_MAX_BYTES = 64 * 1024
};

static void print_runs(
	const struct run_message *runs, size_t count, size_t shown, struct buffer *body);

enum next list_runs_begin(struct exchange *exchange)
{
	struct run_scan scan = {.bucket = exchange_bucket(exchange)};
	struct run_message *runs = NULL;
	size_t count = 0;
	uint64_t limit;
	struct error err = {0};
	enum next next;
	exchange_query(exchange, "after", &scan.after);
	if (!steps_request_limit(exchange, PAGE_RUNS, PAGE_MAX_RUNS, &limit, &next))
		return next;
	scan.limit = limit + 1;
	if (run_list(exchange->context->store, &scan, exchange->arena, &runs, &count, &err) != 0)
		return exchange_fail(exchange, &err);
	for (size_t i = 0; i < count; i++)
		steps_request_hide_webhook(exchange, &runs[i]);
	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	print_runs(runs, count, count > limit ? limit : count, &body);
	return steps_request_reply_json(exchange, 200, &body);
}

/* Prints the first `shown` runs. The caller reads one run more, to know if there is a next page. */
static void print_runs(
	const struct run_message *runs, size_t count, size_t shown, struct buffer *body)
{
	struct json_writer writer;
	struct buffer one;
	ASSERT(shown == count || (shown > 0 && shown < count));
	buffer_init(&one, RUN_MAX_BYTES);
	json_writer_init(&writer, body);
	json_writer_object(&writer, NULL);
	json_writer_array(&writer, "runs");
	for (size_t i = 0; i < shown; i++) {
		buffer_reset(&one);
		run_message_print(&runs[i], &one);
		json_writer_raw(&writer, NULL, buffer_span(&one));
	}
	json_writer_end(&writer, ']');
	if (shown < count)
		json_writer_text(&writer, "next", runs[shown - 1].run);
	json_writer_end(&writer, '}');
	buffer_release(&one);
}
