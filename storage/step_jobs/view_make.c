/* With a base the view is the delta upon the step before, in the layout's format. Without one,
 * slime gets all files of the checkpoint, as copies that share their bytes, and TRL gets nothing
 * new. Where the step was published with an anchor, TRL also gets that under the key it expects. */
#include "storage/step_jobs/view_make.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "storage/core/store.h"
#include "storage/step_jobs/step_delta.h"
#include "weights/model/relative_path.h"

enum { MADE_ARENA_BYTES = 16 * 1024 * 1024 };

static const enum delta_format formats[VIEW_KINDS] = {
	[VIEW_TRL] = DELTA_TRL_GAP, [VIEW_SLIME] = DELTA_SLIME_XOR};

static int make_delta(struct step_work *work, const struct view_wanted *wanted,
	struct view_made *made, struct error *err);
static int encode(struct step_work *work, const struct view_wanted *wanted,
	const struct view_made *made, const struct scratch *scratch, const char *folder,
	struct error *err);
static int store_trl(struct view_made *made, struct store *store, const char *folder,
	const struct scratch *scratch, uint64_t step, struct error *err);
static int copy_files(struct view_made *made, struct error *err);
static int check_single(const struct step_source *step, struct error *err);
static int copy_trl_anchor(struct view_made *made, uint64_t step, struct error *err);

int view_make(struct step_work *work, const struct view_wanted *wanted, bool base_kept,
	struct view_made *out, struct error *err)
{
	char prefix[VIEW_KEY_BYTES];
	ASSERT(wanted->kind < VIEW_KINDS && (!base_kept || wanted->number > 0));
	*out = (struct view_made){.arena = arena_new(MADE_ARENA_BYTES)};
	out->step =
		step_source_open(work->store, work, wanted->run, wanted->number, STEP_VIA_ANY, err);
	if (out->step == NULL)
		return -1;
	const struct span run = step_source_chain(out->step)->run_name;
	const size_t len = wanted->kind == VIEW_TRL
		? view_key_prefix(VIEW_TRL, run, prefix)
		: view_key_step(wanted->kind, run, wanted->number, prefix);
	out->prefix = arena_text(out->arena, span_of(prefix, len));
	if (wanted->kind == VIEW_SLIME)
		return base_kept ? make_delta(work, wanted, out, err) : copy_files(out, err);
	if (check_single(out->step, err) != 0 || copy_trl_anchor(out, wanted->number, err) != 0)
		return -1;
	return base_kept ? make_delta(work, wanted, out, err) : 0;
}

void view_made_release(struct view_made *made, struct store *store, bool taken)
{
	stored_folder_release(&made->stored, store, taken);
	step_source_close(made->step);
	arena_free(made->arena);
	*made = (struct view_made){.prefix = NULL};
}

static int make_delta(struct step_work *work, const struct view_wanted *wanted,
	struct view_made *made, struct error *err)
{
	const int64_t bucket = step_source_chain(made->step)->run.bucket;
	struct scratch *const scratch = scratch_open(work->store, err);
	if (scratch == NULL)
		return -1;
	char *const folder = relative_path_join(scratch_path(scratch), span_text("view"));
	int result = encode(work, wanted, made, scratch, folder, err);
	if (result == 0 && wanted->kind == VIEW_TRL)
		result = store_trl(made, work->store, folder, scratch, wanted->number, err);
	else if (result == 0)
		result = stored_folder_put(
			&made->stored, work->store, bucket, folder, made->prefix, err);
	free(folder);
	scratch_close(scratch);
	return result;
}

static int encode(struct step_work *work, const struct view_wanted *wanted,
	const struct view_made *made, const struct scratch *scratch, const char *folder,
	struct error *err)
{
	struct step_source *const base = step_source_open(
		work->store, work, wanted->run, wanted->number - 1, STEP_VIA_ANY, err);
	const struct step_delta_plan plan = {.base = base,
		.next = made->step,
		.scratch = scratch,
		.format = formats[wanted->kind],
		.out = folder};
	const int result = base == NULL ? -1 : step_delta_encode(work, &plan, err);
	step_source_close(base);
	return result;
}

/* TRL's layout has only the file of the delta, and no other file of the folder. */
static int store_trl(struct view_made *made, struct store *store, const char *folder,
	const struct scratch *scratch, uint64_t step, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(made->step);
	const struct file_ops *const files = store_files(store);
	char key[VIEW_KEY_BYTES];
	const struct span name =
		span_slice(span_of(key, view_key_step(VIEW_TRL, chain->run_name, step, key)),
			strlen(made->prefix), sizeof(key));
	char *const inside = relative_path_join(folder, span_text("delta.safetensors"));
	/* the delta of a checkpoint that is one file is one file too */
	const char *const from = file_exists(inside) ? inside : folder;
	char *const alone = relative_path_join(scratch_path(scratch), span_text("alone"));
	char *const to = relative_path_join(alone, name);
	int result = file_make_folder(files, alone, 0700, err);
	if (result == 0 && files->rename(files, from, to) != 0)
		result = error_set_errno(err, "moving '%s'", from);
	if (result == 0)
		result = stored_folder_put(
			&made->stored, store, chain->run.bucket, alone, made->prefix, err);
	free(to);
	free(alone);
	free(inside);
	return result;
}

/* Shares every file of the checkpoint as it is. */
static int copy_files(struct view_made *made, struct error *err)
{
	const struct model_files *const files = step_source_files(made->step);
	ASSERT(made->copies == NULL);
	made->copies = arena_take_array(made->arena, files->count + 1, sizeof(*made->copies));
	if (made->copies == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The step has too many files.");
	for (size_t i = 0; i < files->count; i++) {
		const struct span path = files->files[i].path;
		const int64_t version = step_source_version(made->step, path);
		if (version == 0)
			return error_set(err, ERROR_NOT_READY,
				"No anchor holds '%.*s' of the step.", (int)path.len,
				(const char *)path.data);
		const char *const key = arena_format(made->arena, "%s%.*s", made->prefix,
			(int)path.len, (const char *)path.data);
		if (key == NULL)
			return error_set(err, ERROR_NO_MEMORY, "The step has too many files.");
		made->copies[made->copy_count++] = (struct view_copy){span_text(key), version};
	}
	return 0;
}

/* TRL reads one file for each step. */
static int check_single(const struct step_source *step, struct error *err)
{
	if (model_files_shards(step_source_files(step)) == 1)
		return 0;
	return error_set(
		err, ERROR_UNSUPPORTED, "TRL's layout holds checkpoints of one safetensors file.");
}

/* Where the step was published with an anchor, TRL finds it under the key that it expects. */
static int copy_trl_anchor(struct view_made *made, uint64_t step, struct error *err)
{
	const struct step_chain *const chain = step_source_chain(made->step);
	ASSERT(made->copies == NULL && step_source_files(made->step)->count > 0);
	const struct model_file *shard = step_source_files(made->step)->files;
	while (!shard->is_shard) /* check_single has found it */
		shard++;
	const int64_t version = step_source_version(made->step, shard->path);
	char key[VIEW_KEY_BYTES];
	if (!chain->row.has_form[STEP_ANCHOR] || version == 0)
		return 0;
	made->copies = arena_take_array(made->arena, 1, sizeof(*made->copies));
	if (made->copies == NULL)
		return error_set(err, ERROR_NO_MEMORY, "The memory for a view ran out.");
	made->copies[made->copy_count++] = (struct view_copy){
		arena_copy(made->arena, span_of(key, view_key_anchor(chain->run_name, step, key))),
		version};
	return 0;
}
