/* Walks from the head downwards and adds up the deltas. The walk ends at the newest anchor or after
 * DUE_LINKS deltas, so it reads few rows. */
#include "storage/runs/step_due.h"

#include "storage/run_tables/step_row.h"

/* deltas since the last anchor: their number, and their bytes in percent of the anchor's */
enum { DUE_LINKS = 64, DUE_PERCENT = 30 };

static int walk(struct db_statement *scan, bool *out_due, struct error *err);
static bool is_due(uint64_t delta_bytes, const struct step_row *anchor);

int step_anchor_due(struct db *db, const struct run_row *run, bool *out_due, struct error *err)
{
	*out_due = false;
	if (!run->has_head)
		return 0;
	struct db_statement *const scan = step_row_scan(db, run->id, run->head, true, err);
	if (scan == NULL)
		return -1;
	const int result = walk(scan, out_due, err);
	db_reset(scan);
	return result;
}

static int walk(struct db_statement *scan, bool *out_due, struct error *err)
{
	uint64_t delta_bytes = 0;
	int got;
	*out_due = false;
	for (unsigned links = 0; (got = db_step(scan, err)) == 1; links++) {
		struct step_row row;
		step_row_read(scan, &row);
		if (row.state != STEP_KEPT)
			return 0;
		const bool has_anchor = row.has_form[STEP_ANCHOR] || row.has_made;
		*out_due = row.verified == STEP_FAILED || links > DUE_LINKS ||
			(has_anchor && is_due(delta_bytes, &row));
		if (*out_due || has_anchor)
			return 0;
		delta_bytes += row.form_bytes[STEP_DELTA];
	}
	return got < 0 ? -1 : 0;
}

static bool is_due(uint64_t delta_bytes, const struct step_row *anchor)
{
	ASSERT(anchor->has_form[STEP_ANCHOR] || anchor->has_made);
	const uint64_t bytes = anchor->has_form[STEP_ANCHOR] ? anchor->form_bytes[STEP_ANCHOR]
							     : anchor->made_bytes;
	return delta_bytes / DUE_PERCENT > bytes / 100;
}
