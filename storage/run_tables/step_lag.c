#include "storage/run_tables/step_lag.h"

#include "storage/run_tables/step_row.h"

/* A replica below the step to serve could have gone on since the step after its own was published,
 * one above it since the rollback began. */
int step_lag_find(struct db *db, const struct step_lag_scale *scale, uint64_t step,
	struct step_lag *out, struct error *err)
{
	const bool is_below = step < scale->target;
	struct step_row next;
	int64_t since_ms = step == scale->target ? scale->now_ms : scale->rollback_ms;
	*out = (struct step_lag){.steps = is_below ? scale->target - step : step - scale->target};
	if (is_below) {
		const int found = step_row_find(db, scale->run, step + 1, &next, err);
		if (found < 0)
			return -1;
		since_ms = found == 1 ? next.created_ms : scale->now_ms;
	}
	if (scale->now_ms > since_ms)
		out->seconds = (uint64_t)(scale->now_ms - since_ms) / 1000;
	return 0;
}
