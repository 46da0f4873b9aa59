#include "api/steps/version_bounds.h"

#include <inttypes.h>

#include "api/steps/steps_error.h"
#include "api/steps/steps_request.h"

bool version_bounds_read(struct exchange *exchange, struct version_bounds *out, enum next *out_next)
{
	if (!steps_request_number(exchange, "min_version", &out->has_min, &out->min, out_next) ||
		!steps_request_number(
			exchange, "exact_version", &out->has_exact, &out->exact, out_next))
		return false;
	if (!out->has_min || !out->has_exact)
		return true;
	*out_next = steps_error_invalid(
		exchange, "min_version", "must not be given with exact_version");
	return false;
}

int version_bounds_check(struct exchange *exchange, const struct version_bounds *bounds,
	bool of_head, struct error *err)
{
	struct step_message newest;
	ASSERT(!bounds->has_min || !bounds->has_exact);
	if (!bounds->has_min)
		return 0;
	const struct run_latest_params params = {
		.run = steps_request_run(exchange), .least = bounds->min, .of_head = of_head};
	return run_find_latest(exchange->context->store, &params, exchange->arena, &newest, err);
}

void version_bounds_translate(const struct version_bounds *bounds, struct error *err)
{
	if (bounds->has_exact && err->kind == ERROR_NO_STEP)
		error_set(err, ERROR_NOT_READY, "Step %" PRIu64 " is not published yet.",
			bounds->exact);
}

enum next version_bounds_fail(struct exchange *exchange, const struct error *err, uint64_t anchor)
{
	if (err->kind == ERROR_NOT_READY)
		exchange_add_header(exchange, "Retry-After", "1");
	return steps_error_fail(exchange, err, anchor);
}
