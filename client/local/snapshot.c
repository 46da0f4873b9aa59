/* Opening a snapshot reads the checkpoint twice: for the digests of its tensors, which a delta must
 * reproduce, and for the digests of its files, which downloads are checked against. Copying takes
 * the function that brings one file as a parameter: reflink only, or reflink with a plain copy as
 * the fallback. */
#include "client/local/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/local/folder_files.h"

typedef int bring_fn(
	const struct file_ops *files, const char *from, const char *to, struct error *err);

static int bring_files(const struct file_ops *files, const struct checkpoint *checkpoint,
	const char *to, bring_fn *bring, struct error *err);
static int by_path(const void *left, const void *right);
static void add_number(struct xxh3_stream *stream, uint64_t number);
static int measure_tensors(
	struct snapshot *snapshot, unsigned threads, struct work_watch *watch, struct error *err);

int snapshot_share(const struct file_ops *files, const struct checkpoint *from, const char *to,
	struct error *err)
{
	return bring_files(files, from, to, file_reflink, err);
}

int snapshot_copy(const struct file_ops *files, const char *from,
	const struct checkpoint_choice *choice, const char *to, struct error *err)
{
	struct checkpoint *const checkpoint = checkpoint_open_chosen(from, choice, err);
	if (checkpoint == NULL)
		return -1;
	const int result = bring_files(files, checkpoint, to, file_clone, err);
	checkpoint_close(checkpoint);
	return result;
}

struct digest128 snapshot_content(const struct step_file *files, size_t count)
{
	const struct step_file **const sorted = memory_new_array(count + 1, sizeof(*sorted));
	for (size_t i = 0; i < count; i++)
		sorted[i] = &files[i];
	qsort(sorted, count, sizeof(*sorted), by_path);
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t i = 0; i < count; i++) {
		add_number(stream, sorted[i]->path.len);
		xxh3_stream_add(stream, sorted[i]->path);
		add_number(stream, sorted[i]->size);
		xxh3_stream_add(
			stream, span_of(sorted[i]->digest.bytes, sizeof(sorted[i]->digest.bytes)));
	}
	const struct digest128 content = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	free(sorted);
	return content;
}

int snapshot_open(struct snapshot *snapshot, const char *path,
	const struct checkpoint_choice *choice, unsigned threads, struct work_watch *watch,
	struct error *err)
{
	struct checkpoint *const checkpoint = checkpoint_open_chosen(path, choice, err);
	*snapshot = (struct snapshot){0};
	if (checkpoint == NULL || snapshot_begin(snapshot, checkpoint, path, err) != 0)
		return -1;
	int result = measure_tensors(snapshot, threads, watch, err);
	if (result == 0)
		result = snapshot_measure_files(snapshot, threads, watch, err);
	if (result != 0)
		snapshot_close(snapshot);
	return result;
}

int snapshot_begin(struct snapshot *snapshot, struct checkpoint *checkpoint, const char *name,
	struct error *err)
{
	ASSERT(checkpoint != NULL);
	const size_t tensors = schema_count(checkpoint_schema(checkpoint));
	*snapshot = (struct snapshot){.checkpoint = checkpoint,
		.tensor_digests = memory_new_array(tensors + 1, sizeof(struct digest128)),
		.tensor_count = tensors,
		.file_count = checkpoint_file_count(checkpoint),
		.bytes = checkpoint_bytes(checkpoint)};
	if (snapshot->file_count <= STEP_OBJECTS_MAX)
		return 0;
	error_set(err, ERROR_TOO_LARGE, "%s has %zu files; a step holds at most %d", name,
		snapshot->file_count, STEP_OBJECTS_MAX);
	snapshot_close(snapshot);
	return -1;
}

int snapshot_measure_files(
	struct snapshot *snapshot, unsigned threads, struct work_watch *watch, struct error *err)
{
	ASSERT(snapshot->files == NULL && snapshot->file_count <= STEP_OBJECTS_MAX);
	struct digest128 *const digests =
		memory_new_array(snapshot->file_count + 1, sizeof(*digests));
	const int result =
		checkpoint_file_digests(snapshot->checkpoint, threads, watch, digests, err);
	snapshot->files = memory_new_array(snapshot->file_count + 1, sizeof(*snapshot->files));
	for (size_t i = 0; i < snapshot->file_count; i++) {
		const struct checkpoint_file *const file = checkpoint_file(snapshot->checkpoint, i);
		snapshot->files[i] = (struct step_file){
			.path = span_text(file->path), .size = file->size, .digest = digests[i]};
	}
	snapshot->content = snapshot_content(snapshot->files, snapshot->file_count);
	free(digests);
	return result;
}

void snapshot_take_tensors(struct snapshot *snapshot)
{
	const struct schema *const schema = checkpoint_schema(snapshot->checkpoint);
	snapshot->digest = schema_checkpoint_digest(schema, snapshot->tensor_digests);
	snapshot->schema_digest = schema_digest(schema);
}

void snapshot_close(struct snapshot *snapshot)
{
	checkpoint_close(snapshot->checkpoint);
	free(snapshot->tensor_digests);
	free(snapshot->files);
	*snapshot = (struct snapshot){0};
}

static int bring_files(const struct file_ops *files, const struct checkpoint *checkpoint,
	const char *to, bring_fn *bring, struct error *err)
{
	int result = file_make_folder(files, to, 0755, err);
	for (size_t i = 0; i < checkpoint_file_count(checkpoint) && result == 0; i++) {
		const struct checkpoint_file *const file = checkpoint_file(checkpoint, i);
		char *const path = folder_files_join(to, file->path);
		result = file_make_parent(files, path, 0755, err);
		if (result == 0)
			result = bring(files, file->full_path, path, err);
		free(path);
	}
	return result;
}

static int by_path(const void *left, const void *right)
{
	const struct step_file *const *const a = left;
	const struct step_file *const *const b = right;
	return span_compare((*a)->path, (*b)->path);
}

static void add_number(struct xxh3_stream *stream, uint64_t number)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(number >> (8 * i));
	xxh3_stream_add(stream, span_of(bytes, sizeof(bytes)));
}

static int measure_tensors(
	struct snapshot *snapshot, unsigned threads, struct work_watch *watch, struct error *err)
{
	if (checkpoint_tensor_digests(
		    snapshot->checkpoint, threads, watch, snapshot->tensor_digests, err) != 0)
		return -1;
	snapshot_take_tensors(snapshot);
	return 0;
}
