#include "storage/fold_gain.h"

#include <stddef.h>

static const char SQL_GAIN_DELTAS[] =
	"SELECT COUNT(delta_bytes), COALESCE(SUM(delta_bytes), 0) FROM steps WHERE run = ?1 AND step > ?2 AND step <= ?3";

unsigned fold_gain_percent(const uint64_t steps)
{
	static const struct {
		uint64_t steps; /* at least */
		unsigned percent;
	} measured[] = {{128, 17}, {64, 22}, {32, 29}, {24, 34}, {16, 40}, {8, 52}, {4, 65}};
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		if (steps >= measured[i].steps)
			return measured[i].percent;
	return 100;
}

/* Steps without a delta count as much as those that have one. With none at all a fold is the only delta there can be. */
static uint64_t estimate(const uint64_t steps, const uint64_t deltas, const uint64_t sum)
{
	if (deltas == 0)
		return 0;
	const double bytes = (double)sum * (double)steps / (double)deltas * fold_gain_percent(steps) / 100;
	return bytes < (double)INT64_MAX ? (uint64_t)bytes : INT64_MAX;
}

int fold_gain_is_worth(struct db *const db, const int64_t run, const uint64_t from, const uint64_t to, const uint64_t bytes,
	bool *const out_worth, struct error *const err)
{
	struct db_statement *const statement = db_prepare(db, SQL_GAIN_DELTAS, err);
	*out_worth = false;
	if (statement == NULL)
		return -1;
	db_bind_i64(statement, 1, run);
	db_bind_i64(statement, 2, (int64_t)from);
	db_bind_i64(statement, 3, (int64_t)to);
	const int got = db_step(statement, err);
	if (got == 1)
		*out_worth = estimate(to - from, (uint64_t)db_column_i64(statement, 0), (uint64_t)db_column_i64(statement, 1)) <= bytes - bytes / 7;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}
