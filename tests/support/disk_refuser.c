/* A library for LD_PRELOAD: while a file exists, a folder takes no writes, as on a file system that
 * was made read-only under a running program.
 *
 *   DISK_REFUSER_FOLDER   the folder: absolute, without links on the way
 *   DISK_REFUSER_FLAG     the file
 *
 * Calls that would change something below the folder fail with EROFS; files that were open for
 * writing before are no exception. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool refuses(const char *path)
{
	const char *folder = getenv("DISK_REFUSER_FOLDER");
	const char *flag = getenv("DISK_REFUSER_FLAG");
	if (folder == NULL || flag == NULL || syscall(SYS_access, flag, F_OK) != 0 ||
		strncmp(path, folder, strlen(folder)) != 0)
		return false;
	errno = EROFS;
	return true;
}

static bool refuses_file(int fd)
{
	char link[64];
	char path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	return refuses(path);
}

static bool writes(int flags)
{
	return (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_ACCMODE) != O_RDONLY;
}

static int open_with(const char *path, int flags, va_list rest)
{
	mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(rest, int) : 0;
	return writes(flags) && refuses(path)
		? -1
		: (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	int fd = open_with(path, flags, rest);
	va_end(rest);
	return fd;
}

int open64(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	int fd = open_with(path, flags, rest);
	va_end(rest);
	return fd;
}

ssize_t write(int fd, const void *data, size_t len)
{
	return refuses_file(fd) ? -1 : (ssize_t)syscall(SYS_write, fd, data, len);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	return refuses_file(fd) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, data, len, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset)
{
	return pwrite(fd, data, len, offset);
}

int ftruncate(int fd, off_t length)
{
	return refuses_file(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate64(int fd, off_t length)
{
	return ftruncate(fd, length);
}

int fsync(int fd)
{
	return refuses_file(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return refuses_file(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	return refuses(from) || refuses(to) ? -1 : (int)syscall(SYS_rename, from, to);
}

int unlink(const char *path)
{
	return refuses(path) ? -1 : (int)syscall(SYS_unlink, path);
}

int mkdir(const char *path, mode_t mode)
{
	return refuses(path) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}
