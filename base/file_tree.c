/* Folders, listings and copies of whole files. Names are made and removed through the table,
 * because a power cut may lose them. Reading changes nothing on the disk, so listings call the
 * system directly. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum way { WAY_REFLINK, WAY_COPY, WAY_SYNCED_COPY };

struct name_list {
	char **names;
	size_t count;
	size_t capacity;
};

static int make_one(const struct file_ops *ops, char *path, mode_t mode, struct error *err);
static bool is_folder(const char *path);
static int sync_parent(const struct file_ops *ops, char *path, struct error *err);
static int clone(const struct file_ops *ops, const char *from, const char *to, enum way way,
	struct error *err);
static int move_bytes(const struct file_ops *ops, int source, int target, enum way way,
	const char *to, struct error *err);
static int copy_bytes(int from, int to);
static int copy_by_hand(int from, int to);
static int remove_entry(const struct file_ops *ops, const char *path, struct error *err);
static int remove_content(const struct file_ops *ops, const char *folder, struct error *err);
static char *join(const char *folder, const char *name);
static void add_name(struct name_list *list, const char *name);
static int file_tree_compare_names(const void *a, const void *b);

int file_make_folder(const struct file_ops *ops, const char *path, mode_t mode, struct error *err)
{
	char partial[PATH_MAX];
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len == 0 || len >= sizeof(partial))
		return error_set(err, ERROR_INVALID,
			"cannot make folder \"%.80s\": the path is empty or over %d bytes", path,
			PATH_MAX - 1);
	memcpy(partial, path, len);
	partial[len] = '\0';
	for (size_t i = 1; i < len; i++) {
		if (partial[i] != '/')
			continue;
		partial[i] = '\0';
		const int result = make_one(ops, partial, mode, err);
		partial[i] = '/';
		if (result != 0)
			return -1;
	}
	return make_one(ops, partial, mode, err);
}

int file_make_parent(const struct file_ops *ops, const char *path, mode_t mode, struct error *err)
{
	char *const parent = memory_copy_text(path);
	char *const slash = strrchr(parent, '/');
	int result = 0;
	if (slash != NULL && slash != parent) {
		*slash = '\0';
		result = file_make_folder(ops, parent, mode, err);
	}
	free(parent);
	return result;
}

int file_reflink(const struct file_ops *ops, const char *from, const char *to, struct error *err)
{
	return clone(ops, from, to, WAY_REFLINK, err);
}

int file_clone(const struct file_ops *ops, const char *from, const char *to, struct error *err)
{
	return clone(ops, from, to, WAY_COPY, err);
}

int file_share(const struct file_ops *ops, const char *from, const char *to, struct error *err)
{
	return ops->link(ops, from, to) == 0 ? 0 : clone(ops, from, to, WAY_SYNCED_COPY, err);
}

int file_remove_tree(const struct file_ops *ops, const char *path, struct error *err)
{
	struct error failure = {0};
	if (remove_entry(ops, path, &failure) == 0)
		return 0;
	*err = failure;
	return -1;
}

int file_list(const char *folder, char ***out_names, size_t *out_count, struct error *err)
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
		qsort(list.names, list.count, sizeof(*list.names), file_tree_compare_names);
	*out_names = list.names;
	*out_count = list.count;
	return 0;
}

void file_names_free(char **names, size_t count)
{
	ASSERT(names != NULL || count == 0);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static int make_one(const struct file_ops *ops, char *path, mode_t mode, struct error *err)
{
	if (is_folder(path))
		return 0;
	if (ops->mkdir(ops, path, mode) == 0)
		return sync_parent(ops, path, err);
	if (errno == EEXIST && is_folder(path))
		return 0;
	return error_set_errno(err, "cannot make folder %s", path);
}

static bool is_folder(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* A folder whose entry is lost in a crash takes everything inside with it, synced or not. */
static int sync_parent(const struct file_ops *ops, char *path, struct error *err)
{
	char *const slash = strrchr(path, '/');
	if (slash == NULL)
		return file_try_sync_folder(ops, ".", err);
	if (slash == path)
		return file_try_sync_folder(ops, "/", err);
	*slash = '\0';
	const int result = file_try_sync_folder(ops, path, err);
	*slash = '/';
	return result;
}

static int clone(const struct file_ops *ops, const char *from, const char *to, enum way way,
	struct error *err)
{
	struct stat facts;
	int target = -1;
	int result = -1;
	const int source = ops->open(ops, from, O_RDONLY, 0);
	if (source < 0 || fstat(source, &facts) != 0) {
		error_set_errno(err, "cannot open %s", from);
		goto out;
	}
	target = ops->open(ops, to, O_WRONLY | O_CREAT | O_EXCL, facts.st_mode & 0777);
	if (target < 0) {
		error_set_errno(err, "cannot create %s", to);
		goto out;
	}
	result = move_bytes(ops, source, target, way, to, err);
	if (result < 0)
		error_wrap(err, "copying %s", from);
	if (close(target) != 0 && result == 0)
		result = error_set_errno(err, "cannot close %s", to);
	if (result != 0)
		ops->unlink(ops, to);
out:
	if (source >= 0)
		close(source);
	return result;
}

static int move_bytes(const struct file_ops *ops, int source, int target, enum way way,
	const char *to, struct error *err)
{
	ASSERT(source >= 0 && target >= 0);
	if (way == WAY_REFLINK)
		return ioctl(target, FICLONE, source) == 0 ? 0 : 1;
	if (copy_bytes(source, target) != 0)
		return error_set_errno(err, "cannot copy to %s", to);
	return way == WAY_SYNCED_COPY ? file_sync(ops, target, to, err) : 0;
}

/* Each way continues where the one before stopped, because both move the two file offsets.
 * copy_file_range reports the end of some special files at once, so a plain read always checks for
 * the end. */
static int copy_bytes(int from, int to)
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

static int copy_by_hand(int from, int to)
{
	uint8_t piece[64 * 1024];
	for (;;) {
		const ssize_t got = read(from, piece, sizeof(piece));
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

/* Succeeds when somebody else removes an entry at the same time. */
static int remove_entry(const struct file_ops *ops, const char *path, struct error *err)
{
	struct stat facts;
	if (lstat(path, &facts) != 0)
		return errno == ENOENT ? 0 : error_set_errno(err, "cannot look at %s", path);
	if (S_ISDIR(facts.st_mode) && remove_content(ops, path, err) != 0)
		return -1;
	if ((S_ISDIR(facts.st_mode) ? ops->rmdir : ops->unlink)(ops, path) != 0 && errno != ENOENT)
		return error_set_errno(err, "cannot remove %s", path);
	return 0;
}

static int remove_content(const struct file_ops *ops, const char *folder, struct error *err)
{
	char **names;
	size_t count;
	if (file_list(folder, &names, &count, err) != 0)
		return err->os_errno == ENOENT ? 0 : -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = join(folder, names[i]);
		result = remove_entry(ops, path, err);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static char *join(const char *folder, const char *name)
{
	const size_t folder_len = strlen(folder);
	char *const path = memory_new(folder_len + strlen(name) + 2);
	memcpy(path, folder, folder_len);
	path[folder_len] = '/';
	memcpy(path + folder_len + 1, name, strlen(name));
	return path;
}

static void add_name(struct name_list *list, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	list->names =
		memory_make_room(list->names, list->count, &list->capacity, sizeof(*list->names));
	list->names[list->count++] = memory_copy_text(name);
}

static int file_tree_compare_names(const void *a, const void *b)
{
	const char *const *const left = a;
	const char *const *const right = b;
	return strcmp(*left, *right);
}
