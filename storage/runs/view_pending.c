/* The keys of views that are still to be made, for listings. The views that a step can have follow
 * from its row: TRL's delta needs the step before, and its anchor a published one. */
#include "storage/buckets/bucket_row.h"
#include "storage/run_tables/view_key.h"
#include "storage/runs/run.h"

struct pending {
	struct span prefix;
	size_t most;
	struct arena *arena;
	struct span *keys;
	size_t count;
};

static int list(
	struct pending *pending, struct db *db, struct bucket_ref bucket, struct error *err);
static void add_view(struct pending *pending, const struct view_pending *view);
static void add(struct pending *pending, struct span key);

int run_list_pending(struct store *store, const struct run_pending_scan *scan, struct arena *arena,
	struct span *out, size_t *out_count, struct error *err)
{
	struct pending pending = {
		.prefix = scan->prefix, .most = scan->limit, .arena = arena, .keys = out};
	struct db *const db = store_reader_take(store, err);
	*out_count = 0;
	if (db == NULL)
		return -1;
	const int result = list(&pending, db, scan->bucket, err);
	store_reader_give(store, db);
	*out_count = pending.count;
	return result;
}

static int list(struct pending *pending, struct db *db, struct bucket_ref bucket, struct error *err)
{
	struct view_pending views[VIEW_PENDING_MAX];
	int64_t id;
	size_t count = 0;
	if (bucket_row_find(db, bucket, &id, err) != 0 ||
		view_row_list_pending(db, id, pending->arena, views, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		add_view(pending, &views[i]);
	return arena_overflowed(pending->arena)
		? error_set(err, ERROR_NO_MEMORY, "The request's memory ran out.")
		: 0;
}

static void add_view(struct pending *pending, const struct view_pending *view)
{
	char key[VIEW_KEY_BYTES];
	if (view->kind == VIEW_SLIME || view->has_base)
		add(pending, span_of(key, view_key_step(view->kind, view->run, view->number, key)));
	if (view->kind == VIEW_TRL && view->has_anchor)
		add(pending, span_of(key, view_key_anchor(view->run, view->number, key)));
}

static void add(struct pending *pending, struct span key)
{
	ASSERT(key.len > 0);
	const bool is_folder = key.data[key.len - 1] == '/';
	const bool fits = span_starts(key, pending->prefix) ||
		(is_folder && span_starts(pending->prefix, key));
	if (fits && pending->count < pending->most)
		pending->keys[pending->count++] = arena_copy(pending->arena, key);
}
