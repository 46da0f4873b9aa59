/* Walks the folder with its folders, up to DEPTH_MAX deep, and stores file after file. Each is a
 * hidden version at once, so that a failure half way only has to release the versions made so
 * far. */
#include "storage/objects/stored_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "storage/objects/scratch.h"

enum { DEPTH_MAX = 16 };

struct storing {
	struct stored_folder *stored;
	struct store *store;
	int64_t bucket;
	const char *prefix;
};

static int store_below(const struct storing *storing, const char *folder, const char *inside,
	unsigned depth, struct error *err);
static char *join(const char *folder, const char *name);
static int store_file(
	const struct storing *storing, const char *path, const char *name, struct error *err);

int stored_folder_put(struct stored_folder *stored, struct store *store, int64_t bucket,
	const char *folder, const char *prefix, struct error *err)
{
	const struct storing storing = {
		.stored = stored, .store = store, .bucket = bucket, .prefix = prefix};
	*stored = (struct stored_folder){.count = 0};
	if (store_below(&storing, folder, "", 0, err) == 0)
		return 0;
	stored_folder_release(stored, store, false);
	return -1;
}

void stored_folder_release(struct stored_folder *stored, struct store *store, bool taken)
{
	for (size_t i = 0; i < stored->count; i++) {
		struct error ignored = {0};
		if (!taken)
			(void)scratch_release(store, stored->files[i].version,
				&ignored); /* what stays is removed after the next start */
		free(stored->files[i].name);
	}
	free(stored->files);
	*stored = (struct stored_folder){.count = 0};
}

static int store_below(const struct storing *storing, const char *folder, const char *inside,
	unsigned depth, struct error *err)
{
	char **names;
	size_t count;
	if (depth > DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "The folder %s is more than %d folders deep.",
			folder, DEPTH_MAX);
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = join(folder, names[i]);
		char *const name = join(inside, names[i]);
		struct stat facts;
		if (lstat(path, &facts) != 0)
			result = error_set_errno(err, "cannot look at %s", path);
		else
			result = S_ISDIR(facts.st_mode)
				? store_below(storing, path, name, depth + 1, err)
				: store_file(storing, path, name, err);
		free(name);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static char *join(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name);
	return path;
}

static int store_file(
	const struct storing *storing, const char *path, const char *name, struct error *err)
{
	struct stored_folder *const stored = storing->stored;
	struct stored_file file = {0};
	const size_t len = strlen(storing->prefix) + strlen(name) + 1;
	if (stored->count == STEP_OBJECTS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "The folder of %s has more than %d files.",
			storing->prefix, STEP_OBJECTS_MAX);
	if (file_size(path, &file.size, err) != 0)
		return -1;
	char *const key = memory_new(len);
	snprintf(key, len, "%s%s", storing->prefix, name);
	const int result = scratch_store_hidden(
		storing->store, path, storing->bucket, span_text(key), &file.version, err);
	free(key);
	if (result != 0)
		return -1;
	file.name = memory_copy_text(name);
	stored->files = memory_grow(stored->files, stored->count + 1, sizeof(*stored->files));
	stored->files[stored->count++] = file;
	return 0;
}
