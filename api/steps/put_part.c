#include "api/steps/handlers.h"

#include "api/steps/publish_keys.h"
#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "storage/runs/step_part.h"

enum { ANSWER_MAX_BYTES = 4096 };

static bool read_numbers(struct exchange *exchange, uint64_t *out_step,
	struct step_part_params *out, enum next *out_next);

enum next put_part_begin(struct exchange *exchange)
{
	struct step_part_params params;
	uint64_t step;
	enum next next;
	if (!read_numbers(exchange, &step, &params, &next))
		return next;
	return exchange_accept_small(exchange, STEP_MESSAGE_MAX_BYTES);
}

enum next put_part_finish(struct exchange *exchange)
{
	struct step_part_params params = {.run = steps_request_run(exchange)};
	struct part_message message;
	struct error err = {0};
	uint64_t step;
	enum next next;
	if (!read_numbers(exchange, &step, &params, &next))
		return next;
	if (part_message_parse(exchange_body(exchange), step, exchange->arena, &message, &err) != 0)
		return exchange_fail(exchange, &err);
	if (publish_keys_check(exchange, &message.step, &err) != 0)
		return exchange_fail(exchange, &err);
	params.message = &message;
	return exchange_await(exchange, step_part_call(exchange->context->store, &params));
}

enum next put_part_resume(struct exchange *exchange)
{
	struct buffer body;
	struct error err = {0};
	bool already;
	if (call_outcome(exchange->call, &err) != 0)
		return exchange_fail(exchange, &err);
	const struct part_answer *const answer = step_part_result(exchange->call, &already);
	const int status = already ? 200 : answer->published ? 201 : 202;
	buffer_init(&body, ANSWER_MAX_BYTES);
	part_answer_print(answer, &body);
	return steps_request_reply_json(exchange, status, &body);
}

static bool read_numbers(struct exchange *exchange, uint64_t *out_step,
	struct step_part_params *out, enum next *out_next)
{
	bool has_parts;
	if (!steps_request_step(exchange, out_step, out_next))
		return false;
	ASSERT(exchange->parameter_count >= 4);
	if (!span_parse_u64(exchange->parameters[3], &out->part)) {
		*out_next = steps_error_invalid(
			exchange, "part", "must be the number of a part, in digits");
		return false;
	}
	if (!steps_request_number(exchange, "of", &has_parts, &out->parts, out_next))
		return false;
	if (!has_parts)
		*out_next = steps_error_invalid(
			exchange, "of", "is missing; it must be the count of the step's parts");
	return has_parts;
}
