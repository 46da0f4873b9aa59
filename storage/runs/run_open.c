/* One change opens a run. A run that is new gets epoch 1 and the default settings. One that is
 * there gets the next epoch, which shuts out its writer, and loses the parts of steps that wait. */
#include "storage/runs/run_open.h"

#include "storage/buckets/bucket_row.h"
#include "storage/run_tables/run_settings.h"
#include "storage/runs/step_part_row.h"

enum { OPEN_ARENA_BYTES = 64 * 1024 * 1024 };

static int check_expected(const struct run_open *open, uint64_t epoch, struct error *err);
static int run_open_apply(struct call *call, struct db *db, struct error *err);
static int check_keep(uint64_t keep_steps, struct error *err);
static int open_again(
	const struct run_open *open, struct db *db, struct run_row *row, struct error *err);

static const struct call_kind open_kind = {.stages = {{.apply = run_open_apply}}};

int run_open_add(const struct run_open *open, struct db *db, struct run_row *row, struct error *err)
{
	const struct span name = open->params.run.name;
	ASSERT(row->id == 0 && row->bucket > 0);
	if (check_expected(open, 0, err) != 0 || run_check_name(name, err) != 0)
		return -1;
	row->epoch = 1;
	row->settings = run_settings_default();
	if (open->params.has_keep_steps)
		row->settings.keep_steps = open->params.keep_steps;
	row->created_ms = store_now_ms(open->call.store);
	return run_row_add(db, name, row, err);
}

void *run_open_new(size_t bytes, const struct call_kind *kind, struct store *store,
	const struct run_open_params *params)
{
	ASSERT(bytes >= sizeof(struct run_open));
	struct run_open *const open = call_new(bytes, kind, store, OPEN_ARENA_BYTES);
	open->params = *params;
	open->params.run = run_ref_copy(&params->run, open->call.arena);
	return open;
}

struct call *run_open_call(struct store *store, const struct run_open_params *params)
{
	struct run_open *const open = run_open_new(sizeof(*open), &open_kind, store, params);
	return &open->call;
}

const struct run_message *run_open_result(const struct call *call)
{
	return &((const struct run_open *)call)->message;
}

static int check_expected(const struct run_open *open, uint64_t epoch, struct error *err)
{
	if (!open->params.has_expected_epoch || open->params.expected_epoch == epoch)
		return 0;
	return error_set(err, ERROR_PRECONDITION,
		"The run is at epoch %llu, not at %llu: somebody has opened it since.",
		(unsigned long long)epoch, (unsigned long long)open->params.expected_epoch);
}

static int run_open_apply(struct call *call, struct db *db, struct error *err)
{
	struct run_open *const open = (struct run_open *)call;
	const struct run_ref *const ref = &open->params.run;
	int64_t bucket;
	struct run_row row;
	if (check_keep(open->params.keep_steps, err) != 0 ||
		bucket_row_find(db, ref->bucket, &bucket, err) != 0)
		return -1;
	const int found = run_row_find(db, bucket, ref->name, &row, err);
	if (found < 0)
		return -1;
	if (found == 0)
		row = (struct run_row){.bucket = bucket};
	if ((found == 1 ? open_again(open, db, &row, err) : run_open_add(open, db, &row, err)) != 0)
		return -1;
	run_row_message(&row, ref, &open->message);
	return 0;
}

static int check_keep(uint64_t keep_steps, struct error *err)
{
	if (keep_steps <= INT64_MAX)
		return 0;
	return error_set(err, ERROR_INVALID, "keep_steps is at most %lld.", (long long)INT64_MAX);
}

static int open_again(
	const struct run_open *open, struct db *db, struct run_row *row, struct error *err)
{
	if (check_expected(open, row->epoch, err) != 0)
		return -1;
	row->epoch++;
	if (step_part_row_settle(db, row->id, INT64_MAX, STEP_PART_DEAD, err) != 0)
		return -1;
	if (open->params.has_keep_steps) {
		row->settings.keep_steps = open->params.keep_steps;
		if (run_settings_store(db, row->id, &row->settings, err) != 0)
			return -1;
	}
	return run_row_update(db, row, err);
}
