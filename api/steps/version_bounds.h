/* `min_version` and `exact_version` of the reading requests: a reader that must not get anything
 * older (or anything else) is told 425 until it is there, with Retry-After. */
#ifndef API_STEPS_VERSION_BOUNDS_H
#define API_STEPS_VERSION_BOUNDS_H

#include "api/exchange/exchange.h"
#include "wire/step_message.h"

struct version_bounds {
	bool has_min;
	uint64_t min;
	bool has_exact;
	uint64_t exact;
};
/* From the query; at most one of them. False and the reply set otherwise. */
bool version_bounds_read(
	struct exchange *exchange, struct version_bounds *out, enum next *out_next);
/* not_ready while the run's newest good step is below `min`. */
int version_bounds_check(
	struct exchange *exchange, const struct version_bounds *bounds, struct error *err);
/* With `exact`, a step that does not exist is not there yet. */
void version_bounds_translate(const struct version_bounds *bounds, struct error *err);
/* As steps_error_fail; not_ready carries Retry-After. */
enum next version_bounds_fail(struct exchange *exchange, const struct error *err, uint64_t anchor);

#endif
