/* Folders, listings and whole-file copies: outside the table, for none of it is part of a commit that tests have to break. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static bool is_folder(const char *const path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* A folder whose entry is lost in a crash takes all that was synced inside along. Where parents cannot be opened or synced, that is
 * the file system's own way. */
static int sync_parent(char *const path, struct error *const err)
{
	char *const slash = strrchr(path, '/');
	struct error sync_err = {0};
	if (slash != NULL && slash != path)
		*slash = '\0';
	const int result = file_sync_folder(file_system(), slash == NULL ? "." : slash == path ? "/" : path, &sync_err);
	if (slash != NULL)
		*slash = '/';
	if (result == 0 || sync_err.os_errno == EACCES || sync_err.os_errno == EINVAL)
		return 0;
	*err = sync_err;
	return -1;
}

static int make_one(char *const path, const mode_t mode, struct error *const err)
{
	if (is_folder(path))
		return 0;
	if (mkdir(path, mode) == 0)
		return sync_parent(path, err);
	if (errno == EEXIST && is_folder(path))
		return 0;
	return error_set_errno(err, "cannot make folder %s", path);
}

int file_make_folder(const char *const path, const mode_t mode, struct error *const err)
{
	char partial[PATH_MAX];
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len == 0 || len >= sizeof partial)
		return error_set(err, ERROR_INVALID, "cannot make folder \"%.80s\": the path is empty or over %d bytes", path, PATH_MAX - 1);
	memcpy(partial, path, len);
	partial[len] = '\0';
	for (size_t i = 1; i < len; i++) {
		if (partial[i] != '/')
			continue;
		partial[i] = '\0';
		const int result = make_one(partial, mode, err);
		partial[i] = '/';
		if (result != 0)
			return -1;
	}
	return make_one(partial, mode, err);
}

static int copy_by_hand(const int from, const int to)
{
	uint8_t piece[64 * 1024];
	for (;;) {
		const ssize_t got = read(from, piece, sizeof piece);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return (int)got;
		for (ssize_t done = 0; done < got;) {
			const ssize_t wrote = write(to, piece + done, (size_t)(got - done));
			if (wrote < 0 && errno != EINTR)
				return -1;
			done += wrote > 0 ? wrote : 0;
		}
	}
}

/* Each way goes on where the one before stopped: both move the two file offsets. copy_file_range reports the end of some special files
 * at once, so the last word is always a plain read. */
static int copy_bytes(const int from, const int to)
{
	enum { PIECE_BYTES = 64 * 1024 * 1024 };
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	ssize_t copied;
	do
		copied = copy_file_range(from, NULL, to, NULL, PIECE_BYTES, 0);
	while (copied > 0 || (copied < 0 && errno == EINTR));
	return copy_by_hand(from, to);
}

int file_clone(const char *const from, const char *const to, struct error *const err)
{
	struct stat facts;
	int target = -1;
	int result = -1;
	const int source = open(from, O_RDONLY | O_CLOEXEC);
	if (source < 0 || fstat(source, &facts) != 0) {
		error_set_errno(err, "cannot open %s", from);
		goto out;
	}
	target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, facts.st_mode & 0777);
	if (target < 0) {
		error_set_errno(err, "cannot create %s", to);
		goto out;
	}
	result = copy_bytes(source, target);
	if (result != 0)
		error_set_errno(err, "cannot copy %s to %s", from, to);
	if (close(target) != 0 && result == 0)
		result = error_set_errno(err, "cannot close %s", to);
	if (result != 0)
		unlink(to);
out:
	if (source >= 0)
		close(source);
	return result;
}

static int remove_entry(const char *const path, const struct stat *const facts, const int type, struct FTW *const where)
{
	(void)facts;
	(void)type;
	(void)where;
	return remove(path);
}

int file_remove_tree(const char *const path, struct error *const err)
{
	enum { OPEN_FOLDERS = 16 };
	if (nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT)
		return 0;
	return error_set_errno(err, "cannot remove %s", path);
}

static int compare_names(const void *const a, const void *const b)
{
	const char *const *const left = a;
	const char *const *const right = b;
	return strcmp(*left, *right);
}

struct name_list {
	char **names;
	size_t count;
	size_t capacity;
};

static void add_name(struct name_list *const list, const char *const name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (list->count == list->capacity) {
		list->capacity = list->capacity > 0 ? 2 * list->capacity : 16;
		list->names = memory_grow(list->names, list->capacity, sizeof *list->names);
	}
	list->names[list->count++] = memory_copy_text(name);
}

int file_list(const char *const folder, char ***const out_names, size_t *const out_count, struct error *const err)
{
	struct name_list list = {0};
	DIR *const stream = opendir(folder);
	if (stream == NULL)
		return error_set_errno(err, "cannot open folder %s", folder);
	errno = 0;
	for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream))
		add_name(&list, entry->d_name);
	const int read_errno = errno;
	closedir(stream);
	if (read_errno != 0) {
		file_names_free(list.names, list.count);
		errno = read_errno;
		return error_set_errno(err, "cannot list folder %s", folder);
	}
	if (list.count > 0)
		qsort(list.names, list.count, sizeof *list.names, compare_names);
	*out_names = list.names;
	*out_count = list.count;
	return 0;
}

void file_names_free(char **const names, const size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}
