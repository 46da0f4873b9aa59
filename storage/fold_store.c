#include "storage/fold_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "storage/committer.h"
#include "storage/fold_object.h"
#include "storage/scratch.h"
#include "storage/scratch_row.h"
#include "storage/step_row.h"

enum { DEPTH_MAX = 16, KEY_ROOM_BYTES = 64 };

struct stored { /* a file that is a hidden version */
	char *name;
	int64_t version;
	uint64_t size;
};

struct storing {
	struct change change; /* first */
	struct store *store;
	const struct fold_store_params *params;
	struct fold_row row;
	struct stored *files;
	size_t count;
};

static char *join(const char *const folder, const char *const name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name);
	return path;
}

static char *make_key(const struct storing *const storing, const char *const name)
{
	const struct span run = storing->params->run;
	const size_t len = run.len + strlen(name) + KEY_ROOM_BYTES;
	char *const key = memory_new(len);
	snprintf(key, len, "%.*s/folds/%06llu-%06llu/%s", (int)run.len, (const char *)run.data, (unsigned long long)storing->row.from,
		(unsigned long long)storing->row.to, name);
	return key;
}

static int store_file(struct storing *const storing, const char *const path, const char *const name, struct error *const err)
{
	struct stored file = {0};
	if (storing->count == STEP_OBJECTS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "The fold has over %d files.", STEP_OBJECTS_MAX);
	if (file_size(path, &file.size, err) != 0)
		return -1;
	char *const key = make_key(storing, name);
	const int result = scratch_store_hidden(storing->store, path, storing->params->bucket, span_text(key), &file.version, err);
	free(key);
	if (result != 0)
		return -1;
	file.name = memory_copy_text(name);
	storing->files = memory_grow(storing->files, storing->count + 1, sizeof(*storing->files));
	storing->files[storing->count++] = file;
	return 0;
}

static int store_folder_files(struct storing *const storing, const char *const folder, const char *const prefix, const unsigned depth,
	struct error *const err)
{
	char **names;
	size_t count;
	if (depth > DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "%s is nested over %d folders deep.", folder, DEPTH_MAX);
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = join(folder, names[i]);
		char *const name = join(prefix, names[i]);
		struct stat facts;
		if (lstat(path, &facts) != 0)
			result = error_set_errno(err, "looking at %s", path);
		else
			result = S_ISDIR(facts.st_mode) ? store_folder_files(storing, path, name, depth + 1, err)
				: store_file(storing, path, name, err);
		free(name);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static int find_row(struct store *const store, const int64_t fold, struct fold_row *const out, struct error *const err)
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

static int apply_store(struct change *const change, struct db *const db, struct error *const err)
{
	const struct storing *const storing = (const struct storing *)change;
	uint64_t bytes = 0;
	struct fold_row row;
	const int found = fold_row_find_id(db, storing->row.id, &row, err);
	if (found < 0)
		return -1;
	if (found == 0 || row.state != FOLD_WANTED)
		return error_set(err, ERROR_PRECONDITION, "The fold is not wanted any more.");
	for (size_t i = 0; i < storing->count; i++) {
		const struct stored *const file = &storing->files[i];
		if (fold_object_add(db, row.id, span_text(file->name), file->version, err) != 0 || scratch_row_release(db, file->version, err) != 0)
			return -1;
		bytes += file->size;
	}
	return fold_row_set_made(db, row.id, storing->params->format, bytes, err);
}

int fold_store(struct store *const store, const struct fold_store_params *const params, struct error *const err)
{
	struct storing storing = {.change = {.apply = apply_store}, .store = store, .params = params};
	int result = find_row(store, params->fold, &storing.row, err);
	if (result == 0)
		result = store_folder_files(&storing, params->folder, "", 0, err);
	if (result == 0)
		result = committer_run(store_committer(store), &storing.change, err);
	for (size_t i = 0; i < storing.count; i++) {
		struct error ignored = {0};
		if (result != 0)
			(void)scratch_release(store, storing.files[i].version, &ignored); /* what stays held goes at the next start */
		free(storing.files[i].name);
	}
	free(storing.files);
	return result;
}

struct refusal {
	struct change change; /* first */
	int64_t fold;
};

static int apply_refuse(struct change *const change, struct db *const db, struct error *const err)
{
	struct fold_row row;
	const int found = fold_row_find_id(db, ((struct refusal *)change)->fold, &row, err);
	if (found != 1 || row.state != FOLD_WANTED)
		return found < 0 ? -1 : 0;
	return fold_row_set_state(db, row.id, FOLD_REFUSED, err);
}

int fold_refuse(struct store *const store, const int64_t fold, struct error *const err)
{
	struct refusal refusal = {.change = {.apply = apply_refuse}, .fold = fold};
	return committer_run(store_committer(store), &refusal.change, err);
}
