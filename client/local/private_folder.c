#include "client/local/private_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"

enum { TRIES_MAX = 16 };
static const char PREFIX[] = "deltabucket-";

static void remove_leftovers(const struct file_ops *files, const char *parent);
static void remove_leftover(const struct file_ops *files, const char *path, const char *name);
static bool is_ours(const char *path);
static bool is_alive(const char *name);
static bool read_start(int64_t pid, uint64_t *out_start);
static int make(struct private_folder *folder, const char *parent, struct error *err);
static bool is_locked(const struct private_folder *folder);

int private_folder_make(struct private_folder *folder, const struct file_ops *files,
	const char *parent, struct error *err)
{
	*folder = (struct private_folder){.files = files, .lock_fd = -1};
	remove_leftovers(files, parent);
	for (int i = 0; i < TRIES_MAX; i++) {
		if (make(folder, parent, err) != 0)
			return -1;
		if (is_locked(folder))
			return 0;
		folder_lock_leave(folder->lock_fd); /* another process has just removed it */
		folder->lock_fd = -1;
	}
	return error_set(err, ERROR_BUSY, "'%s' goes again and again", folder->path);
}

void private_folder_remove(struct private_folder *folder)
{
	struct error ignored = {0};
	if (folder->path != NULL && folder->lock_fd >= 0)
		file_remove_tree(folder->files, folder->path, &ignored);
	folder_lock_leave(folder->lock_fd);
	free(folder->path);
	*folder = (struct private_folder){.lock_fd = -1};
}

static void remove_leftovers(const struct file_ops *files, const char *parent)
{
	struct error ignored = {0};
	char **names = NULL;
	size_t count = 0;
	if (file_list(parent, &names, &count, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		char *const path = folder_files_join(parent, names[i]);
		if (strncmp(names[i], PREFIX, strlen(PREFIX)) == 0 && is_ours(path))
			remove_leftover(files, path, names[i]);
		free(path);
	}
	file_names_free(names, count);
}

/* The lock decides, because a process of another container may have any number. A folder that its
 * process has made and not locked yet is spared for the name. */
static void remove_leftover(const struct file_ops *files, const char *path, const char *name)
{
	struct error ignored = {0};
	const int fd = folder_lock_enter(path, "process", &ignored);
	if (fd >= 0 && !is_alive(name + strlen(PREFIX)))
		file_remove_tree(files, path, &ignored);
	folder_lock_leave(fd);
}

static bool is_ours(const char *path)
{
	struct stat facts;
	return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

/* Whether the process of the name "PID-START-RANDOM" runs. What has no such name does: it is not
 * ours to remove. */
static bool is_alive(const char *name)
{
	int64_t pid;
	uint64_t start;
	uint64_t found;
	if (sscanf(name, "%" SCNd64 "-%" SCNu64 "-", &pid, &start) != 2)
		return true;
	return read_start(pid, &found) && found == start;
}

/* Reads when the process started, in ticks of the kernel's clock. */
static bool read_start(int64_t pid, uint64_t *out_start)
{
	enum { FIELDS_BETWEEN = 20 }; /* behind the name in parentheses, before the start */
	char path[64];
	struct buffer text;
	struct error ignored = {0};
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	buffer_init(&text, 4096);
	const char *at = NULL;
	if (file_read_all(path, &text, &ignored) == 0)
		at = strrchr(buffer_text(&text), ')');
	for (int i = 0; i < FIELDS_BETWEEN && at != NULL; i++)
		at = strchr(at + 1, ' ');
	const bool found = at != NULL && sscanf(at, " %" SCNu64, out_start) == 1;
	buffer_release(&text);
	return found;
}

static int make(struct private_folder *folder, const char *parent, struct error *err)
{
	char name[96];
	uint32_t random;
	uint64_t start = 0;
	const int64_t pid = getpid();
	random_bytes(&random, sizeof(random));
	if (!read_start(pid, &start))
		return error_set(err, ERROR_IO, "/proc/%" PRId64 "/stat cannot be read", pid);
	snprintf(name, sizeof(name), "%s%" PRId64 "-%" PRIu64 "-%08" PRIx32, PREFIX, pid, start,
		random);
	free(folder->path);
	folder->path = folder_files_join(parent, name);
	if (folder->files->mkdir(folder->files, folder->path, 0700) != 0)
		return error_set_errno(err, "making the folder %s", folder->path);
	folder->lock_fd = folder_lock_enter(folder->path, "process", err);
	return folder->lock_fd >= 0 ? 0 : -1;
}

/* Whether the folder that is locked still has its name. */
static bool is_locked(const struct private_folder *folder)
{
	struct stat locked;
	struct stat there;
	return fstat(folder->lock_fd, &locked) == 0 && stat(folder->path, &there) == 0 &&
		locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}
