/* The lock is a flock on the part file itself. A file can lose its name between opening and
 * locking, when another process finishes the download; so after locking, the name is compared with
 * the descriptor, and the file is opened again if they differ. The order at the end is: sync,
 * rename, remove the journals. So a crash never leaves a torn file under the final name. */
#include "client/local/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/memory.h"

enum { OPENED_MOST = 8, PATH_MAX_BYTES = 8192 };

static int open_locked(const struct file_ops *files, const char *path, struct error *err);
static bool still_has_name(int fd, const char *path);
static int reserve(
	const struct file_ops *files, int fd, const char *path, uint64_t size, struct error *err);

char *part_file_path(const char *path, const char *suffix)
{
	const char *const slash = strrchr(path, '/');
	const char *const name = slash != NULL ? slash + 1 : path;
	const size_t folder = (size_t)(name - path);
	char short_name[2 * sizeof(struct digest128) + 1];
	const bool fits = strlen(name) + strlen(suffix) + strlen(".journal") <= NAME_MAX;
	ASSERT(strchr(suffix, '/') == NULL);
	const struct digest128 digest = xxh3_128(span_text(name));
	encode_hex(span_of(digest.bytes, sizeof(digest.bytes)), short_name);
	char *const part =
		memory_new(folder + strlen(fits ? name : short_name) + strlen(suffix) + 1);
	memcpy(part, path, folder);
	stpcpy(stpcpy(part + folder, fits ? name : short_name), suffix);
	return part;
}

int part_file_check_target(const char *path, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))
		return 0;
	return error_set(err, ERROR_INVALID,
		"%s is a device, a pipe or a socket, which a download would replace; name a file, "
		"or - for stdout",
		path);
}

int part_file_open(const struct file_ops *files, const char *path, uint64_t size, struct error *err)
{
	const int fd = open_locked(files, path, err);
	if (fd >= 0 && reserve(files, fd, path, size, err) != 0) {
		file_close_locked(fd);
		return -1;
	}
	return fd;
}

void part_file_remove_journals(const struct file_ops *files, const char *path)
{
	static const char *const KINDS[] = {"journal", "chunks"};
	char journal[PATH_MAX_BYTES];
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
		if (snprintf(journal, sizeof(journal), "%s.%s", path, KINDS[i]) <
			(int)sizeof(journal))
			files->unlink(files, journal);
}

int part_file_finish(const struct file_ops *files, int fd, const char *part_path, const char *path,
	struct error *err)
{
	ASSERT(fd >= 0);
	if (part_file_check_target(path, err) != 0 || file_sync(files, fd, part_path, err) != 0)
		return -1;
	if (files->rename(files, part_path, path) != 0)
		return error_set_errno(err, "renaming %s to %s", part_path, path);
	part_file_remove_journals(files, part_path);
	return 0;
}

static int open_locked(const struct file_ops *files, const char *path, struct error *err)
{
	for (int tries = 0; tries < OPENED_MOST; tries++) {
		const int fd = files->open(files, path, O_RDWR | O_CREAT, 0644);
		if (fd < 0)
			return error_set_errno(err, "opening %s", path);
		const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (locked && still_has_name(fd, path))
			return fd;
		file_close_locked(fd);
		if (!locked)
			break;
	}
	return error_set(err, ERROR_BUSY, "another process is downloading into %s", path);
}

/* Whether the open file is still the part file. The last holder of the lock may have finished the
 * download: then the open file is the whole file, under its own name. */
static bool still_has_name(int fd, const char *path)
{
	struct stat own;
	struct stat named;
	return fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_ino == named.st_ino &&
		own.st_dev == named.st_dev;
}

static int reserve(
	const struct file_ops *files, int fd, const char *path, uint64_t size, struct error *err)
{
	if (files->ftruncate(files, fd, (off_t)size) != 0)
		return error_set_errno(err, "sizing %s", path);
	return file_reserve(fd, size, path, err);
}
