/* A library for LD_PRELOAD: one call of a program on a folder's files fails, the n-th of its kind,
 * and perhaps all of that kind after it.
 *
 *   DISK_FAILER_FOLDER   the folder: absolute, without links on the way
 *   DISK_FAILER_KIND     write, sync, open, name (rename, link, unlink, mkdir, rmdir), length (of
 *                        a file) or read
 *   DISK_FAILER_NUMBER   which call of this kind fails, counted from 1; 0: none
 *   DISK_FAILER_ERRNO    with what; 0: a write takes half of the bytes
 *   DISK_FAILER_STAYS    set: all later ones fail too
 *   DISK_FAILER_COUNT    a file that gets the number of calls of this kind, 8 bytes
 *
 * A sync that fails loses what was written to that file since its last sync: those bytes become
 * zeros, and later syncs succeed, as with a kernel that gives up dirty pages after an error. A
 * program that takes a later success for one has lost data, and shows it.
 *
 * System calls are made directly: nothing has to be looked up, from the first call on. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { UNSYNCED_MAX = 1 << 16, PIECE = 1 << 16 };

enum kind { KIND_WRITE, KIND_SYNC, KIND_OPEN, KIND_NAME, KIND_LENGTH, KIND_READ, KINDS };
static const char *const kind_names[KINDS] = {"write", "sync", "open", "name", "length", "read"};

struct unsynced { /* bytes of a file that no sync has covered */
	dev_t device;
	ino_t file;
	off_t at;
	size_t len;
};
static struct unsynced unsynced[UNSYNCED_MAX];
static size_t unsynced_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both */
static _Atomic uint64_t calls;

static bool is_ours(const char *path)
{
	const char *folder = getenv("DISK_FAILER_FOLDER");
	return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static bool is_our_file(int fd)
{
	char link[64];
	char path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t len = readlink(link, path, sizeof path - 1);
	path[len < 0 ? 0 : len] = '\0';
	return len > 0 && is_ours(path);
}

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);
	return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static void tell_count(uint64_t count)
{
	const char *path = getenv("DISK_FAILER_COUNT");
	const int fd = path == NULL
		? -1
		: (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0)
		return;
	syscall(SYS_pwrite64, fd, &count, sizeof count, 0);
	syscall(SYS_close, fd);
}

/* Counts a call of this kind. Returns whether it fails, with errno set; errno 0: half of it is
 * done. */
static bool fails(enum kind kind)
{
	const char *wanted = getenv("DISK_FAILER_KIND");
	const uint64_t number = number_of("DISK_FAILER_NUMBER");
	if (wanted == NULL || strcmp(wanted, kind_names[kind]) != 0)
		return false;
	const uint64_t count = atomic_fetch_add(&calls, 1) + 1;
	const int before = errno;
	tell_count(count);
	errno = before;
	if (number == 0 || count < number ||
		(count > number && getenv("DISK_FAILER_STAYS") == NULL))
		return false;
	errno = (int)number_of("DISK_FAILER_ERRNO");
	return true;
}

static void note_written(int fd, off_t at, ssize_t len)
{
	struct stat file;
	const int before = errno;
	if (len > 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
		pthread_mutex_lock(&lock);
		if (unsynced_count < UNSYNCED_MAX)
			unsynced[unsynced_count++] = (struct unsynced){
				file.st_dev, file.st_ino, at, (size_t)len};
		pthread_mutex_unlock(&lock);
	}
	errno = before;
}

static void make_zeros(int fd, const struct unsynced *bytes)
{
	static const char zeros[PIECE];
	for (size_t done = 0; done < bytes->len; done += PIECE) {
		const size_t rest = bytes->len - done;
		syscall(SYS_pwrite64, fd, zeros, rest < PIECE ? rest : PIECE,
			bytes->at + (off_t)done);
	}
}

/* Forgets what was written to the file, and with `loses` makes it zeros. */
static void end_unsynced(int fd, bool loses)
{
	struct stat file;
	char link[64];
	size_t kept = 0;
	if (fstat(fd, &file) != 0)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const int writable =
		loses ? (int)syscall(SYS_openat, AT_FDCWD, link, O_WRONLY | O_CLOEXEC, 0) : -1;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < unsynced_count; i++) {
		const bool is_of_file =
			unsynced[i].file == file.st_ino && unsynced[i].device == file.st_dev;
		if (is_of_file && writable >= 0)
			make_zeros(writable, &unsynced[i]);
		if (!is_of_file)
			unsynced[kept++] = unsynced[i];
	}
	unsynced_count = kept;
	pthread_mutex_unlock(&lock);
	if (writable >= 0)
		syscall(SYS_close, writable);
}

static int open_with(const char *path, int flags, va_list rest)
{
	const mode_t mode = (flags & O_CREAT) != 0 ? (mode_t)va_arg(rest, int) : 0;
	return is_ours(path) && fails(KIND_OPEN)
		? -1
		: (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	const int fd = open_with(path, flags, rest);
	va_end(rest);
	return fd;
}

static size_t bytes_of(const struct iovec *parts, int count)
{
	size_t bytes = 0;
	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

/* Writes at `at`, or with -1 at the file's own place. */
static ssize_t write_some(int fd, const void *data, size_t len, off_t at)
{
	const bool is_ours_too = is_our_file(fd);
	if (is_ours_too && fails(KIND_WRITE)) {
		if (errno != 0 || len < 2)
			return -1;
		len /= 2;
	}
	if (at < 0 && is_ours_too)
		at = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
	const bool has_place = at >= 0;
	const ssize_t done = has_place && is_ours_too
		? (ssize_t)syscall(SYS_pwrite64, fd, data, len, at)
		: (ssize_t)syscall(SYS_write, fd, data, len);
	if (is_ours_too)
		note_written(fd, at, done);
	return done;
}

ssize_t write(int fd, const void *data, size_t len)
{
	const ssize_t done = write_some(fd, data, len, -1);
	if (done > 0 && is_our_file(fd))
		syscall(SYS_lseek, fd, done, SEEK_CUR);
	return done;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	return write_some(fd, data, len, at);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t at)
{
	if (bytes_of(parts, count) > 0 && is_our_file(fd) && fails(KIND_READ))
		return -1;
	return syscall(SYS_preadv, fd, parts, count, at, 0);
}

ssize_t pread(int fd, void *data, size_t len, off_t at)
{
	if (is_our_file(fd) && fails(KIND_READ))
		return -1;
	return syscall(SYS_pread64, fd, data, len, at);
}

int ftruncate(int fd, off_t length)
{
	return is_our_file(fd) && fails(KIND_LENGTH) ? -1
						     : (int)syscall(SYS_ftruncate, fd, length);
}

static int sync_file(int fd, long call)
{
	const bool is_ours_too = is_our_file(fd);
	if (is_ours_too && fails(KIND_SYNC)) {
		const int why = errno;
		end_unsynced(fd, true);
		errno = why;
		return -1;
	}
	const int result = (int)syscall(call, fd);
	if (is_ours_too && result == 0)
		end_unsynced(fd, false);
	return result;
}

int fsync(int fd)
{
	return sync_file(fd, SYS_fsync);
}

int fdatasync(int fd)
{
	return sync_file(fd, SYS_fdatasync);
}

int rename(const char *from, const char *to)
{
	return is_ours(from) && fails(KIND_NAME) ? -1 : (int)syscall(SYS_rename, from, to);
}

int link(const char *from, const char *to)
{
	return is_ours(from) && fails(KIND_NAME) ? -1 : (int)syscall(SYS_link, from, to);
}

int unlink(const char *path)
{
	return is_ours(path) && fails(KIND_NAME) ? -1 : (int)syscall(SYS_unlink, path);
}

int mkdir(const char *path, mode_t mode)
{
	return is_ours(path) && fails(KIND_NAME) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int rmdir(const char *path)
{
	return is_ours(path) && fails(KIND_NAME) ? -1 : (int)syscall(SYS_rmdir, path);
}

#define ALIAS(name) __attribute__((alias(#name)))
int open64(const char *path, int flags, ...) ALIAS(open);
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at) ALIAS(pwrite);
ssize_t pread64(int fd, void *data, size_t len, off64_t at) ALIAS(pread);
ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t at) ALIAS(preadv);
int ftruncate64(int fd, off64_t length) ALIAS(ftruncate);
