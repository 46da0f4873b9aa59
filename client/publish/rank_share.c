/* The index decides how shards are divided. If every shard that it names is there, the folder is
 * complete and the ranks take turns in order of names; every rank counts the same way, so no two
 * take the same shard and none is left over. Otherwise the folder is taken for this rank's own. The
 * facts of the files are compared before and after the copy, because a trainer may write
 * meanwhile. */
#include "client/publish/rank_share.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/local/file_chunks.h"
#include "client/local/folder_files.h"
#include "client/publish/publish_source.h"
#include "client/transfer/transfer.h"
#include "weights/model/shard_rule.h"

enum { INDEX_MAX_BYTES = 256 * 1024 * 1024 };

/* The checkpoint folder while it is divided. */
struct share {
	const struct rank_share_params *params;
	struct folder_files files;
	struct buffer index_text;
	struct shard_index *index; /* NULL: the folder has none */
	bool is_complete;          /* there is an index, and every shard that it names is there */
	const char *stray;         /* a file that is wanted and cannot be published by ranks */
};

static int open_share(
	struct share *share, const struct rank_share_params *params, struct error *err);
static void release_share(struct share *share);
static int read_index(struct share *share, struct error *err);
static const struct folder_file *find_file(const struct folder_files *files, struct span name);
static int choose_and_copy(struct share *share, struct error *err);
static bool *choose_ours(struct share *share, struct error *err);
static int check_count(const struct share *share, struct error *err);
static size_t choose(struct share *share, bool *ours);
static bool is_ours(struct share *share, const struct folder_file *file, uint64_t *number);
static bool is_others(struct share *share, const struct folder_file *file);
static bool is_shard(const struct share *share, const char *name);
static bool is_hidden(const char *name);
static bool is_safetensors(const char *name);
static int read_facts(const struct share *share, const bool *ours, const struct file_facts *before,
	struct file_facts *facts, struct error *err);
static int copy_ours(const struct share *share, const bool *ours, struct error *err);
static int copy_file(const struct file_ops *files, const struct folder_file *file, const char *to,
	struct error *err);
static void take_files(struct rank_share *share);
static int add_index(struct rank_share *share, const char *folder, struct error *err);
static int measure(
	struct rank_share *share, unsigned threads, struct work_watch *watch, struct error *err);
static struct step_file *add_index_file(struct rank_share *share);
static void take_mark(struct rank_share *share);

int rank_share_copy(const struct rank_share_params *params, struct error *err)
{
	struct share share;
	ASSERT(params->to != NULL);
	int result = open_share(&share, params, err);
	if (result == 0)
		result = choose_and_copy(&share, err);
	release_share(&share);
	return result;
}

int rank_share_size(const struct rank_share_params *params, uint64_t *out, struct error *err)
{
	struct share share;
	bool *const ours = open_share(&share, params, err) == 0 ? choose_ours(&share, err) : NULL;
	*out = 0;
	for (size_t i = 0; i < share.files.count && ours != NULL; i++)
		*out += ours[i] ? share.files.files[i].size : 0;
	const int result = ours != NULL ? 0 : -1;
	free(ours);
	release_share(&share);
	return result;
}

int rank_share_open(struct rank_share *share, const char *folder, unsigned threads,
	struct work_watch *watch, struct error *err)
{
	*share = (struct rank_share){.file_count = 0};
	if (snapshot_open(&share->snapshot, folder, NULL, threads, watch, err) != 0)
		return -1;
	take_files(share);
	if (add_index(share, folder, err) != 0)
		return -1;
	take_mark(share);
	return 0;
}

int rank_share_open_memory(struct rank_share *share, const struct rank_memory *memory,
	unsigned threads, struct work_watch *watch, struct error *err)
{
	*share = (struct rank_share){.file_count = 0};
	struct checkpoint *const checkpoint = memory_checkpoint_open(&memory->parts, err);
	if (checkpoint == NULL ||
		snapshot_begin(&share->snapshot, checkpoint, memory->shard, err) != 0 ||
		measure(share, threads, watch, err) != 0)
		return -1;
	take_files(share);
	if (memory->has_index) {
		struct step_file *const index = add_index_file(share);
		index->size = memory->index.len;
		index->digest = xxh3_128(memory->index);
	}
	take_mark(share);
	return 0;
}

void rank_share_release(struct rank_share *share)
{
	free(share->files);
	snapshot_close(&share->snapshot);
	*share = (struct rank_share){.file_count = 0};
}

static int open_share(
	struct share *share, const struct rank_share_params *params, struct error *err)
{
	*share = (struct share){.params = params};
	ASSERT(params->rank < params->ranks && params->checkpoint != NULL);
	buffer_init(&share->index_text, INDEX_MAX_BYTES);
	return folder_files_read(params->checkpoint, &share->files, err) != 0
		? -1
		: read_index(share, err);
}

static void release_share(struct share *share)
{
	shard_index_free(share->index);
	buffer_release(&share->index_text);
	folder_files_release(&share->files);
}

static int read_index(struct share *share, struct error *err)
{
	const struct folder_file *const file =
		find_file(&share->files, span_text(RANK_SHARE_INDEX_NAME));
	if (file == NULL)
		return 0;
	if (file_read_all(file->path, &share->index_text, err) != 0)
		return -1;
	share->index = shard_index_parse(buffer_span(&share->index_text), file->path, err);
	if (share->index == NULL)
		return -1;
	share->is_complete = true;
	for (size_t i = 0; i < shard_index_file_count(share->index); i++) {
		const struct span name = shard_index_file(share->index, i);
		if (!shard_rule_is_top(name))
			return error_set(err, ERROR_UNSUPPORTED,
				"%s names the shard %.*s; with --rank each shard is a .safetensors"
				" in the folder itself",
				file->path, (int)name.len, (const char *)name.data);
		if (find_file(&share->files, name) == NULL)
			share->is_complete = false;
	}
	return 0;
}

static const struct folder_file *find_file(const struct folder_files *files, struct span name)
{
	for (size_t i = 0; i < files->count; i++)
		if (span_equal_text(name, files->files[i].name))
			return &files->files[i];
	return NULL;
}

static int choose_and_copy(struct share *share, struct error *err)
{
	const size_t count = share->files.count;
	struct file_facts *const before = memory_new_array(count + 1, sizeof(*before));
	struct file_facts *const after = memory_new_array(count + 1, sizeof(*after));
	bool *const ours = choose_ours(share, err);
	int result = ours == NULL ? -1 : read_facts(share, ours, NULL, before, err);
	if (result == 0)
		result = copy_ours(share, ours, err);
	if (result == 0)
		result = read_facts(share, ours, before, after, err);
	free(after);
	free(before);
	free(ours);
	return result;
}

/* For each file whether it is ours; heap, the caller's. */
static bool *choose_ours(struct share *share, struct error *err)
{
	bool *const ours = memory_new_array(share->files.count + 1, sizeof(*ours));
	int result = check_count(share, err);
	if (result == 0 && choose(share, ours) == 0)
		result = error_set(err, ERROR_NOT_FOUND,
			"there is no shard for rank %" PRIu64 " of %" PRIu64
			": every rank needs one",
			share->params->rank, share->params->ranks);
	if (result == 0 && share->stray != NULL)
		result = error_set(err, ERROR_UNSUPPORTED,
			"%s is not in the index, and --rank publishes no such file: take it out of "
			"the folder, or give --include patterns that do not match it",
			share->stray);
	if (result == 0)
		return ours;
	free(ours);
	return NULL;
}

static int check_count(const struct share *share, struct error *err)
{
	const uint64_t ranks = share->params->ranks;
	ASSERT(!share->is_complete || share->index != NULL);
	const size_t count = share->is_complete ? shard_index_file_count(share->index) : 0;
	if (count == 0 || count >= ranks)
		return 0;
	return error_set(err, ERROR_NOT_FOUND,
		"there are %zu shards for %" PRIu64
		" ranks: every rank needs one, so at most %zu ranks can publish this checkpoint",
		count, ranks, count);
}

/* Marks the files that are ours. Returns how many of them are shards. */
static size_t choose(struct share *share, bool *ours)
{
	uint64_t number = 0;
	size_t shards = 0;
	for (size_t i = 0; i < share->files.count; i++) {
		ours[i] = is_ours(share, &share->files.files[i], &number);
		shards += ours[i] && is_shard(share, share->files.files[i].name) ? 1 : 0;
	}
	return shards;
}

/* *number counts the shards so far. Called for each file once, in order of names. */
static bool is_ours(struct share *share, const struct folder_file *file, uint64_t *number)
{
	const struct checkpoint_choice *const choice = share->params->choice;
	const uint64_t rank = share->params->rank;
	const char *const name = file->name;
	if (is_hidden(name) ||
		(choice != NULL && !choice->wants(choice->chooser, name, file->size)))
		return false;
	if (!is_safetensors(name))
		return rank == 0;
	if (!is_shard(share, name))
		return is_others(share, file);
	return !share->is_complete || (*number)++ % share->params->ranks == rank;
}

/* Whether a .safetensors that is not a shard is ours. One beside the shards never is: the copy of a
 * share has no index, so the file would be taken for a shard there. */
static bool is_others(struct share *share, const struct folder_file *file)
{
	const struct checkpoint_choice *const choice = share->params->choice;
	const bool is_asked = choice != NULL && choice->wants_other != NULL;
	if (is_asked && !choice->wants_other(choice->chooser, file->name, file->size))
		return false;
	if (!shard_rule_is_top(span_text(file->name)))
		return share->params->rank == 0;
	if (is_asked)
		share->stray = file->path;
	return false;
}

static bool is_shard(const struct share *share, const char *name)
{
	return shard_rule_takes(share->index, span_text(name));
}

static bool is_hidden(const char *name)
{
	return name[0] == '.' || strstr(name, "/.") != NULL;
}

static bool is_safetensors(const char *name)
{
	return span_ends_text(span_text(name), ".safetensors");
}

/* Reads the facts of our files. With `before`, refuses a file whose facts have changed since. */
static int read_facts(const struct share *share, const bool *ours, const struct file_facts *before,
	struct file_facts *facts, struct error *err)
{
	for (size_t i = 0; i < share->files.count; i++) {
		const char *const path = share->files.files[i].path;
		if (!ours[i])
			continue;
		if (file_facts_read(path, &facts[i], err) != 0)
			return -1;
		if (before != NULL && !file_facts_equal(&before[i], &facts[i]))
			return publish_source_refuse(path, err);
	}
	return 0;
}

static int copy_ours(const struct share *share, const bool *ours, struct error *err)
{
	const struct rank_share_params *const params = share->params;
	if (file_make_folder(params->files, params->to, 0755, err) != 0)
		return -1;
	for (size_t i = 0; i < share->files.count; i++)
		if (ours[i] &&
			copy_file(params->files, &share->files.files[i], params->to, err) != 0)
			return -1;
	return 0;
}

static int copy_file(const struct file_ops *files, const struct folder_file *file, const char *to,
	struct error *err)
{
	const bool is_index = strcmp(file->name, RANK_SHARE_INDEX_NAME) == 0;
	char *const path = folder_files_join(to, is_index ? RANK_SHARE_INDEX : file->name);
	int result = file_make_parent(files, path, 0755, err);
	if (result == 0)
		result = file_clone(files, file->path, path, err);
	free(path);
	return result;
}

static void take_files(struct rank_share *share)
{
	share->files = memory_new_array(share->snapshot.file_count + 1, sizeof(*share->files));
	for (size_t i = 0; i < share->snapshot.file_count; i++)
		share->files[share->file_count++] = share->snapshot.files[i];
}

static int measure(
	struct rank_share *share, unsigned threads, struct work_watch *watch, struct error *err)
{
	struct snapshot *const snapshot = &share->snapshot;
	if (checkpoint_tensor_digests(
		    snapshot->checkpoint, threads, watch, snapshot->tensor_digests, err) != 0)
		return -1;
	snapshot_take_tensors(snapshot);
	return snapshot_measure_files(snapshot, threads, watch, err);
}

static struct step_file *add_index_file(struct rank_share *share)
{
	ASSERT(share->file_count <= share->snapshot.file_count);
	struct step_file *const index = &share->files[share->file_count++];
	index->path = span_text(RANK_SHARE_INDEX_NAME);
	return index;
}

static void take_mark(struct rank_share *share)
{
	share->mark.digest = share->snapshot.digest;
	share->mark.content = snapshot_content(share->files, share->file_count);
}

static int add_index(struct rank_share *share, const char *folder, struct error *err)
{
	char *const path = folder_files_join(folder, RANK_SHARE_INDEX);
	int result = 0;
	if (file_exists(path)) {
		struct step_file *const index = add_index_file(share);
		result = file_size(path, &index->size, err);
		if (result == 0)
			result = transfer_file_digest(path, &index->digest, err);
	}
	free(path);
	return result;
}
