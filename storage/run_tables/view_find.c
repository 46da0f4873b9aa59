#include "storage/run_tables/view_find.h"

#include "storage/run_tables/run_row.h"
#include "storage/run_tables/step_row.h"

int view_find(
	struct db *db, int64_t bucket, struct span key, struct view_wanted *out, struct error *err)
{
	struct run_row run;
	struct step_row step;
	struct span name;
	enum view_state state = VIEW_MADE;
	if (!view_key_parse(key, &name, &out->kind, &out->number))
		return 0;
	int found = run_row_find(db, bucket, name, &run, err);
	if (found == 1)
		found = step_row_find(db, run.id, out->number, &step, err);
	if (found != 1 || step.state != STEP_KEPT || step.verified == STEP_FAILED)
		return found < 0 ? -1 : 0; /* no view of it will be made */
	out->run = run.id;
	out->step = step.id;
	found = view_row_find(db, step.id, out->kind, &state, err);
	return found == 1 && state != VIEW_WANTED ? 0 : found;
}
