#include "storage/overview/fold_list.h"

#include "storage/run_tables/fold_row.h"
#include "storage/run_tables/run_row.h"

/* folds that may end at one step: two skip folds, and the direct ones */
enum { OF_STEP_MAX = FOLD_DIRECT_MAX + 2 };

static int read_page(struct db_statement *rows, const struct fold_scan *scan, struct arena *arena,
	struct fold_list *out, struct error *err);
static bool is_full(const struct fold_list *list, size_t limit, uint64_t to);
static struct fold_note note_of(const struct fold_row *row, struct arena *arena);

int fold_list_read(struct store *store, const struct fold_scan *scan, struct arena *arena,
	struct fold_list *out, struct error *err)
{
	struct run_row run;
	*out = (struct fold_list){0};
	out->folds = arena_take_array(arena, scan->limit + OF_STEP_MAX, sizeof(*out->folds));
	if (out->folds == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing folds.");
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = run_row_need(db, &scan->run, &run, err);
	if (result == 0)
		result = read_page(fold_row_scan(db, run.id, scan->to, err), scan, arena, out, err);
	store_reader_give(store, db);
	if (result == 0 && arena_overflowed(arena))
		return error_set(
			err, ERROR_NO_MEMORY, "The request's memory ran out while listing folds.");
	return result;
}

static int read_page(struct db_statement *rows, const struct fold_scan *scan, struct arena *arena,
	struct fold_list *out, struct error *err)
{
	struct fold_row row;
	int got;
	while ((got = db_step(rows, err)) == 1) {
		fold_row_read(rows, &row);
		if (is_full(out, scan->limit, row.to)) {
			out->has_next = true;
			out->next = row.to;
			break;
		}
		out->folds[out->count++] = note_of(&row, arena);
	}
	db_reset(rows);
	return got < 0 ? -1 : 0;
}

/* A page ends between two steps, so that the next one begins at a step. */
static bool is_full(const struct fold_list *list, size_t limit, uint64_t to)
{
	if (list->count < limit)
		return false;
	return list->folds[list->count - 1].to != to || list->count == limit + OF_STEP_MAX;
}

static struct fold_note note_of(const struct fold_row *row, struct arena *arena)
{
	return (struct fold_note){.from = row->from,
		.to = row->to,
		.bytes = row->bytes,
		.is_direct = row->kind == FOLD_DIRECT,
		.format = arena_copy(arena, span_text(row->format))};
}
