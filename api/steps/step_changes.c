/* A page ends after a number of tensors or a number of bytes, whichever comes first. */
#include "api/steps/handlers.h"

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "base/format/json_node.h"
#include "storage/survey/step_survey.h"

enum {
	PAGE_TENSORS = 1000,
	PAGE_MAX_TENSORS = 10000,
	PAGE_FULL_BYTES = 2 * 1024 * 1024,
	BODY_MAX_BYTES = 64 * 1024 * 1024 /* a page may end with a tensor of a very long name */
};

struct page { /* the exchange's state */
	uint64_t from;
	uint64_t limit;
};

static void print_page(
	const struct step_survey *survey, const struct page *page, struct buffer *body);
static void print_tensor(const struct surveyed_tensor *tensor, struct json_writer *json);

enum next step_changes_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	struct page *const page = arena_take(exchange->arena, sizeof(*page));
	uint64_t step;
	bool has_from;
	enum next next;
	ASSERT(page != NULL);
	if (!steps_request_step(exchange, &step, &next) ||
		!steps_request_number(exchange, "from", &has_from, &page->from, &next) ||
		!steps_request_limit(exchange, PAGE_TENSORS, PAGE_MAX_TENSORS, &page->limit, &next))
		return next;
	exchange->state = page;
	return exchange_await(exchange, step_survey_call(exchange->context->store, &run, step));
}

enum next step_changes_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	if (call_outcome(exchange->call, &err) != 0)
		return steps_error_fail(exchange, &err, step_survey_anchor(exchange->call));
	buffer_init(&body, BODY_MAX_BYTES);
	print_page(step_survey_result(exchange->call), exchange->state, &body);
	exchange_drop_call(exchange); /* A slow reader keeps the text alone, not the schema too. */
	return steps_request_reply_json(exchange, 200, &body);
}

static void print_page(
	const struct step_survey *survey, const struct page *page, struct buffer *body)
{
	struct json_writer json;
	uint64_t at = page->from;
	json_writer_init(&json, body);
	json_writer_object(&json, NULL);
	json_writer_u64(&json, "step", survey->step);
	json_writer_u64(&json, "elements", survey->elements);
	json_writer_u64(&json, "changed", survey->changed);
	json_writer_array(&json, "tensors");
	for (uint64_t left = page->limit;
		at < survey->count && left > 0 && body->len < PAGE_FULL_BYTES; left--)
		print_tensor(&survey->tensors[at++], &json);
	json_writer_end(&json, ']');
	if (at < survey->count)
		json_writer_u64(&json, "next", at);
	json_writer_end(&json, '}');
}

static void print_tensor(const struct surveyed_tensor *tensor, struct json_writer *json)
{
	json_writer_object(json, NULL);
	json_writer_text(json, "name", tensor->name);
	json_writer_text(json, "dtype", span_text(tensor->dtype));
	json_writer_array(json, "shape");
	for (unsigned i = 0; i < tensor->rank; i++)
		json_writer_u64(json, NULL, tensor->shape[i]);
	json_writer_end(json, ']');
	json_writer_u64(json, "elements", tensor->elements);
	json_writer_u64(json, "changed", tensor->changed);
	json_writer_end(json, '}');
}
