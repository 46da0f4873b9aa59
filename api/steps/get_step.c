#include "api/steps/handlers.h"

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"
#include "api/steps/version_bounds.h"

enum next get_step_begin(struct exchange *exchange)
{
	struct run_step_params params = {.run = steps_request_run(exchange)};
	struct step_message step;
	struct version_bounds bounds;
	struct span tensors;
	struct error err = {0};
	uint64_t anchor = UINT64_MAX;
	enum next next;
	if (!steps_request_step(exchange, &params.step, &next) ||
		!version_bounds_read(exchange, &bounds, &next))
		return next;
	if (bounds.has_exact && bounds.exact != params.step)
		return steps_error_invalid(
			exchange, "exact_version", "must be the step of the path");
	if (version_bounds_check(exchange, &bounds, true, &err) != 0)
		return version_bounds_fail(exchange, &err, anchor);
	params.with_tensors =
		exchange_query(exchange, "tensors", &tensors) && span_equal_text(tensors, "true");
	if (run_find_step(exchange->context->store, &params, exchange->arena, &step, &anchor,
		    &err) != 0) {
		version_bounds_translate(&bounds, &err);
		return version_bounds_fail(exchange, &err, anchor);
	}
	return steps_request_reply_step(exchange, 200, &step, params.with_tensors);
}
