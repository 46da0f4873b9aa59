#include "storage/step_jobs/fold_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/model/mapped_file.h"

enum { NUMBER_BYTES = 32 };

static struct model_files as_folder(const struct step_source *step);
static bool must_fetch(const struct model_file *file, const struct model_files *base);
static int fetch(struct store *store, const struct step_source *next, struct model_file *file,
	const char *path, struct error *err);

int fold_files_open(struct fold_files *files, struct store *store, const struct step_source *base,
	const struct step_source *next, const struct scratch *scratch, struct error *err)
{
	const size_t path_bytes = strlen(scratch_path(scratch)) + NUMBER_BYTES;
	char *const path = memory_new(path_bytes);
	files->base = as_folder(base);
	files->next = as_folder(next);
	files->is_fetched = memory_new_array(files->next.count + 1, sizeof(*files->is_fetched));
	int result = 0;
	for (size_t i = 0; i < files->next.count && result == 0; i++) {
		if (!must_fetch(&files->next.files[i], &files->base))
			continue;
		snprintf(path, path_bytes, "%s/file-%zu", scratch_path(scratch), i);
		result = fetch(store, next, &files->next.files[i], path, err);
		files->is_fetched[i] = result == 0;
	}
	free(path);
	return result;
}

void fold_files_release(struct fold_files *files)
{
	for (size_t i = 0; files->next.files != NULL && i < files->next.count; i++)
		if (files->is_fetched[i])
			mapped_file_close(files->next.files[i].bytes);
	free(files->base.files);
	free(files->next.files);
	free(files->is_fetched);
	*files = (struct fold_files){0};
}

/* A copy of the list, as that of a folder. A checkpoint of one file gets the file name that the
 * manifest gives it. */
static struct model_files as_folder(const struct step_source *step)
{
	const struct step_message *const manifest = &step_source_chain(step)->manifest;
	struct model_files files = *step_source_files(step);
	files.files = memory_new_array(files.count + 1, sizeof(*files.files));
	memcpy(files.files, step_source_files(step)->files, files.count * sizeof(*files.files));
	if (!files.is_folder && files.count == 1 && manifest->file_count == 1)
		files.files[0].path = manifest->files[0].path;
	files.is_folder = true;
	return files;
}

/* A file without tensors that the delta must bring, and whose bytes are not at hand. */
static bool must_fetch(const struct model_file *file, const struct model_files *base)
{
	if (file->is_shard || file->size == 0 || file->bytes.len > 0)
		return false;
	const struct model_file *const other = model_files_find(base, file->path);
	return other == NULL || other->is_shard || !digest128_equal(&other->digest, &file->digest);
}

static int fetch(struct store *store, const struct step_source *next, struct model_file *file,
	const char *path, struct error *err)
{
	ASSERT(!file->is_shard && file->bytes.len == 0);
	const int64_t version = step_source_version(next, file->path);
	if (version == 0)
		return error_set(err, ERROR_CORRUPT,
			"The step's file '%.*s' is missing in the store.", (int)file->path.len,
			(const char *)file->path.data);
	if (scratch_fetch(store, version, path, err) != 0 ||
		mapped_file_open(path, &file->bytes, err) != 0)
		return -1;
	const struct digest128 digest = xxh3_128(file->bytes);
	if (digest128_equal(&digest, &file->digest))
		return 0;
	mapped_file_close(file->bytes);
	return error_set(err, ERROR_CORRUPT, "The step's file '%.*s' is not what its digest says.",
		(int)file->path.len, (const char *)file->path.data);
}
