/* One recursive walk serves listing and syncing: it calls a visit function for each entry, and for
 * a folder after its content, so that a folder is synced after the folders in it. The walk itself
 * follows no links. */
#include "client/local/folder_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"

enum { DEPTH_MAX = 32 };

/* Called for each entry of a walk, and for a folder after its content. */
typedef int visit_fn(void *owner, const char *name, const char *path, const struct stat *facts,
	struct error *err);

struct walk {
	visit_fn *visit;
	void *owner;
};

static int read_all(const char *folder, struct folder_files *out, struct error *err);
static int folder_files_collect(void *owner, const char *name, const char *path,
	const struct stat *facts, struct error *err);
static int follow_link(const char *path, struct stat *facts, struct error *err);
static int walk_folder(const struct walk *walk, const char *folder, const char *prefix,
	unsigned depth, struct error *err);
static int walk_entry(const struct walk *walk, const char *path, const char *name, unsigned depth,
	struct error *err);
static int by_name(const void *left, const void *right);
static int folder_files_sync_entry(void *owner, const char *name, const char *path,
	const struct stat *facts, struct error *err);
static char *folder_of(const char *path);
static int by_text(const void *left, const void *right);

char *folder_files_join(const char *folder, const char *name)
{
	const size_t name_len = strlen(name);
	size_t folder_len = strlen(folder);
	while (folder_len > 0 && folder[folder_len - 1] == '/')
		folder_len--;
	char *const joined = memory_new(folder_len + name_len + 2);
	memcpy(joined, folder, folder_len);
	joined[folder_len] = '/';
	memcpy(joined + folder_len + 1, name, name_len);
	return joined;
}

int folder_files_read(const char *folder, struct folder_files *out, struct error *err)
{
	return folder_files_read_most(folder, FOLDER_FILES_MAX, out, err);
}

int folder_files_read_most(
	const char *folder, size_t most, struct folder_files *out, struct error *err)
{
	*out = (struct folder_files){.most = most};
	return read_all(folder, out, err);
}

int folder_files_read_linked(
	const char *folder, size_t most, struct folder_files *out, struct error *err)
{
	*out = (struct folder_files){.most = most, .follows_links = true};
	return read_all(folder, out, err);
}

void folder_files_release(struct folder_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->files[i].name);
		free(files->files[i].path);
	}
	free(files->files);
	*files = (struct folder_files){0};
}

int folder_files_sync(const struct file_ops *files, const char *folder, struct error *err)
{
	const struct file_ops *used = files;
	const struct walk walk = {.visit = folder_files_sync_entry, .owner = &used};
	if (walk_folder(&walk, folder, NULL, 0, err) != 0)
		return -1;
	return file_sync_folder(files, folder, err);
}

int folder_files_sync_names(
	const struct file_ops *files, const char *const *paths, size_t count, struct error *err)
{
	char **const folders = memory_new_array(count + 1, sizeof(*folders));
	int result = 0;
	for (size_t i = 0; i < count; i++)
		folders[i] = folder_of(paths[i]);
	qsort(folders, count, sizeof(*folders), by_text);
	for (size_t i = 0; i < count && result == 0; i++)
		if (i == 0 || strcmp(folders[i], folders[i - 1]) != 0)
			result = file_try_sync_folder(files, folders[i], err);
	for (size_t i = 0; i < count; i++)
		free(folders[i]);
	free(folders);
	return result;
}

int folder_files_remove_temporary(
	const struct file_ops *files, const char *folder, const char *name, struct error *err)
{
	char **names;
	size_t count;
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	const size_t len = strlen(name);
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (strncmp(names[i], name, len) != 0 || strncmp(names[i] + len, ".tmp-", 5) != 0)
			continue;
		char *const path = folder_files_join(folder, names[i]);
		result = file_remove_tree(files, path, err);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static int read_all(const char *folder, struct folder_files *out, struct error *err)
{
	const struct walk walk = {.visit = folder_files_collect, .owner = out};
	if (walk_folder(&walk, folder, NULL, 0, err) != 0) {
		folder_files_release(out);
		return -1;
	}
	if (out->count > 0)
		qsort(out->files, out->count, sizeof(*out->files), by_name);
	return 0;
}

static int folder_files_collect(void *owner, const char *name, const char *path,
	const struct stat *facts, struct error *err)
{
	struct folder_files *const files = owner;
	struct stat file = *facts;
	if (S_ISDIR(facts->st_mode))
		return 0;
	if (S_ISLNK(facts->st_mode) && files->follows_links && follow_link(path, &file, err) != 0)
		return -1;
	if (!S_ISREG(file.st_mode))
		return error_set(err, ERROR_INVALID, "%s is neither a file nor a folder", path);
	if (files->count == files->most)
		return error_set(err, ERROR_TOO_LARGE, "there are over %zu files beside %s",
			files->most, path);
	files->files = memory_grow(files->files, files->count + 1, sizeof(*files->files));
	files->files[files->count++] = (struct folder_file){
		.name = memory_copy_text(name),
		.path = memory_copy_text(path),
		.size = (uint64_t)file.st_size,
	};
	return 0;
}

/* Reads the facts of the file that the link leads to. */
static int follow_link(const char *path, struct stat *facts, struct error *err)
{
	if (stat(path, facts) != 0)
		return error_set_errno(err,
			"%s is a link that leads nowhere: bring back what it leads to, or remove it",
			path);
	return !S_ISDIR(facts->st_mode)
		? 0
		: error_set(err, ERROR_INVALID,
			  "%s is a link to a folder; only links to files are followed: put the "
			  "folder itself in its place, or take the link out",
			  path);
}

static int walk_folder(const struct walk *walk, const char *folder, const char *prefix,
	unsigned depth, struct error *err)
{
	char **names;
	size_t count;
	if (depth > DEPTH_MAX)
		return error_set(err, ERROR_INVALID, "%s is nested more than %d folders deep",
			folder, DEPTH_MAX);
	if (file_list(folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = folder_files_join(folder, names[i]);
		char *const name = prefix == NULL ? memory_copy_text(names[i])
						  : folder_files_join(prefix, names[i]);
		result = walk_entry(walk, path, name, depth, err);
		free(name);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static int walk_entry(const struct walk *walk, const char *path, const char *name, unsigned depth,
	struct error *err)
{
	struct stat facts;
	if (lstat(path, &facts) != 0)
		return error_set_errno(err, "looking at %s", path);
	if (S_ISDIR(facts.st_mode) && walk_folder(walk, path, name, depth + 1, err) != 0)
		return -1;
	return walk->visit(walk->owner, name, path, &facts, err);
}

static int by_name(const void *left, const void *right)
{
	const struct folder_file *const a = left;
	const struct folder_file *const b = right;
	return strcmp(a->name, b->name);
}

static int folder_files_sync_entry(void *owner, const char *name, const char *path,
	const struct stat *facts, struct error *err)
{
	const struct file_ops *const *const files = owner;
	(void)name;
	return S_ISDIR(facts->st_mode) ? file_sync_folder(*files, path, err) : 0;
}

/* The folder that holds the path. */
static char *folder_of(const char *path)
{
	const char *const slash = strrchr(path, '/');
	char *const folder = memory_copy_text(slash == NULL ? "." : path);
	if (slash != NULL)
		folder[slash == path ? 1 : slash - path] = '\0';
	return folder;
}

static int by_text(const void *left, const void *right)
{
	const char *const *const a = left;
	const char *const *const b = right;
	return strcmp(*a, *b);
}
