/* Steps with an anchor are scanned downwards until a root is found, which reads the depth of each.
 * Stored depths can be too low, so the depths of the files are read too. */
#include "storage/runs/step_anchor_base.h"

#include "storage/run_tables/step_anchor_row.h"
#include "storage/runs/step_anchor_keys.h"
#include "storage/runs/step_pin.h"
#include "storage/versions/derived.h"
#include "storage/versions/derived_row.h"

enum { PINS_ARENA_BYTES = 16 * 1024 * 1024, CHAIN_LINKS = 8 };

struct choice {
	uint64_t step; /* the step that wants an anchor */
	bool has_node;
	struct step_anchor_base node; /* the nearest of depth 1 */
	bool has_root;
	struct step_anchor_base root; /* the nearest of depth 0 */
};

static int scan_for_root(
	struct db *db, struct db_statement *scan, struct choice *choice, struct error *err);
static int find_depth(
	struct db *db, const struct step_row *row, unsigned *out_depth, struct error *err);
static bool is_near(const struct choice *choice, const struct step_anchor_base *base);
static int chain_links(struct db *db, int64_t run, uint64_t step, uint64_t *out, struct error *err);
static int want(struct db *db, const struct step_row *row, struct error *err);

int step_anchor_base_find(
	struct db *db, int64_t run, uint64_t step, struct step_anchor_base *out, struct error *err)
{
	struct choice choice = {.step = step};
	struct db_statement *const scan = step_anchor_row_scan_whole(db, run, step, err);
	if (scan == NULL)
		return -1;
	const int result = scan_for_root(db, scan, &choice, err);
	db_reset(scan);
	if (result != 0)
		return -1;
	const bool takes_node = choice.has_node &&
		!(choice.has_root && is_near(&choice, &choice.root)) &&
		(!choice.has_root || is_near(&choice, &choice.node));
	*out = takes_node ? choice.node : choice.root;
	return takes_node || choice.has_root;
}

int step_anchor_want_after(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	struct step_row newest;
	struct step_row row;
	uint64_t links = 0;
	int found = step_row_good_at_or_below(db, run, step, &row, err);
	if (found != 1 || row.verified != STEP_PROVEN || row.has_form[STEP_ANCHOR])
		return found == 1 ? step_anchor_row_want_none_below(db, run, row.step, err) : found;
	if (chain_links(db, run, row.step, &links, err) != 0)
		return -1;
	found = step_row_good_at_or_below(db, run, UINT64_MAX, &newest, err);
	if (found != 1 || (newest.step != row.step && links < CHAIN_LINKS))
		return found < 0 ? -1 : 0;
	return want(db, &row, err) != 0 ? -1
					: step_anchor_row_want_none_below(db, run, row.step, err);
}

int step_anchor_want_stored(
	struct db *db, int64_t run, uint64_t root, uint64_t step, struct error *err)
{
	struct step_row row;
	ASSERT(root <= step);
	const int awaits = step_anchor_row_awaits_stored(db, run, root, step, err);
	if (awaits != 0)
		return awaits < 0 ? -1 : 0;
	const int found = step_row_good_at_or_below(db, run, step, &row, err);
	if (found != 1 || row.step <= root || row.verified != STEP_PROVEN ||
		row.has_form[STEP_ANCHOR])
		return found < 0 ? -1 : 0;
	return step_anchor_row_want(db, row.id, STEP_WANTS_STORED, err);
}

int step_anchor_want_pinned(struct db *db, int64_t run, uint64_t step, struct error *err)
{
	struct step_row row;
	const int found = step_row_find(db, run, step, &row, err);
	if (found != 1 || row.state != STEP_KEPT || row.verified == STEP_FAILED ||
		row.has_form[STEP_ANCHOR])
		return found < 0 ? -1 : 0;
	return want(db, &row, err);
}

/* Scans until a root is found. The nearest steps come first. */
static int scan_for_root(
	struct db *db, struct db_statement *scan, struct choice *choice, struct error *err)
{
	int got = 0;
	while (!choice->has_root && (got = db_step(scan, err)) == 1) {
		struct step_anchor_base base;
		step_row_read(scan, &base.row);
		if (find_depth(db, &base.row, &base.depth, err) != 0)
			return -1;
		if (base.depth == 0) {
			choice->has_root = true;
			choice->root = base;
		} else if (base.depth < DERIVED_DEPTH_MAX && !choice->has_node) {
			choice->has_node = true;
			choice->node = base;
		}
	}
	return got < 0 ? -1 : 0;
}

/* The depth of an anchor is that of its deepest file, as the files are now. An upload may have
 * become a derived version since, even between the look at the files from which an anchor was made
 * and the change that adds it. */
static int find_depth(
	struct db *db, const struct step_row *row, unsigned *out_depth, struct error *err)
{
	struct step_pins pins;
	const enum step_pin_form form =
		row->has_form[STEP_ANCHOR] ? STEP_PIN_ANCHOR : STEP_PIN_MADE;
	struct arena *const arena = arena_new(PINS_ARENA_BYTES);
	int result = step_pin_list(db, row->id, form, arena, &pins, err);
	*out_depth = form == STEP_PIN_MADE ? row->made_depth : 0;
	for (size_t i = 0; i < pins.count && result == 0; i++) {
		unsigned depth = 0;
		result = derived_row_depth(db, pins.items[i].version, &depth, err);
		*out_depth = depth > *out_depth ? depth : *out_depth;
	}
	arena_free(arena);
	return result;
}

static bool is_near(const struct choice *choice, const struct step_anchor_base *base)
{
	ASSERT(base->row.step < choice->step);
	return choice->step - base->row.step < ANCHOR_SPAN;
}

/* The number of deltas between the step and the nearest one below that has an anchor; 0 when there
 * is none. */
static int chain_links(struct db *db, int64_t run, uint64_t step, uint64_t *out, struct error *err)
{
	struct db_statement *const scan = step_anchor_row_scan_whole(db, run, step, err);
	struct step_row whole;
	const int got = db_step(scan, err);
	if (got == 1)
		step_row_read(scan, &whole);
	db_reset(scan);
	*out = got == 1 ? step - whole.step : 0;
	return got < 0 ? -1 : 0;
}

static int want(struct db *db, const struct step_row *row, struct error *err)
{
	if (row->wants_made != STEP_WANTS_NONE)
		return 0;
	if (row->has_made && step_anchor_keys_show(db, row->id, err) != 0)
		return -1;
	return step_anchor_row_want(db, row->id, STEP_WANTS_MADE, err);
}
