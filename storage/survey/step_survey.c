#include "storage/survey/step_survey.h"

#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_changes_row.h"
#include "storage/runs/step_read.h"
#include "weights/model/schema.h"

enum { ARENA_BYTES = 128 * 1024 * 1024 };

struct surveying {
	struct call call; /* first */
	struct run_ref run;
	struct step_survey result;
	struct schema *schema; /* has the tensors' names and shapes */
	uint64_t anchor;
};

static enum call_next step_survey_help(struct call *call, struct error *err);
static int look(struct surveying *surveying, struct db *db, struct error *err);
static int look_at_step(struct surveying *surveying, struct db *db, const struct run_row *run,
	const struct step_row *row, struct error *err);
static int load_schema(
	struct surveying *surveying, struct db *db, const struct run_row *run, struct error *err);
static int fill(struct surveying *surveying, const uint64_t *counts, struct error *err);
static int not_counted(const struct step_row *row, struct error *err);
static void step_survey_release(struct call *call);

static const struct call_kind kind = {
	.stages = {{.help = step_survey_help}}, .release = step_survey_release};

struct call *step_survey_call(struct store *store, const struct run_ref *run, uint64_t step)
{
	struct surveying *const surveying = call_new(sizeof(*surveying), &kind, store, ARENA_BYTES);
	surveying->run = run_ref_copy(run, surveying->call.arena);
	surveying->result.step = step;
	surveying->anchor = UINT64_MAX;
	return &surveying->call;
}

const struct step_survey *step_survey_result(const struct call *call)
{
	return &((const struct surveying *)call)->result;
}

uint64_t step_survey_anchor(const struct call *call)
{
	return ((const struct surveying *)call)->anchor;
}

static enum call_next step_survey_help(struct call *call, struct error *err)
{
	struct db *const db = store_snapshot_take(call->store, err);
	if (db == NULL)
		return CALL_FAILS;
	const int result = look((struct surveying *)call, db, err);
	store_snapshot_give(call->store, db);
	return result == 0 ? CALL_NEXT : CALL_FAILS;
}

static int look(struct surveying *surveying, struct db *db, struct error *err)
{
	struct run_row run;
	struct step_row row;
	if (run_row_need(db, &surveying->run, &run, err) != 0 ||
		step_need_kept(db, run.id, surveying->result.step, &row, &surveying->anchor, err) !=
			0)
		return -1;
	return look_at_step(surveying, db, &run, &row, err);
}

static int look_at_step(struct surveying *surveying, struct db *db, const struct run_row *run,
	const struct step_row *row, struct error *err)
{
	struct step_changes sums;
	uint64_t *counts = NULL;
	int found = step_changes_row_find(db, row->id, &sums, err);
	if (found == 1 && load_schema(surveying, db, run, err) != 0)
		return -1;
	if (found == 1)
		found = step_changes_row_counts(db, row->id, schema_count(surveying->schema),
			surveying->call.arena, &counts, err);
	if (found != 1)
		return found < 0 ? -1 : not_counted(row, err);
	surveying->result.elements = sums.elements;
	surveying->result.changed = sums.changed;
	return fill(surveying, counts, err);
}

static int load_schema(
	struct surveying *surveying, struct db *db, const struct run_row *run, struct error *err)
{
	struct buffer text;
	buffer_init(&text, 2 * SAFETENSORS_HEADER_MAX_BYTES);
	if (run_row_load_schema(db, run, &text, err) == 0)
		surveying->schema = schema_parse(buffer_span(&text), err);
	buffer_release(&text);
	return surveying->schema == NULL ? -1 : 0;
}

static int fill(struct surveying *surveying, const uint64_t *counts, struct error *err)
{
	struct step_survey *const result = &surveying->result;
	const size_t count = schema_count(surveying->schema);
	struct surveyed_tensor *const tensors =
		arena_take_array(surveying->call.arena, count + 1, sizeof(*tensors));
	if (tensors == NULL)
		return error_set(err, ERROR_TOO_LARGE, "The step has too many tensors to list.");
	for (size_t i = 0; i < count; i++) {
		const struct schema_tensor *const facts = schema_tensor(surveying->schema, i);
		tensors[i] = (struct surveyed_tensor){.name = facts->name,
			.dtype = dtype_name(facts->dtype),
			.rank = facts->rank,
			.shape = facts->shape,
			.elements = schema_tensor_units(facts),
			.changed = counts[i]};
	}
	result->tensors = tensors;
	result->count = count;
	return 0;
}

static int not_counted(const struct step_row *row, struct error *err)
{
	static const char *const reasons[] = {[STEP_UNPROVEN] = "its proof is not through yet",
		[STEP_PROVEN] =
			"it has no delta to count by, or was proven before the server counted",
		[STEP_FAILED] = "its proof failed",
		[STEP_UNCHECKED] = "the run's setting verify was off"};
	const bool is_known = (size_t)row->verified < sizeof(reasons) / sizeof(reasons[0]);
	return error_set(err, ERROR_NOT_FOUND, "What step %llu changed is not known: %s.",
		(unsigned long long)row->step,
		is_known ? reasons[row->verified] : "its row of the catalog is damaged");
}

static void step_survey_release(struct call *call)
{
	schema_free(((struct surveying *)call)->schema);
}
