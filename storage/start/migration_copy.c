#include "storage/start/migration_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, FOLDER_MODE = 0700 };
#define UNFINISHED ".tmp"

struct migration_copy {
	const struct file_ops *files;
	char from[PATH_BYTES];
	char to[PATH_BYTES];
};

static int copy_file(const struct migration_copy *copy, const char *suffix, struct error *err);
static int remove_file(const struct migration_copy *copy, const char *path, struct error *err);
static int sync_file(const struct migration_copy *copy, const char *path, struct error *err);

int migration_copy_make(
	const struct file_ops *files, const char *folder, int schema, struct error *err)
{
	struct migration_copy copy = {.files = files};
	snprintf(copy.from, sizeof(copy.from), "%s/catalog.db", folder);
	snprintf(copy.to, sizeof(copy.to), "%s/before-migration/%d/catalog.db", folder, schema);
	if (file_make_parent(files, copy.to, FOLDER_MODE, err) != 0 ||
		copy_file(&copy, "-wal", err) != 0 || copy_file(&copy, "", err) != 0)
		return error_wrap(err, "The catalog cannot be copied before it is migrated");
	return 0;
}

/* The file that an earlier start left goes, also where there is none any more. */
static int copy_file(const struct migration_copy *copy, const char *suffix, struct error *err)
{
	const struct file_ops *files = copy->files;
	char from[PATH_BYTES + 8];
	char to[PATH_BYTES + 8];
	char unfinished[PATH_BYTES + 16];
	snprintf(from, sizeof(from), "%s%s", copy->from, suffix);
	snprintf(to, sizeof(to), "%s%s", copy->to, suffix);
	snprintf(unfinished, sizeof(unfinished), "%s" UNFINISHED, to);
	if (remove_file(copy, unfinished, err) != 0)
		return -1;
	if (!file_exists(from))
		return remove_file(copy, to, err);
	if (file_clone(files, from, unfinished, err) != 0 || sync_file(copy, unfinished, err) != 0)
		return -1;
	return files->rename(files, unfinished, to) == 0
		? file_sync_name(files, to, err)
		: error_set_errno(err, "%s cannot be renamed", unfinished);
}

static int remove_file(const struct migration_copy *copy, const char *path, struct error *err)
{
	return copy->files->unlink(copy->files, path) == 0 || errno == ENOENT
		? 0
		: error_set_errno(err, "%s cannot be removed", path);
}

static int sync_file(const struct migration_copy *copy, const char *path, struct error *err)
{
	const int fd = copy->files->open(copy->files, path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be opened", path);
	const int result = file_sync(copy->files, fd, path, err);
	close(fd);
	return result;
}
