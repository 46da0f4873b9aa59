/* A round in memory differs from one in a folder in how it makes the step. A path of deltas from
 * the held step is applied in place, and the generation's folder takes the new name. A path that
 * begins with an anchor costs the held step, because there is room for one checkpoint only: it goes
 * first, the anchor becomes a generation of its own, and the deltas behind it are applied to that.
 * Deltas that change the headers of the shards cannot be applied in place; they make a new folder,
 * as in a folder, and for that time there are two checkpoints. So does every step of a part of the
 * model, because a part has not all tensors that a delta changes. */
#include "client/follow/stepper_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/follow/earlier_generation.h"
#include "client/transfer/path_fetch.h"
#include "client/work/progress.h"

/* A round that moves. */
struct move {
	struct stepper *stepper;
	struct stepper_round *round;
	const struct path_message *path;
	struct step_message manifest; /* of the wanted step */
	char *label;
};

enum {
	/* links that are applied in place in one pass: each costs a block of memory per thread */
	PATCH_LINKS_MAX = 32,
	PREFETCH_LOOK_MS = 200
};

static int find_manifest(
	struct stepper *stepper, uint64_t step, struct step_message *out, struct error *err);
static char *text_of(struct span text);
static int settle_prefetch(const struct move *move, struct error *err);
static int bring(struct move *move, struct error *err);
static int bring_again(struct move *move, struct error *err);
static int bring_whole(struct move *move, const struct path_message *path, struct error *err);
static int fetch_and_make(
	struct move *move, const struct catch_up_params *params, struct error *err);
static struct catch_up_params catch_up_params_of(
	const struct move *move, const struct path_message *path);
static void add_fetched(struct stepper_round *round, const struct catch_up_result *fetched);
static void start_prefetch(struct stepper *stepper, const struct path_link *last);
static int swap_to(struct move *move, const struct path_message *path, const char *name,
	const char *folder, struct error *err);
static int note_files(const struct stepper *stepper, const char *folder, struct follow_swap *swap,
	struct proven_files *out, struct error *err);
static int bring_in_memory(struct move *move, struct error *err);
static int bring_part(struct move *move, struct error *err);
static int begin_anew(struct move *move, struct error *err);
static int make_room(struct stepper *stepper, uint64_t bytes, struct error *err);
static int map_current(struct stepper *stepper, struct error *err);
static int patch_to(struct move *move, const struct path_message *path, struct error *err);
static int patch_links(struct move *move, const struct path_message *path, struct error *err);
static int patch_group(struct move *move, const struct path_message *part, struct error *err);
static int patch_live(struct move *move, const struct path_message *part, const char *const *deltas,
	size_t count, struct error *err);
static void spoil(struct stepper *stepper);
static int rename_current(struct move *move, const struct path_message *part, struct error *err);
static int bring_rest(struct move *move, const struct path_message *rest, struct error *err);
static void keep_deltas(struct stepper *stepper, const struct stepper_round *round,
	const struct path_message *path, const char *base);

int stepper_move(struct stepper *stepper, struct stepper_round *round,
	const struct path_message *path, struct error *err)
{
	struct move move = {.stepper = stepper, .round = round, .path = path};
	ASSERT(path->link_count > 0);
	if (find_manifest(stepper, path->to_step, &move.manifest, err) != 0 ||
		settle_prefetch(&move, err) != 0)
		return -1;
	stepper_drop_deltas(stepper);
	round->fetched = (struct catch_up_result){0};
	round->came_whole = path->from_nothing;
	round->created_ms = move.manifest.created_ms;
	move.label = text_of(move.manifest.label);
	char *const base = stepper->folder.has_current && stepper->memory == NULL
		? follow_folder_current(&stepper->folder)
		: NULL;
	const int result = bring(&move, err);
	free(move.label);
	if (result == 0)
		keep_deltas(stepper, round, path, base);
	free(base);
	if (result != 0)
		return -1;
	stepper->from_anchor = false;
	stepper->report.has_pause = false;
	round->moved = true;
	return 0;
}

int stepper_drop_memory(struct stepper *stepper, struct error *err)
{
	memory_model_unmap(stepper->memory);
	follow_folder_distrust(&stepper->folder);
	stepper->is_spoiled = false;
	return follow_folder_trim(&stepper->folder, 0, err);
}

void stepper_drop_deltas(struct stepper *stepper)
{
	struct error ignored = {0};
	for (size_t i = 0; i < stepper->delta_count; i++) {
		*strrchr(stepper->deltas[i], '/') = '\0'; /* the link's folder, with its parts */
		file_remove_tree(&stepper->files, stepper->deltas[i], &ignored);
		free(stepper->deltas[i]);
	}
	free(stepper->deltas);
	free(stepper->base);
	stepper->base = NULL;
	stepper->deltas = NULL;
	stepper->delta_count = 0;
}

static int find_manifest(
	struct stepper *stepper, uint64_t step, struct step_message *out, struct error *err)
{
	if (stepper->params->subset != NULL)
		return stepper_ask(stepper,
			remote_run_step_tensors(
				stepper->remote, &stepper->run, step, stepper->arena, out, err));
	return stepper_ask(stepper,
		remote_run_step(stepper->remote, &stepper->run, step, stepper->arena, out, err));
}

static char *text_of(struct span text)
{
	char *const copy = memory_new(text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

/* The prefetch and a round must not write to the same files. If the round goes to a newer step, the
 * prefetch has heard of that too, and is at its files. */
static int settle_prefetch(const struct move *move, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	if (stepper->prefetch == NULL)
		return 0;
	if (move->round->has_wanted || !stepper->folder.has_current ||
		move->path->to_step <= stepper->folder.current.step) {
		stepper_stop_prefetch(stepper);
		return 0;
	}
	while (!prefetch_wait(stepper->prefetch, PREFETCH_LOOK_MS))
		if (stop_reason(stepper->session->stop) != 0) {
			stepper_stop_prefetch(stepper);
			return stop_check(stepper->session->stop, err);
		}
	prefetch_finish(stepper->prefetch);
	stepper->prefetch = NULL;
	return 0;
}

static int bring(struct move *move, struct error *err)
{
	if (move->stepper->memory != NULL)
		return bring_in_memory(move, err);
	const int again = bring_again(move, err);
	return again != 0 ? (again > 0 ? 0 : -1) : bring_whole(move, move->path, err);
}

/* Swaps to a step that the folder still has, where the path would begin with an anchor: back, in a
 * rollback. 1 when it is current, 0 when the path must be fetched. */
static int bring_again(struct move *move, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	const struct path_message *const path = move->path;
	if (!path->from_nothing || stepper->from_anchor)
		return 0;
	const int64_t started_ms = clock_monotonic_ms();
	struct proven_files files = {0};
	char *name;
	char *out;
	follow_folder_next(&stepper->folder, path->to_step, &name, &out);
	struct follow_swap swap = {.name = name,
		.step = path->to_step,
		.digest = path->links[path->link_count - 1].digest,
		.label = move->label,
		.tensors = stepper_part(stepper)};
	const struct earlier_generation earlier = {.folder = &stepper->folder,
		.ops = &stepper->files,
		.swap = &swap,
		.out = out,
		.files = &files,
		.threads = stepper->params->threads,
		.progress_sink = stepper->session->progress,
		.stop = stepper->session->stop,
		.report = &stepper->report};
	int result = earlier_generation_make(&earlier, err);
	if (result > 0 && follow_folder_swap(&stepper->folder, &swap, err) != 0)
		result = -1;
	if (result > 0)
		move->round->fetched.apply_ms = clock_monotonic_ms() - started_ms;
	proven_files_release(&files);
	free(out);
	free(name);
	return result;
}

/* Downloads the path, makes a new generation and swaps to it. */
static int bring_whole(struct move *move, const struct path_message *path, struct error *err)
{
	struct follow_folder *const folder = &move->stepper->folder;
	char *name;
	char *out;
	follow_folder_next(folder, path->to_step, &name, &out);
	struct catch_up_params params = catch_up_params_of(move, path);
	char *const base =
		folder->has_current && !path->from_nothing ? follow_folder_current(folder) : NULL;
	params.base = base;
	params.out = out;
	int result = fetch_and_make(move, &params, err);
	if (result == 0)
		result = swap_to(move, path, name, out, err);
	free(base);
	free(out);
	free(name);
	return result;
}

/* Reports to the server which of the two it is doing. */
static int fetch_and_make(
	struct move *move, const struct catch_up_params *params, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	struct catch_up_result fetched;
	follow_report_wanted(&stepper->report, REPLICA_FETCHING, move->path->to_step);
	if (catch_up_fetch(params, &fetched, err) != 0)
		return -1;
	follow_report_wanted(&stepper->report, REPLICA_STAGING, move->path->to_step);
	if (!move->round->has_wanted)
		start_prefetch(stepper, &params->path->links[params->path->link_count - 1]);
	const int result = catch_up_make(params, &fetched, err);
	add_fetched(move->round, &fetched);
	return result;
}

static struct catch_up_params catch_up_params_of(
	const struct move *move, const struct path_message *path)
{
	struct stepper *const stepper = move->stepper;
	struct catch_up_params params = {
		.transfer = session_transfer(stepper->session, stepper->remote, NULL),
		.run = &stepper->run,
		.path = path,
		.work = stepper->work,
		.threads = stepper->params->threads,
		.progress_sink = stepper->session->progress,
		.subset = stepper->params->subset,
		.base_digest = stepper->folder.current.digest,
		.tensor_digests = move->manifest.tensor_digests,
		.keeps_downloads = stepper->params->keeps_deltas && !move->round->came_whole,
	};
	params.transfer.files = &stepper->files;
	return params;
}

/* A round in memory may have two parts. */
static void add_fetched(struct stepper_round *round, const struct catch_up_result *fetched)
{
	round->fetched.bytes += fetched->bytes;
	round->fetched.fetch_ms += fetched->fetch_ms;
	round->fetched.apply_ms += fetched->apply_ms;
	round->fetched.anchor_bytes += fetched->anchor_bytes;
	round->fetched.delta_bytes += fetched->delta_bytes;
	round->fetched.deltas += fetched->deltas;
}

/* Starts to fetch the steps after `last`, until that is settled or stopped. */
static void start_prefetch(struct stepper *stepper, const struct path_link *last)
{
	ASSERT(stepper->prefetch == NULL);
	if (!stepper->params->prefetches || stepper->memory != NULL)
		return;
	const struct prefetch_params params = {
		.files = &stepper->files,
		.remote = stepper->params->remote,
		.run = &stepper->run,
		.work = stepper->work,
		.parallel = stepper->session->parallel,
		.have = last->step,
		.digest = last->digest,
		.poll_s = stepper->params->poll_s,
		.folder = &stepper->folder,
	};
	stepper->prefetch = prefetch_start(&params);
}

/* Makes the generation current that lies in `folder` and is the end of `path`. */
static int swap_to(struct move *move, const struct path_message *path, const char *name,
	const char *folder, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	const struct path_link *const last = &path->links[path->link_count - 1];
	struct proven_files files = {0};
	struct follow_swap swap = {.name = name,
		.step = last->step,
		.digest = last->digest,
		.label = last->step == move->path->to_step ? move->label : "",
		.tensors = stepper_part(stepper),
		.held = last->digest,
		.files = &files};
	int result = 0;
	if (stepper->params->subset == NULL)
		proven_files_copy(last->files, last->file_count, &files);
	else
		result = note_files(stepper, folder, &swap, &files, err);
	if (result == 0)
		result = follow_folder_swap(&stepper->folder, &swap, err);
	proven_files_release(&files);
	return result;
}

/* A whole step has the files that have just been proven; those of a part are read from the new
 * folder. */
static int note_files(const struct stepper *stepper, const char *folder, struct follow_swap *swap,
	struct proven_files *out, struct error *err)
{
	const unsigned threads = stepper->params->threads;
	if (catch_up_folder_digest(folder, threads, NULL, &swap->held, err) != 0)
		return -1;
	return proven_files_read(folder, threads, out, err);
}

static int bring_in_memory(struct move *move, struct error *err)
{
	const struct path_message *const path = move->path;
	if (move->stepper->params->subset != NULL)
		return bring_part(move, err);
	if (!path->from_nothing)
		return patch_to(move, path, err);
	if (begin_anew(move, err) != 0)
		return -1;
	const struct path_message rest = {.from_step = path->links[0].step,
		.to_step = path->to_step,
		.links = path->links + 1,
		.link_count = path->link_count - 1};
	return rest.link_count > 0 ? patch_to(move, &rest, err) : 0;
}

/* The anchor that a path begins with lies there whole for a while. */
static int bring_part(struct move *move, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	const struct path_message *const path = move->path;
	move->round->came_whole = true;
	if (path->from_nothing &&
		(stepper_drop_memory(stepper, err) != 0 ||
			make_room(stepper, path->bytes, err) != 0))
		return -1;
	return bring_whole(move, path, err) == 0 ? map_current(stepper, err) : -1;
}

/* Brings the anchor that the path begins with, in the place of the held step. */
static int begin_anew(struct move *move, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	const struct path_message *const path = move->path;
	const struct path_message anchor = {.from_nothing = true,
		.to_step = path->links[0].step,
		.links = path->links,
		.link_count = 1};
	if (stepper_drop_memory(stepper, err) != 0 || make_room(stepper, path->bytes, err) != 0 ||
		bring_whole(move, &anchor, err) != 0)
		return -1;
	return map_current(stepper, err);
}

static int make_room(struct stepper *stepper, uint64_t bytes, struct error *err)
{
	const int moved =
		memory_model_make_room(stepper->memory, bytes, &stepper->session->output, err);
	if (moved <= 0)
		return moved;
	follow_folder_close(&stepper->folder);
	return stepper_open_folder(stepper, err);
}

/* Maps the new generation; the others go. What cannot be mapped is not held. */
static int map_current(struct stepper *stepper, struct error *err)
{
	char *const path = follow_folder_current(&stepper->folder);
	memory_model_unmap(stepper->memory);
	int result = memory_model_map(stepper->memory, path, err);
	if (result != 0)
		spoil(stepper);
	else
		result = follow_folder_trim(&stepper->folder, 0, err);
	free(path);
	return result;
}

/* Applies the path's deltas to the weights in memory, in place where that can be. */
static int patch_to(struct move *move, const struct path_message *path, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	/* each pass knows only what it has changed itself */
	if (path->link_count > PATCH_LINKS_MAX)
		move->round->came_whole = true;
	const struct catch_up_params params = catch_up_params_of(move, path);
	struct catch_up_result fetched;
	follow_report_wanted(&stepper->report, REPLICA_FETCHING, move->path->to_step);
	if (catch_up_fetch(&params, &fetched, err) != 0)
		return -1;
	follow_report_wanted(&stepper->report, REPLICA_STAGING, move->path->to_step);
	const int64_t started_ms = clock_monotonic_ms();
	int result = patch_links(move, path, err);
	if (result == 0 && !params.keeps_downloads)
		result = path_fetch_drop(&stepper->files, stepper->work, path, err);
	fetched.apply_ms = clock_monotonic_ms() - started_ms;
	add_fetched(move->round, &fetched);
	return result;
}

/* Applies some links at a time; the weights are those of a step between two parts. */
static int patch_links(struct move *move, const struct path_message *path, struct error *err)
{
	size_t count;
	for (size_t first = 0; first < path->link_count; first += count) {
		const size_t left = path->link_count - first;
		count = left < PATCH_LINKS_MAX ? left : PATCH_LINKS_MAX;
		const struct path_message part = {.from_step = path->links[first].from,
			.to_step = path->links[first + count - 1].step,
			.links = path->links + first,
			.link_count = count};
		const int result = patch_group(move, &part, err);
		if (result < 0)
			return error_wrap(err, "making step %" PRIu64, part.to_step);
		if (result > 0) {
			struct path_message rest = part;
			rest.to_step = path->to_step;
			rest.link_count = left;
			return bring_rest(move, &rest, err);
		}
	}
	return 0;
}

/* 1 when the part cannot be applied in place. */
static int patch_group(struct move *move, const struct path_message *part, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	char *deltas[PATCH_LINKS_MAX];
	size_t count = 0;
	if (stop_check(stepper->session->stop, err) != 0)
		return -1;
	for (size_t i = 0; i < part->link_count; i++)
		if (part->links[i].form.object_count > 0) /* without objects: nothing changed */
			deltas[count++] = path_fetch_files(stepper->work, &part->links[i]);
	int result =
		count > 0 ? patch_live(move, part, (const char *const *)deltas, count, err) : 0;
	if (result == 0)
		result = rename_current(move, part, err);
	for (size_t i = 0; i < count; i++)
		free(deltas[i]);
	return result;
}

static int patch_live(struct move *move, const struct path_message *part, const char *const *deltas,
	size_t count, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	struct live_checkpoint *const live = memory_model_live(stepper->memory);
	char *const folder = follow_folder_current(&stepper->folder);
	char what[64];
	snprintf(what, sizeof(what), "making step %" PRIu64, part->to_step);
	struct progress *const progress = progress_new(
		what, schema_bytes(live_checkpoint_schema(live)), stepper->session->progress);
	const struct live_patch patch = {
		.files = &stepper->files,
		.folder = folder,
		.deltas = deltas,
		.count = count,
		.base = &stepper->folder.current.digest,
		.result = &part->links[part->link_count - 1].digest,
		.keeps_changes = stepper->params->keeps_changes && !move->round->came_whole,
		.threads = stepper->params->threads,
		.watch = progress_watch(progress, stepper->session->stop),
	};
	bool is_spoiled;
	const int result = live_checkpoint_patch(live, &patch, &is_spoiled, err);
	if (is_spoiled)
		spoil(stepper);
	progress_free(progress);
	free(folder);
	return result;
}

/* The weights cannot be used: nothing is held, and the next round throws them away. */
static void spoil(struct stepper *stepper)
{
	stepper->is_spoiled = true;
	follow_folder_distrust(&stepper->folder);
}

/* The current generation has become the end of `part`: gives it that name. */
static int rename_current(struct move *move, const struct path_message *part, struct error *err)
{
	struct stepper *const stepper = move->stepper;
	const struct file_ops *const files = &stepper->files;
	char *const from = follow_folder_current(&stepper->folder);
	char *name;
	char *to;
	follow_folder_next(&stepper->folder, part->to_step, &name, &to);
	int result = files->rename(files, from, to) == 0
		? swap_to(move, part, name, to, err)
		: error_set_errno(err, "renaming %s to %s", from, to);
	if (result == 0)
		result = follow_folder_trim(&stepper->folder, 0, err);
	if (result != 0)
		spoil(stepper);
	free(name);
	free(to);
	free(from);
	return result;
}

/* Makes a new folder from here on, for a result that has other headers. Its deltas are not kept, so
 * it counts as whole. */
static int bring_rest(struct move *move, const struct path_message *rest, struct error *err)
{
	move->round->came_whole = true;
	return bring_whole(move, rest, err) == 0 ? map_current(move->stepper, err) : -1;
}

/* Notes where the deltas are that led from the step before to this one. */
static void keep_deltas(struct stepper *stepper, const struct stepper_round *round,
	const struct path_message *path, const char *base)
{
	if (!stepper->params->keeps_deltas || round->came_whole)
		return;
	stepper->base = memory_copy_text(base);
	stepper->deltas = memory_new_array(path->link_count + 1, sizeof(stepper->deltas[0]));
	for (size_t i = 0; i < path->link_count; i++)
		if (path->links[i].form.object_count > 0)
			stepper->deltas[stepper->delta_count++] =
				path_fetch_files(stepper->work, &path->links[i]);
}
