/* An object is a file FOLDER/KIND/NAME. It is written under another name, synced, read back from
 * the disk and compared, and only then gets its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/backup/backup_target.h"

enum { PATH_BYTES = 4096, FILE_MODE = 0600, FOLDER_MODE = 0700, COMPARE_BYTES = 1024 * 1024 };
#define UNFINISHED ".tmp"

struct target_folder {
	struct backup_target target; /* first */
	const struct file_ops *files;
	char *path;
	dev_t device; /* of the folder that is meant */
	ino_t number;
};

static int target_folder_pin(struct backup_target *target, struct error *err);
static int target_folder_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err);
static int check_is_same(const struct target_folder *folder, struct error *err);
static void path_of(const struct target_folder *folder, const char *name, char out[PATH_BYTES]);
static int write_file(
	const struct target_folder *folder, const char *path, struct span bytes, struct error *err);
static int compare(const struct target_folder *folder, int fd, const char *path, struct span bytes,
	struct error *err);
static int target_folder_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err);
static int target_folder_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err);
static int take_name(const struct target_folder *folder, const char *kind, const char *name,
	backup_target_take_fn *take, void *taker, struct error *err);
static int target_folder_remove(struct backup_target *target, const char *name, struct error *err);
static int target_folder_settle(struct backup_target *target, const char *kind, struct error *err);
static void target_folder_free(struct backup_target *target);

static const struct backup_target_ops ops = {.put = target_folder_put,
	.get = target_folder_get,
	.list = target_folder_list,
	.remove = target_folder_remove,
	.pin = target_folder_pin,
	.settle = target_folder_settle,
	.free = target_folder_free};

struct backup_target *target_folder_open(
	const char *place, bool makes, const struct file_ops *files, struct error *err)
{
	if (makes && file_make_folder(files, place, FOLDER_MODE, err) != 0)
		return NULL;
	if (!file_exists(place)) {
		error_set(err, ERROR_NOT_FOUND, "There is no folder %s.", place);
		return NULL;
	}
	struct target_folder *folder = memory_new(sizeof(*folder));
	folder->target.ops = &ops;
	folder->files = files;
	folder->path = memory_copy_text(place);
	if (target_folder_pin(&folder->target, err) == 0)
		return &folder->target;
	target_folder_free(&folder->target);
	return NULL;
}

static int target_folder_pin(struct backup_target *target, struct error *err)
{
	struct target_folder *folder = (struct target_folder *)target;
	struct stat facts;
	if (stat(folder->path, &facts) != 0)
		return error_set_errno(err, "The folder %s cannot be read", folder->path);
	folder->device = facts.st_dev;
	folder->number = facts.st_ino;
	return 0;
}

static int target_folder_put(
	struct backup_target *target, const char *name, struct span bytes, struct error *err)
{
	const struct target_folder *folder = (const struct target_folder *)target;
	const struct file_ops *files = folder->files;
	char path[PATH_BYTES];
	char unfinished[PATH_BYTES + sizeof(UNFINISHED)];
	path_of(folder, name, path);
	snprintf(unfinished, sizeof(unfinished), "%s" UNFINISHED, path);
	int result = check_is_same(folder, err);
	if (result == 0)
		result = file_make_parent(files, path, FOLDER_MODE, err);
	if (result == 0)
		result = write_file(folder, unfinished, bytes, err);
	if (result == 0 && files->rename(files, unfinished, path) != 0)
		result = error_set_errno(err, "%s cannot be renamed", unfinished);
	if (result == 0)
		return file_sync_name(files, path, err);
	files->unlink(files, unfinished);
	return -1;
}

/* Nothing is written below the mount point of a disk that went away. */
static int check_is_same(const struct target_folder *folder, struct error *err)
{
	struct stat facts;
	if (stat(folder->path, &facts) != 0)
		return error_set_errno(err, "The folder %s cannot be read", folder->path);
	return facts.st_dev == folder->device && facts.st_ino == folder->number
		? 0
		: error_set(err, ERROR_NOT_FOUND,
			  "%s is not the folder that it was when this began: a disk may have been"
			  " unmounted.",
			  folder->path);
}

static void path_of(const struct target_folder *folder, const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s/%s", folder->path, name);
}

static int write_file(
	const struct target_folder *folder, const char *path, struct span bytes, struct error *err)
{
	const struct file_ops *files = folder->files;
	const int fd = files->open(files, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be made", path);
	int result = file_write_at(files, fd, bytes, 0, path, err);
	if (result == 0)
		result = file_sync(files, fd, path, err);
	if (result == 0)
		result = compare(folder, fd, path, bytes, err);
	close(fd);
	return result;
}

/* What is synced is dropped from memory where the system does that, so the disk is asked. */
static int compare(const struct target_folder *folder, int fd, const char *path, struct span bytes,
	struct error *err)
{
	const size_t most = bytes.len < COMPARE_BYTES ? bytes.len : COMPARE_BYTES;
	uint8_t *found = memory_new(most + 1);
	int result = 0;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (size_t at = 0; at < bytes.len && result == 0; at += most) {
		const struct span wanted = span_slice(bytes, at, most);
		const struct iovec into = {.iov_base = found, .iov_len = wanted.len};
		result = file_read_at(folder->files, fd, into, (off_t)at, path, err);
		if (result == 0 && memcmp(found, wanted.data, wanted.len) != 0)
			result = error_set(err, ERROR_CORRUPT,
				"%s does not have the bytes that were written to it.", path);
	}
	free(found);
	return result;
}

static int target_folder_get(
	struct backup_target *target, const char *name, struct buffer *out, struct error *err)
{
	char path[PATH_BYTES];
	path_of((const struct target_folder *)target, name, path);
	return file_read_all(path, out, err);
}

static int target_folder_list(struct backup_target *target, const char *kind,
	backup_target_take_fn *take, void *taker, struct error *err)
{
	const struct target_folder *folder = (const struct target_folder *)target;
	char path[PATH_BYTES];
	char **names;
	size_t count;
	int result = 0;
	path_of(folder, kind, path);
	if (!file_exists(path))
		return 0;
	if (file_list(path, &names, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++)
		result = take_name(folder, kind, names[i], take, taker, err);
	file_names_free(names, count);
	return result;
}

static int take_name(const struct target_folder *folder, const char *kind, const char *name,
	backup_target_take_fn *take, void *taker, struct error *err)
{
	char whole[BACKUP_NAME_BYTES];
	char path[PATH_BYTES];
	struct stat facts;
	if (snprintf(whole, sizeof(whole), "%s/%s", kind, name) >= (int)sizeof(whole) ||
		span_ends_text(span_text(name), UNFINISHED))
		return 0;
	path_of(folder, whole, path);
	if (stat(path, &facts) != 0)
		return errno == ENOENT ? 0 : error_set_errno(err, "%s cannot be read", path);
	const struct backup_object object = {.name = whole,
		.bytes = (uint64_t)facts.st_size,
		.changed_ms = (int64_t)facts.st_mtim.tv_sec * 1000};
	return S_ISREG(facts.st_mode) ? take(taker, &object, err) : 0;
}

static int target_folder_remove(struct backup_target *target, const char *name, struct error *err)
{
	const struct target_folder *folder = (const struct target_folder *)target;
	char path[PATH_BYTES];
	path_of(folder, name, path);
	return folder->files->unlink(folder->files, path) == 0 || errno == ENOENT
		? 0
		: error_set_errno(err, "%s cannot be removed", path);
}

static int target_folder_settle(struct backup_target *target, const char *kind, struct error *err)
{
	const struct target_folder *folder = (const struct target_folder *)target;
	char path[PATH_BYTES];
	path_of(folder, kind, path);
	return file_sync_folder(folder->files, path, err);
}

static void target_folder_free(struct backup_target *target)
{
	struct target_folder *folder = (struct target_folder *)target;
	free(folder->path);
	free(folder);
}
