/* In `work`, a folder per link (named by step, kind and digest, so that another path never takes it for its own):
 *
 *   <link>/files/...   the link's objects by name, each renamed there only when proven
 *   <link>/parts/N     the object on its way, with its journal
 *   made-a, made-b     results of applying, the one before the last is the base of the last */
#include "client/catch_up.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "client/folder_files.h"
#include "weights/checkpoint.h"
#include "weights/delta.h"

enum { LINK_NAME_BYTES = 96, URL_MAX_BYTES = 8192, PATH_LINKS_MAX = 100000 };

static int64_t now_ms(void)
{
	const struct clock_source *const clock = clock_system();
	return clock->monotonic_ms(clock);
}

static void link_name(const struct path_link *const link, char out[LINK_NAME_BYTES])
{
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&link->digest, digest);
	snprintf(out, LINK_NAME_BYTES, "%06" PRIu64 "-%s-%.12s", link->step, step_form_kind_name(link->form.kind),
		digest + strlen("xxh3-128:"));
}

static char *link_path(const struct catch_up_params *const params, const struct path_link *const link, const char *const below)
{
	char name[LINK_NAME_BYTES];
	link_name(link, name);
	char *const folder = folder_files_join(params->work, name);
	char *const path = folder_files_join(folder, below);
	free(folder);
	return path;
}

/* Removes from `work` what belongs to no link of the path: leftovers of another path, and half-made results. */
static int clean_work(const struct catch_up_params *const params, struct error *const err)
{
	char **names;
	size_t count;
	if (file_list(params->work, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		bool wanted = false;
		for (size_t k = 0; k < params->path->link_count && !wanted; k++) {
			char name[LINK_NAME_BYTES];
			link_name(&params->path->links[k], name);
			wanted = strcmp(name, names[i]) == 0;
		}
		char *const path = folder_files_join(params->work, names[i]);
		if (!wanted)
			result = file_remove_tree(path, err);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

struct downloads {
	struct transfer_download *files;
	size_t count;
	uint64_t bytes;
};

static void downloads_release(struct downloads *const downloads)
{
	for (size_t i = 0; i < downloads->count; i++) {
		free((char *)downloads->files[i].target);
		free((char *)downloads->files[i].path);
		free((char *)downloads->files[i].part_path);
	}
	free(downloads->files);
}

static int add_download(struct downloads *const downloads, const struct catch_up_params *const params, const struct path_link *const link,
	const size_t index, struct error *const err)
{
	const struct step_object *const object = &link->form.objects[index];
	if (object->url.len == 0 || object->url.len > URL_MAX_BYTES || object->url.data[0] == '/')
		return error_set(err, ERROR_UPSTREAM, "the server's path gives no usable URL for an object of step %" PRIu64, link->step);
	char *const files = link_path(params, link, "files");
	char *const parts = link_path(params, link, "parts");
	char *const name = memory_new(object->name.len + 1);
	memcpy(name, object->name.data, object->name.len);
	char *const url = memory_new(object->url.len + 1);
	memcpy(url, object->url.data, object->url.len);
	char part[32];
	snprintf(part, sizeof part, "%zu", index);
	downloads->files = memory_grow(downloads->files, downloads->count + 1, sizeof *downloads->files);
	struct transfer_download *const download = &downloads->files[downloads->count++];
	*download = (struct transfer_download){
		.target = folder_files_join(params->run->target, url),
		.size = object->size,
		.has_digest = true,
		.digest = object->digest,
		.path = folder_files_join(files, name),
		.part_path = folder_files_join(parts, part),
	};
	downloads->bytes += object->size;
	free(url);
	free(name);
	int result = file_make_folder(parts, 0755, err);
	if (result == 0)
		result = folder_files_make_parent(download->path, err);
	free(parts);
	free(files);
	return result;
}

static int fetch(const struct catch_up_params *const params, struct catch_up_result *const out, struct error *const err)
{
	struct downloads downloads = {0};
	struct transfer_options transfer = params->transfer;
	char what[64];
	const int64_t started = now_ms();
	int result = 0;
	for (size_t i = 0; i < params->path->link_count && result == 0; i++) {
		const struct path_link *const link = &params->path->links[i];
		for (size_t k = 0; k < link->form.object_count && result == 0; k++)
			result = add_download(&downloads, params, link, k, err);
	}
	if (result == 0) {
		snprintf(what, sizeof what, "fetching step %" PRIu64, params->path->to_step);
		transfer.progress = progress_new(what, downloads.bytes, params->show_progress);
		result = transfer_download(&transfer, downloads.files, downloads.count, err);
		progress_free(transfer.progress);
	}
	out->bytes = downloads.bytes;
	out->fetch_ms = now_ms() - started;
	downloads_release(&downloads);
	return result;
}

/* The downloaded files under their names in a new folder; they share their bytes with the downloads, which nothing changes. */
static int assemble(const char *const from, const char *const to, struct error *const err)
{
	struct folder_files files;
	if (folder_files_read(from, &files, err) != 0)
		return -1;
	int result = file_make_folder(to, 0755, err);
	for (size_t i = 0; i < files.count && result == 0; i++) {
		char *const path = folder_files_join(to, files.files[i].name);
		result = folder_files_make_parent(path, err);
		if (result == 0 && link(files.files[i].path, path) != 0)
			result = file_clone(files.files[i].path, path, err);
		free(path);
	}
	folder_files_release(&files);
	return result;
}

static int apply_delta(const struct catch_up_params *const params, const struct path_link *const link, const char *const base,
	const char *const delta, const char *const to, struct error *const err)
{
	if (base == NULL)
		return error_set(err, ERROR_UPSTREAM, "the server's path begins with a delta, but nothing is held");
	struct checkpoint *const opened = checkpoint_open(base, err);
	if (opened == NULL)
		return -1;
	const struct delta_apply_params apply = {
		.base = opened,
		.delta = delta,
		.out = to,
		.threads = params->threads,
		.expected_result = &link->digest,
	};
	struct delta_stats stats;
	const int result = delta_apply(&apply, &stats, err);
	checkpoint_close(opened);
	return result;
}

static int take_link(const struct catch_up_params *const params, const struct path_link *const link, const char *const base,
	const char *const to, struct error *const err)
{
	char *const files = link_path(params, link, "files");
	const int result = link->form.kind == STEP_ANCHOR ? assemble(files, to, err) : apply_delta(params, link, base, files, to, err);
	free(files);
	if (result != 0)
		return error_wrap(err, "making step %" PRIu64, link->step);
	return 0;
}

int catch_up_folder_digest(const char *const folder, const unsigned threads, struct digest128 *const out, struct error *const err)
{
	struct checkpoint *const checkpoint = checkpoint_open(folder, err);
	if (checkpoint == NULL)
		return -1;
	const struct schema *const schema = checkpoint_schema(checkpoint);
	struct digest128 *const digests = memory_new_array(schema_count(schema) + 1, sizeof *digests);
	checkpoint_tensor_digests(checkpoint, threads != 0 ? threads : (unsigned)sysconf(_SC_NPROCESSORS_ONLN), digests);
	*out = schema_checkpoint_digest(schema, digests);
	free(digests);
	checkpoint_close(checkpoint);
	return 0;
}

static int prove_file(const struct folder_file *const file, const struct step_file *const wanted, struct error *const err)
{
	struct digest128 digest;
	if (!span_equal_text(wanted->path, file->name) || file->size != wanted->size)
		return error_set(err, ERROR_DIGEST_MISMATCH, "%s is not the file %.*s of %" PRIu64 " bytes that the step holds", file->path,
			(int)wanted->path.len, (const char *)wanted->path.data, wanted->size);
	if (transfer_file_digest(file->path, &digest, err) != 0)
		return -1;
	if (!digest128_equal(&digest, &wanted->digest))
		return error_set(err, ERROR_DIGEST_MISMATCH, "%s differs from the file that the step holds", file->path);
	return 0;
}

static int by_path(const void *const left, const void *const right)
{
	const struct step_file *const *const a = left;
	const struct step_file *const *const b = right;
	return span_compare((*a)->path, (*b)->path);
}

/* The folder holds exactly the files that the step lists, byte for byte, and the tensors in them have the step's digest. */
static int prove(const struct catch_up_params *const params, const char *const folder, struct error *const err)
{
	const struct path_link *const last = &params->path->links[params->path->link_count - 1];
	struct digest128 digest;
	if (catch_up_folder_digest(folder, params->threads, &digest, err) != 0)
		return -1;
	if (!digest128_equal(&digest, &last->digest))
		return error_set(err, ERROR_DIGEST_MISMATCH, "the tensors of step %" PRIu64 " as fetched differ from the step's digest",
			last->step);
	struct folder_files files;
	if (folder_files_read(folder, &files, err) != 0)
		return -1;
	const struct step_file **const wanted = memory_new_array(last->file_count + 1, sizeof *wanted);
	for (size_t i = 0; i < last->file_count; i++)
		wanted[i] = &last->files[i];
	qsort(wanted, last->file_count, sizeof *wanted, by_path);
	int result = 0;
	if (files.count != last->file_count)
		result = error_set(err, ERROR_DIGEST_MISMATCH, "step %" PRIu64 " as fetched has %zu files and should have %zu", last->step,
			files.count, last->file_count);
	for (size_t i = 0; i < files.count && result == 0; i++)
		result = prove_file(&files.files[i], wanted[i], err);
	free(wanted);
	folder_files_release(&files);
	return result;
}

/* Two names take turns, so that a chain of any length needs room for two checkpoints beside the base. */
static int make(const struct catch_up_params *const params, char *const made[2], const char **const out_last, struct error *const err)
{
	const char *base = params->base;
	for (size_t i = 0; i < params->path->link_count; i++) {
		if (interrupt_check(params->transfer.remote->interrupt, err) != 0)
			return -1;
		const char *const to = made[i % 2];
		if (file_remove_tree(to, err) != 0 || take_link(params, &params->path->links[i], base, to, err) != 0)
			return -1;
		base = to;
	}
	*out_last = base;
	return 0;
}

static int publish(const char *const made, const char *const out, struct error *const err)
{
	if (folder_files_sync(made, err) != 0)
		return -1;
	if (rename(made, out) != 0)
		return error_set_errno(err, "renaming %s to %s", made, out);
	return 0;
}

static int empty_work(const struct catch_up_params *const params, struct error *const err)
{
	const struct path_message nothing = {0};
	struct catch_up_params clean = *params;
	clean.path = &nothing;
	return clean_work(&clean, err);
}

static void count_links(const struct path_message *const path, struct catch_up_result *const out)
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

int catch_up(const struct catch_up_params *const params, struct catch_up_result *const out_result, struct error *const err)
{
	ASSERT(params->path->link_count > 0);
	if (params->path->link_count > PATH_LINKS_MAX)
		return error_set(err, ERROR_UPSTREAM, "the server's path has over %d steps", PATH_LINKS_MAX);
	*out_result = (struct catch_up_result){0};
	count_links(params->path, out_result);
	if (file_make_folder(params->work, 0755, err) != 0 || clean_work(params, err) != 0 || fetch(params, out_result, err) != 0)
		return -1;
	char *const made[2] = {folder_files_join(params->work, "made-a"), folder_files_join(params->work, "made-b")};
	const char *last = NULL;
	const int64_t started = now_ms();
	int result = make(params, made, &last, err);
	if (result == 0)
		result = prove(params, last, err);
	if (result == 0)
		result = publish(last, params->out, err);
	if (result == 0)
		result = empty_work(params, err);
	out_result->apply_ms = now_ms() - started;
	for (size_t i = 0; i < 2; i++) {
		struct error ignored = {0};
		file_remove_tree(made[i], &ignored); /* gone already unless something failed */
		free(made[i]);
	}
	return result;
}

bool catch_up_wants_anchor(const struct error *const err)
{
	return err->kind == ERROR_WRONG_BASE || err->kind == ERROR_DIGEST_MISMATCH || err->kind == ERROR_CORRUPT ||
		err->kind == ERROR_INVALID ||
		err->kind == ERROR_SCHEMA_MISMATCH || err->kind == ERROR_NOT_FOUND;
}
