/* Links are applied in groups: an anchor alone, or up to APPLY_LINKS_MAX deltas in one pass. Each
 * group makes a checkpoint in `work`, beside the downloads of path_fetch.h, under the names made-a
 * and made-b in turn: each is the base of the next one. The last is proven, synced and renamed to
 * `out`. An anchor's files get a second name instead of a copy, if the file system can do that. */
#include "client/transfer/catch_up.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/proven_files.h"
#include "client/work/progress.h"
#include "client/transfer/path_fetch.h"
#include "client/transfer/subset_make.h"
#include "weights/delta/delta.h"
#include "weights/model/checkpoint.h"
#include "weights/model/mapped_file.h"
#include "weights/model/parallel.h"
#include "weights/model/relative_path.h"
#include "weights/model/staging.h"

enum {
	PATH_LINKS_MAX = 100000,
	APPLY_LINKS_MAX = 32 /* each costs a block of memory per thread */
};

static void count_links(const struct path_message *path, struct catch_up_result *out);
static int make_subset(const struct catch_up_params *params, const char *to, const char **out_last,
	struct error *err);
static int make(const struct catch_up_params *params, char *const made[2], const char **out_last,
	struct error *err);
static size_t group_size(const struct path_message *path, size_t first);
static int make_group(const struct catch_up_params *params, const struct path_link *links,
	size_t count, const char *base, const char *to, struct error *err);
static int assemble(
	const struct file_ops *files, const char *from, const char *to, struct error *err);
static int apply_deltas(const struct catch_up_params *params, const struct path_link *links,
	size_t count, const char *base, const char *to, struct error *err);
static struct progress *show_progress(
	const struct catch_up_params *params, const char *doing, uint64_t step, uint64_t bytes);
static struct work_watch *watch_of(const struct catch_up_params *params, struct progress *progress);
static int make_folder(const struct file_ops *files, const char *made, const struct path_link *link,
	struct error *err);
static int prove(const struct catch_up_params *params, const char *folder, struct error *err);
static int digest_anchor(const struct catch_up_params *params, const struct path_link *anchor,
	const char *folder, struct digest128 *out, struct error *err);
static int prove_files(
	const struct path_link *link, const char *folder, unsigned threads, struct error *err);
static int place(
	const struct file_ops *files, const char *made, const char *out, struct error *err);

int catch_up_folder_digest(const char *folder, unsigned threads, struct work_watch *watch,
	struct digest128 *out, struct error *err)
{
	struct checkpoint *const checkpoint = checkpoint_open(folder, err);
	if (checkpoint == NULL)
		return -1;
	const struct schema *const schema = checkpoint_schema(checkpoint);
	struct digest128 *const digests =
		memory_new_array(schema_count(schema) + 1, sizeof(*digests));
	const int result = checkpoint_tensor_digests(checkpoint, threads, watch, digests, err);
	if (result == 0)
		*out = schema_checkpoint_digest(schema, digests);
	free(digests);
	checkpoint_close(checkpoint);
	return result;
}

int catch_up_fetch(
	const struct catch_up_params *params, struct catch_up_result *out_result, struct error *err)
{
	if (params->path->link_count == 0)
		return error_set(err, ERROR_UPSTREAM,
			"the server's path to step %" PRIu64 " has no link", params->path->to_step);
	if (params->path->link_count > PATH_LINKS_MAX)
		return error_set(
			err, ERROR_UPSTREAM, "the server's path has over %d steps", PATH_LINKS_MAX);
	const int64_t started = clock_monotonic_ms();
	const struct path_fetch fetch = {
		.transfer = params->transfer,
		.run = params->run,
		.path = params->path,
		.work = params->work,
		.progress_sink = params->progress_sink,
	};
	*out_result = (struct catch_up_result){0};
	count_links(params->path, out_result);
	if (path_fetch_clean(params->transfer.files, params->work, params->path, err) != 0 ||
		path_fetch_all(&fetch, &out_result->bytes, err) != 0)
		return -1;
	out_result->fetch_ms = clock_monotonic_ms() - started;
	return 0;
}

int catch_up_make(
	const struct catch_up_params *params, struct catch_up_result *out_result, struct error *err)
{
	ASSERT(params->path->link_count > 0);
	char *const made[2] = {folder_files_join(params->work, "made-a"),
		folder_files_join(params->work, "made-b")};
	const char *last = NULL;
	const int64_t started = clock_monotonic_ms();
	int result = params->subset != NULL ? make_subset(params, made[0], &last, err)
					    : make(params, made, &last, err);
	if (result == 0 && params->subset == NULL)
		result = prove(params, last, err);
	if (result == 0)
		result = place(params->transfer.files, last, params->out, err);
	if (result == 0 && !params->keeps_downloads)
		result = path_fetch_drop(params->transfer.files, params->work, params->path, err);
	out_result->apply_ms = clock_monotonic_ms() - started;
	for (size_t i = 0; i < 2; i++) {
		struct error ignored = {0};
		/* they still exist only after a failure */
		file_remove_tree(params->transfer.files, made[i], &ignored);
		free(made[i]);
	}
	return result;
}

int catch_up(
	const struct catch_up_params *params, struct catch_up_result *out_result, struct error *err)
{
	if (catch_up_fetch(params, out_result, err) != 0)
		return -1;
	return catch_up_make(params, out_result, err);
}

bool catch_up_owns(const char *name)
{
	static const char *const STARTS[] = {"made-a", "made-b", STAGING_PREFIX};
	for (size_t i = 0; i < sizeof(STARTS) / sizeof(STARTS[0]); i++)
		if (span_starts(span_text(name), span_text(STARTS[i])))
			return true;
	return path_fetch_owns(name);
}

bool catch_up_wants_anchor(const struct error *err)
{
	return err->kind == ERROR_WRONG_BASE || err->kind == ERROR_DIGEST_MISMATCH ||
		err->kind == ERROR_CORRUPT || err->kind == ERROR_CONTENT_DAMAGED ||
		err->kind == ERROR_INVALID || err->kind == ERROR_UNSUPPORTED ||
		err->kind == ERROR_SCHEMA_MISMATCH || err->kind == ERROR_NOT_FOUND;
}

static void count_links(const struct path_message *path, struct catch_up_result *out)
{
	for (size_t i = 0; i < path->link_count; i++) {
		const struct step_form *const form = &path->links[i].form;
		if (form->kind == STEP_ANCHOR) {
			*out = (struct catch_up_result){.anchor_bytes = step_form_bytes(form)};
			continue;
		}
		out->delta_bytes += step_form_bytes(form);
		out->deltas++;
	}
}

static int make_subset(const struct catch_up_params *params, const char *to, const char **out_last,
	struct error *err)
{
	const struct subset_make_params subset = {
		.subset = params->subset,
		.path = params->path,
		.work = params->work,
		.base = params->base,
		.base_digest = params->base_digest,
		.tensor_digests = params->tensor_digests,
		.files = params->transfer.files,
		.threads = params->threads,
	};
	*out_last = to;
	if (file_remove_tree(params->transfer.files, to, err) != 0)
		return -1;
	return subset_make(&subset, to, err);
}

/* Makes the groups one after the other. Two names take turns, so that a path of any length needs
 * room for only two checkpoints beside the base. */
static int make(const struct catch_up_params *params, char *const made[2], const char **out_last,
	struct error *err)
{
	const struct path_message *const path = params->path;
	const char *base = params->base;
	size_t count;
	for (size_t i = 0, turn = 0; i < path->link_count; i += count, turn++) {
		count = group_size(path, i);
		if (stop_check(params->transfer.remote->stop, err) != 0)
			return -1;
		const char *const to = made[turn % 2];
		if (file_remove_tree(params->transfer.files, to, err) != 0 ||
			make_group(params, &path->links[i], count, base, to, err) != 0)
			return -1;
		base = to;
	}
	*out_last = base;
	return 0;
}

/* The number of links from `first` on that one pass can take. */
static size_t group_size(const struct path_message *path, size_t first)
{
	ASSERT(first < path->link_count);
	size_t count = 1;
	if (path->links[first].form.kind == STEP_ANCHOR)
		return count;
	while (count < APPLY_LINKS_MAX && first + count < path->link_count &&
		path->links[first + count].form.kind == STEP_DELTA)
		count++;
	return count;
}

static int make_group(const struct catch_up_params *params, const struct path_link *links,
	size_t count, const char *base, const char *to, struct error *err)
{
	int result;
	if (links[0].form.kind == STEP_ANCHOR) {
		char *const files = path_fetch_files(params->work, &links[0]);
		result = assemble(params->transfer.files, files, to, err);
		free(files);
	} else {
		result = apply_deltas(params, links, count, base, to, err);
	}
	if (result != 0)
		return error_wrap(err, "making step %" PRIu64, links[count - 1].step);
	return 0;
}

/* Puts the downloaded files under their names in a new folder. They share their bytes with the
 * downloads, which nothing changes. */
static int assemble(
	const struct file_ops *files, const char *from, const char *to, struct error *err)
{
	struct folder_files found;
	if (folder_files_read(from, &found, err) != 0)
		return -1;
	int result = file_make_folder(files, to, 0755, err);
	for (size_t i = 0; i < found.count && result == 0; i++) {
		char *const path = folder_files_join(to, found.files[i].name);
		result = file_make_parent(files, path, 0755, err);
		if (result == 0)
			result = file_share(files, found.files[i].path, path, err);
		free(path);
	}
	folder_files_release(&found);
	return result;
}

/* Applies several deltas in one pass: each block of a tensor passes through all of them, and one
 * checkpoint is written. */
static int apply_deltas(const struct catch_up_params *params, const struct path_link *links,
	size_t count, const char *base, const char *to, struct error *err)
{
	ASSERT(count > 0 && count <= APPLY_LINKS_MAX);
	if (base == NULL)
		return error_set(err, ERROR_UPSTREAM,
			"the server's path begins with a delta, but there is no step to apply it to");
	struct checkpoint *const opened = checkpoint_open(base, err);
	if (opened == NULL)
		return -1;
	char *deltas[APPLY_LINKS_MAX];
	size_t used = 0;
	for (size_t i = 0; i < count; i++)
		if (links[i].form.object_count > 0) /* without objects: nothing changed */
			deltas[used++] = path_fetch_files(params->work, &links[i]);
	struct progress *const progress =
		show_progress(params, "making", links[count - 1].step, checkpoint_bytes(opened));
	const struct delta_apply_params apply = {
		.base = opened,
		.deltas = (const char *const *)deltas,
		.delta_count = used,
		.out = to,
		.threads = params->threads,
		.watch = watch_of(params, progress),
		.expected_result = &links[count - 1].digest,
		.shares_files = true,
		.files = params->transfer.files,
	};
	struct delta_stats stats;
	int result = used > 0 ? delta_apply(&apply, &stats, err)
			      : assemble(params->transfer.files, base, to, err);
	if (result == 0)
		result = make_folder(params->transfer.files, to, &links[count - 1], err);
	progress_free(progress);
	for (size_t i = 0; i < used; i++)
		free(deltas[i]);
	checkpoint_close(opened);
	return result;
}

static struct progress *show_progress(
	const struct catch_up_params *params, const char *doing, uint64_t step, uint64_t bytes)
{
	char what[64];
	snprintf(what, sizeof(what), "%s step %" PRIu64, doing, step);
	return progress_new(what, bytes, params->progress_sink);
}

static struct work_watch *watch_of(const struct catch_up_params *params, struct progress *progress)
{
	return progress_watch(progress, params->transfer.remote->stop);
}

/* Here a checkpoint is always a folder, but a delta between two files makes a file: moves that file
 * into a folder. */
static int make_folder(const struct file_ops *files, const char *made, const struct path_link *link,
	struct error *err)
{
	struct stat facts;
	if (stat(made, &facts) != 0)
		return error_set_errno(err, "looking at %s", made);
	if (S_ISDIR(facts.st_mode))
		return 0;
	struct buffer aside;
	buffer_init(&aside, 8192);
	buffer_format(&aside, "%s.file", made);
	char *const path = link->file_count == 1 ? relative_path_join(made, link->files[0].path)
						 : folder_files_join(made, "model.safetensors");
	int result = files->rename(files, made, buffer_text(&aside)) == 0
		? 0
		: error_set_errno(err, "renaming %s", made);
	if (result == 0)
		result = file_make_parent(files, path, 0755, err);
	if (result == 0 && files->rename(files, buffer_text(&aside), path) != 0)
		result = error_set_errno(err, "renaming %s to %s", buffer_text(&aside), path);
	free(path);
	buffer_release(&aside);
	return result;
}

/* Proves that the folder has exactly the files that the step lists, byte for byte, and that their
 * tensors have the step's digest. */
static int prove(const struct catch_up_params *params, const char *folder, struct error *err)
{
	const struct path_link *const last = &params->path->links[params->path->link_count - 1];
	struct digest128 digest;
	/* delta_apply has already compared its result with this digest. */
	if (last->form.kind == STEP_ANCHOR &&
		digest_anchor(params, last, folder, &digest, err) != 0)
		return -1;
	if (last->form.kind == STEP_ANCHOR && !digest128_equal(&digest, &last->digest))
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"the tensors of the fetched step %" PRIu64
			" do not match the step's digest",
			last->step);
	return prove_files(last, folder, params->threads, err);
}

static int digest_anchor(const struct catch_up_params *params, const struct path_link *anchor,
	const char *folder, struct digest128 *out, struct error *err)
{
	struct progress *const progress =
		show_progress(params, "proving", anchor->step, step_form_bytes(&anchor->form));
	const int result = catch_up_folder_digest(
		folder, params->threads, watch_of(params, progress), out, err);
	progress_free(progress);
	return result;
}

static int prove_files(
	const struct path_link *link, const char *folder, unsigned threads, struct error *err)
{
	struct folder_files found;
	if (folder_files_read(folder, &found, err) != 0)
		return -1;
	const size_t count = found.count;
	folder_files_release(&found);
	if (count > link->file_count)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"the fetched step %" PRIu64 " has %zu files instead of %zu", link->step,
			count, link->file_count);
	struct proven_files wanted;
	proven_files_copy(link->files, link->file_count, &wanted);
	const int result = proven_files_check(&wanted, folder, threads, NULL, err);
	proven_files_release(&wanted);
	return result;
}

static int place(const struct file_ops *files, const char *made, const char *out, struct error *err)
{
	if (folder_files_sync(files, made, err) != 0)
		return -1;
	if (files->rename(files, made, out) != 0)
		return error_set_errno(err, "renaming %s to %s", made, out);
	return 0;
}
