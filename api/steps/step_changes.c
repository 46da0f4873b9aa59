#include "api/steps/handlers.h"

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "base/format/json_node.h"
#include "storage/survey/step_survey.h"

enum { BODY_MAX_BYTES = 64 * 1024 * 1024 };

static void print_tensor(const struct surveyed_tensor *tensor, struct json_writer *json);

enum next step_changes_begin(struct exchange *exchange)
{
	const struct run_ref run = steps_request_run(exchange);
	uint64_t step;
	enum next next;
	if (!steps_request_step(exchange, &step, &next))
		return next;
	return exchange_await(exchange, step_survey_call(exchange->context->store, &run, step));
}

enum next step_changes_resume(struct exchange *exchange)
{
	struct error err = {0};
	struct buffer body;
	struct json_writer json;
	if (call_outcome(exchange->call, &err) != 0)
		return steps_error_fail(exchange, &err, step_survey_anchor(exchange->call));
	const struct step_survey *const survey = step_survey_result(exchange->call);
	buffer_init(&body, BODY_MAX_BYTES);
	json_writer_init(&json, &body);
	json_writer_object(&json, NULL);
	json_writer_u64(&json, "step", survey->step);
	json_writer_u64(&json, "elements", survey->elements);
	json_writer_u64(&json, "changed", survey->changed);
	json_writer_array(&json, "tensors");
	for (size_t i = 0; i < survey->count; i++)
		print_tensor(&survey->tensors[i], &json);
	json_writer_end(&json, ']');
	json_writer_end(&json, '}');
	exchange_drop_call(exchange); /* A slow reader keeps the text alone, not the schema too. */
	return steps_request_reply_json(exchange, 200, &body);
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
