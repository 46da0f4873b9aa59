/* Files first, as hidden versions that a row of `scratch_versions` keeps each. The change that
 * names them releases these rows. So a crash leaves a whole fold, or versions that go after the
 * next start. */
#include "storage/step_jobs/fold_store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/objects/stored_folder.h"
#include "storage/runs/fold_object.h"
#include "storage/versions/scratch_row.h"

enum { KEY_ROOM_BYTES = 64 };

struct storing {
	struct change change; /* first */
	const struct fold_store_params *params;
	struct fold_row row;
	struct stored_folder stored;
};

struct refusal {
	struct change change; /* first */
	int64_t fold;
};

static int fold_store_apply(struct change *change, struct db *db, struct error *err);
static int find_row(struct store *store, int64_t fold, struct fold_row *out, struct error *err);
static char *key_prefix(const struct storing *storing);
static int fold_refuse_apply(struct change *change, struct db *db, struct error *err);

int fold_store(struct store *store, const struct fold_store_params *params, struct error *err)
{
	struct storing storing = {.change = {.apply = fold_store_apply}, .params = params};
	ASSERT(params->folder != NULL);
	int result = find_row(store, params->fold, &storing.row, err);
	if (result != 0)
		return -1;
	char *const prefix = key_prefix(&storing);
	result = stored_folder_put(
		&storing.stored, store, params->bucket, params->folder, prefix, err);
	free(prefix);
	if (result == 0)
		result = committer_run(store_committer(store), &storing.change, err);
	stored_folder_release(&storing.stored, store, result == 0);
	return result;
}

int fold_refuse(struct store *store, int64_t fold, struct error *err)
{
	struct refusal refusal = {.change = {.apply = fold_refuse_apply}, .fold = fold};
	return committer_run(store_committer(store), &refusal.change, err);
}

static int fold_store_apply(struct change *change, struct db *db, struct error *err)
{
	const struct storing *const storing = (const struct storing *)change;
	uint64_t bytes = 0;
	struct fold_row row;
	const int found = fold_row_find_id(db, storing->row.id, &row, err);
	if (found < 0)
		return -1;
	if (found == 0 || row.state != FOLD_WANTED)
		return error_set(err, ERROR_PRECONDITION, "The fold is not wanted any more.");
	for (size_t i = 0; i < storing->stored.count; i++) {
		const struct stored_file *const file = &storing->stored.files[i];
		if (fold_object_add(db, row.id, span_text(file->name), file->version, err) != 0 ||
			scratch_row_release(db, file->version, err) != 0)
			return -1;
		bytes += file->size;
	}
	return fold_row_set_made(db, row.id, storing->params->format, bytes, err);
}

static int find_row(struct store *store, int64_t fold, struct fold_row *out, struct error *err)
{
	struct db *const db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	const int found = fold_row_find_id(db, fold, out, err);
	store_reader_give(store, db);
	if (found == 0)
		return error_set(err, ERROR_PRECONDITION, "The fold is not wanted any more.");
	return found < 0 ? -1 : 0;
}

static char *key_prefix(const struct storing *storing)
{
	const struct span run = storing->params->run;
	const size_t len = run.len + KEY_ROOM_BYTES;
	char *const prefix = memory_new(len);
	snprintf(prefix, len, "%.*s/folds/%06llu-%06llu/", (int)run.len, (const char *)run.data,
		(unsigned long long)storing->row.from, (unsigned long long)storing->row.to);
	return prefix;
}

static int fold_refuse_apply(struct change *change, struct db *db, struct error *err)
{
	struct fold_row row;
	const int found = fold_row_find_id(db, ((struct refusal *)change)->fold, &row, err);
	if (found != 1 || row.state != FOLD_WANTED)
		return found < 0 ? -1 : 0;
	return fold_row_set_state(db, row.id, FOLD_REFUSED, err);
}
