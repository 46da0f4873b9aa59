/* `min_version` and `exact_version` of reading requests, for readers that must not get an older
 * step or another step. Until the step exists the reply is 425 with Retry-After. */
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
/* Reads them from the query, which may have at most one of them. False when they are malformed,
 * with the reply set. */
bool version_bounds_read(
	struct exchange *exchange, struct version_bounds *out, enum next *out_next);
/* Fails with not_ready while the run's newest usable step is below `min`; where not `of_head`,
 * while the step to serve is, which is another one in a rollback. */
int version_bounds_check(struct exchange *exchange, const struct version_bounds *bounds,
	bool of_head, struct error *err);
/* With `exact`, changes no_step into not_ready: the step may still be published. */
void version_bounds_translate(const struct version_bounds *bounds, struct error *err);
/* As steps_error_fail, with Retry-After for not_ready. */
enum next version_bounds_fail(struct exchange *exchange, const struct error *err, uint64_t anchor);

#endif
