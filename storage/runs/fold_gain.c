/* The estimate is the sum of the single deltas times a measured ratio. Runs differ from those that
 * were measured, so the run's newest fold serves as an example that corrects the ratio. */
#include "storage/runs/fold_gain.h"

#include "storage/run_tables/fold_row.h"

static const char SQL_GAIN_DELTAS[] =
	"SELECT COUNT(delta_bytes), COALESCE(SUM(delta_bytes), 0) FROM steps WHERE run = ?1 AND step > ?2 AND step <= ?3";

static int find_example(struct db *db, int64_t run, uint64_t to, uint64_t *out_steps,
	double *out_ratio, struct error *err);
static int sum_deltas(
	struct db *db, int64_t run, uint64_t from, uint64_t to, double *out, struct error *err);
static double correct(double ratio, double example, double expected);

double fold_gain_ratio(uint64_t steps)
{
	static const struct {
		uint64_t steps; /* at least */
		double ratio;
	} measured[] = {
		{128, 0.17}, {64, 0.22}, {32, 0.29}, {24, 0.34}, {16, 0.40}, {8, 0.52}, {4, 0.65}};
	for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
		if (steps >= measured[i].steps)
			return measured[i].ratio;
	return 1;
}

int fold_gain_is_worth(struct db *db, const struct fold_candidate *fold, uint64_t bytes,
	bool *out_worth, struct error *err)
{
	double deltas = 0;
	double example = 0;
	uint64_t steps = 0;
	ASSERT(fold->from < fold->to);
	double ratio = fold_gain_ratio(fold->to - fold->from);
	*out_worth = false;
	const int found = find_example(db, fold->run, fold->to, &steps, &example, err);
	if (found < 0 || sum_deltas(db, fold->run, fold->from, fold->to, &deltas, err) != 0)
		return -1;
	if (found == 1 && steps >= FOLD_SPAN_MIN)
		ratio = correct(ratio, example, fold_gain_ratio(steps));
	*out_worth = deltas * ratio <= (double)bytes * (1 - FOLD_GAIN_LEAST);
	return 0;
}

/* The run's newest fold that ends at `to` or below: *out_ratio is its part of the sum of its single
 * deltas, and *out_steps the number of its steps. 1 when there is one, 0, -1. */
static int find_example(struct db *db, int64_t run, uint64_t to, uint64_t *out_steps,
	double *out_ratio, struct error *err)
{
	struct fold_row fold;
	double deltas = 0;
	struct db_statement *const scan = fold_row_scan(db, run, to, err);
	const int got = db_step(scan, err);
	if (got == 1)
		fold_row_read(scan, &fold);
	db_reset(scan);
	if (got != 1)
		return got;
	if (sum_deltas(db, run, fold.from, fold.to, &deltas, err) != 0)
		return -1;
	*out_steps = fold.to - fold.from;
	*out_ratio = deltas > 0 ? (double)fold.bytes / deltas : 0;
	return deltas > 0;
}

/* The bytes of the single deltas of these steps; 0 when none has a delta. A step without one counts
 * as much as the others on average. */
static int sum_deltas(
	struct db *db, int64_t run, uint64_t from, uint64_t to, double *out, struct error *err)
{
	struct db_statement *const statement = db_query(
		db, SQL_GAIN_DELTAS, err, db_i64(run), db_i64((int64_t)from), db_i64((int64_t)to));
	const int got = db_step(statement, err);
	const int64_t deltas = got == 1 ? db_column_i64(statement, 0) : 0;
	if (got >= 0)
		*out = deltas == 0 ? 0
				   : (double)db_column_i64(statement, 1) * (double)(to - from) /
				(double)deltas;
	db_reset(statement);
	return got < 0 ? -1 : 0;
}

/* An example that is smaller than expected makes the ratio smaller in proportion. A larger one
 * moves it as far towards 1, which means that the fold saves nothing. */
static double correct(double ratio, double example, double expected)
{
	ASSERT(expected > 0 && expected < 1);
	return example <= expected ? ratio * example / expected
				   : ratio + (1 - ratio) * (example - expected) / (1 - expected);
}
