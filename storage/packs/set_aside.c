#include "storage/packs/set_aside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { PATH_BYTES = 4096, NAMES = 1000 };

static void path_of(const char *folder, const char *name, char out[PATH_BYTES]);
static void add_file(struct set_aside *aside, const char *folder, const char *name);
static int find_place(
	const char *folder, const char *name, char out[PATH_BYTES], struct error *err);

int set_aside_list(const char *folder, struct set_aside *out, struct error *err)
{
	char path[PATH_BYTES];
	char **names = NULL;
	size_t count = 0;
	bool is_there;
	*out = (struct set_aside){0};
	path_of(folder, "", path);
	if (file_find(path, &is_there, err) != 0)
		return -1;
	if (is_there && file_list(path, &names, &count, err) != 0)
		return -1;
	out->files = memory_new_array(count + 1, sizeof(*out->files));
	for (size_t i = 0; i < count; i++)
		add_file(out, folder, names[i]);
	file_names_free(names, count);
	return 0;
}

void set_aside_release(struct set_aside *aside)
{
	for (size_t i = 0; i < aside->count; i++)
		free(aside->files[i].name);
	free(aside->files);
	*aside = (struct set_aside){0};
}

int set_aside_take(
	const struct file_ops *files, const char *folder, const char *path, struct error *err)
{
	char to[PATH_BYTES];
	const char *slash = strrchr(path, '/');
	if (find_place(folder, slash != NULL ? slash + 1 : path, to, err) != 0 ||
		file_make_parent(files, to, 0700, err) != 0)
		return -1;
	if (files->rename(files, path, to) != 0)
		return error_set_errno(err, "%s cannot be set aside", path);
	return file_sync_name(files, to, err) != 0 ? -1 : file_sync_name(files, path, err);
}

int set_aside_drop(
	const struct file_ops *files, const char *folder, const char *name, struct error *err)
{
	char path[PATH_BYTES];
	if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
		return error_set(err, ERROR_INVALID,
			"'%.200s' is not the name of a file that was set aside", name);
	path_of(folder, name, path);
	if (files->unlink(files, path) == 0)
		return 0;
	return errno == ENOENT
		? error_set(err, ERROR_NOT_FOUND, "no file %.200s is set aside", name)
		: error_set_errno(err, "cannot remove %s", path);
}

static void path_of(const char *folder, const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/set-aside%s%s", folder, name[0] != '\0' ? "/" : "", name);
}

static void add_file(struct set_aside *aside, const char *folder, const char *name)
{
	struct error ignored;
	char path[PATH_BYTES];
	uint64_t bytes = 0;
	path_of(folder, name, path);
	if (file_size(path, &bytes, &ignored) != 0) /* gone meanwhile, or not a file */
		return;
	aside->files[aside->count++] =
		(struct set_aside_file){.name = memory_copy_text(name), .bytes = bytes};
	aside->bytes += bytes;
}

static int find_place(const char *folder, const char *name, char out[PATH_BYTES], struct error *err)
{
	path_of(folder, name, out);
	for (int i = 1; file_exists(out) && i < NAMES; i++)
		snprintf(out, PATH_BYTES, "%s/set-aside/%s.%d", folder, name, i);
	return file_exists(out)
		? error_set(err, ERROR_EXISTS, "%s is there too; drop what is set aside.", out)
		: 0;
}
