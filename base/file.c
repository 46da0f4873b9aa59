/* The real table, and the helpers over any table. file_tree.c has walks over folders and copies,
 * file_faults.c the fuse for tests. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/random.h"

static int file_system_open(const struct file_ops *ops, const char *path, int flags, mode_t mode);
static ssize_t file_system_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset);
static ssize_t file_system_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset);
static int file_system_fdatasync(const struct file_ops *ops, int fd);
static int file_system_ftruncate(const struct file_ops *ops, int fd, off_t length);
static int file_system_rename(const struct file_ops *ops, const char *from, const char *to);
static int file_system_unlink(const struct file_ops *ops, const char *path);
static int file_system_mkdir(const struct file_ops *ops, const char *path, mode_t mode);
static int file_system_rmdir(const struct file_ops *ops, const char *path);
static int file_system_link(const struct file_ops *ops, const char *from, const char *to);
static int file_system_symlink(const struct file_ops *ops, const char *target, const char *path);
static int file_system_space(const struct file_ops *ops, const char *path, struct file_space *out);
static int read_to_end(int fd, struct buffer *out, const char *path, struct error *err);
static int folder_of(const char *path, char out[PATH_MAX], struct error *err);
static int file_replace(const struct file_ops *ops, const char *path, struct span bytes,
	mode_t mode, bool durable, struct error *err);
static int write_new(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	bool durable, struct error *err);

const struct file_ops *file_system(void)
{
	static const struct file_ops ops = {
		.open = file_system_open,
		.pwrite = file_system_pwrite,
		.preadv = file_system_preadv,
		.fdatasync = file_system_fdatasync,
		.ftruncate = file_system_ftruncate,
		.rename = file_system_rename,
		.unlink = file_system_unlink,
		.mkdir = file_system_mkdir,
		.rmdir = file_system_rmdir,
		.link = file_system_link,
		.symlink = file_system_symlink,
		.space = file_system_space,
	};
	return &ops;
}

int file_write_at(const struct file_ops *ops, int fd, struct span bytes, off_t offset,
	const char *path, struct error *err)
{
	for (size_t done = 0; done < bytes.len;) {
		const ssize_t wrote = ops->pwrite(
			ops, fd, bytes.data + done, bytes.len - done, offset + (off_t)done);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return error_set_errno(err, "cannot write %zu bytes at %lld of %s",
				bytes.len, (long long)offset, path);
		if (wrote == 0)
			return error_set(err, ERROR_IO,
				"cannot write %zu bytes at %lld of %s: no byte was written",
				bytes.len, (long long)offset, path);
		done += (size_t)wrote;
	}
	return 0;
}

int file_read_at(const struct file_ops *ops, int fd, struct iovec into, off_t offset,
	const char *path, struct error *err)
{
	for (size_t done = 0; done < into.iov_len;) {
		const struct iovec part = {(uint8_t *)into.iov_base + done, into.iov_len - done};
		const ssize_t got = ops->preadv(ops, fd, &part, 1, offset + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(err, "cannot read %zu bytes at %lld of %s",
				into.iov_len, (long long)offset, path);
		if (got == 0)
			return error_set(err, ERROR_CORRUPT,
				"%s ends after %zu of the %zu bytes expected at %lld", path, done,
				into.iov_len, (long long)offset);
		done += (size_t)got;
	}
	return 0;
}

int file_sync(const struct file_ops *ops, int fd, const char *path, struct error *err)
{
	return ops->is_volatile || ops->fdatasync(ops, fd) == 0
		? 0
		: error_set_errno(err, "cannot sync %s", path);
}

void file_begin_sync(const struct file_ops *ops, int fd, off_t offset, size_t len)
{
	const int saved = errno;
	if (!ops->is_volatile)
		(void)sync_file_range(fd, offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
	errno = saved;
}

int file_reserve(int fd, uint64_t size, const char *path, struct error *err)
{
	if (size == 0 || fallocate(fd, 0, 0, (off_t)size) == 0)
		return 0;
	if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
		return 0;
	return error_set_errno(
		err, "cannot reserve %llu bytes for %s", (unsigned long long)size, path);
}

int file_sync_folder(const struct file_ops *ops, const char *folder, struct error *err)
{
	const int fd = ops->open(ops, folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return error_set_errno(err, "cannot open folder %s", folder);
	const int result = file_sync(ops, fd, folder, err);
	close(fd);
	return result;
}

int file_try_sync_folder(const struct file_ops *ops, const char *folder, struct error *err)
{
	struct error failure = {0};
	if (file_sync_folder(ops, folder, &failure) == 0 || failure.os_errno == EACCES ||
		failure.os_errno == EINVAL)
		return 0;
	*err = failure;
	return -1;
}

int file_read_all(const char *path, struct buffer *out, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "cannot open %s", path);
	const int result = read_to_end(fd, out, path, err);
	close(fd);
	return result;
}

int file_sync_name(const struct file_ops *ops, const char *path, struct error *err)
{
	char folder[PATH_MAX];
	return folder_of(path, folder, err) != 0 ? -1 : file_sync_folder(ops, folder, err);
}

int file_publish(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err)
{
	return file_replace(ops, path, bytes, mode, true, err);
}

int file_place(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err)
{
	return file_replace(ops, path, bytes, mode, false, err);
}

bool file_exists(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0;
}

int file_find(const char *path, bool *out_is_there, struct error *err)
{
	struct stat facts;
	*out_is_there = stat(path, &facts) == 0;
	if (*out_is_there || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return error_set_errno(err, "cannot look at %s", path);
}

int file_size(const char *path, uint64_t *out_size, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "cannot look at %s", path);
	if (!S_ISREG(facts.st_mode))
		return error_set(err, ERROR_INVALID, "%s is not a file", path);
	*out_size = (uint64_t)facts.st_size;
	return 0;
}

void file_close_locked(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN);
	close(fd);
}

static int file_system_open(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	(void)ops;
	return open(path, flags | O_CLOEXEC, mode);
}

static ssize_t file_system_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	(void)ops;
	return pwrite(fd, data, len, offset);
}

static ssize_t file_system_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	(void)ops;
	return preadv(fd, parts, count, offset);
}

/* Uses fsync for a folder: to ext4 a renamed entry is metadata that fdatasync may leave
 * unwritten. */
static int file_system_fdatasync(const struct file_ops *ops, int fd)
{
	struct stat facts;
	(void)ops;
	if (fstat(fd, &facts) != 0)
		return -1;
	return S_ISDIR(facts.st_mode) ? fsync(fd) : fdatasync(fd);
}

static int file_system_ftruncate(const struct file_ops *ops, int fd, off_t length)
{
	(void)ops;
	return ftruncate(fd, length);
}

static int file_system_rename(const struct file_ops *ops, const char *from, const char *to)
{
	(void)ops;
	return rename(from, to);
}

static int file_system_unlink(const struct file_ops *ops, const char *path)
{
	(void)ops;
	return unlink(path);
}

static int file_system_mkdir(const struct file_ops *ops, const char *path, mode_t mode)
{
	(void)ops;
	return mkdir(path, mode);
}

static int file_system_rmdir(const struct file_ops *ops, const char *path)
{
	(void)ops;
	return rmdir(path);
}

static int file_system_link(const struct file_ops *ops, const char *from, const char *to)
{
	(void)ops;
	return link(from, to);
}

static int file_system_symlink(const struct file_ops *ops, const char *target, const char *path)
{
	(void)ops;
	return symlink(target, path);
}

static int file_system_space(const struct file_ops *ops, const char *path, struct file_space *out)
{
	struct statvfs facts;
	(void)ops;
	if (statvfs(path, &facts) != 0)
		return -1;
	*out = (struct file_space){.free = (uint64_t)facts.f_bavail * facts.f_frsize,
		.all = (uint64_t)facts.f_blocks * facts.f_frsize};
	return 0;
}

static int read_to_end(int fd, struct buffer *out, const char *path, struct error *err)
{
	enum { PIECE_BYTES = 64 * 1024 };
	ASSERT(out->len <= out->cap);
	for (;;) {
		const size_t room = out->cap - out->len;
		uint8_t *const into = buffer_reserve(out, room < PIECE_BYTES ? room : PIECE_BYTES);
		if (into == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory to read %s", path);
		/* when the buffer is full, one byte more tells a file at the cap from a larger
		 * one */
		uint8_t beyond;
		const ssize_t got = room > 0
			? read(fd, into, room < PIECE_BYTES ? room : PIECE_BYTES)
			: read(fd, &beyond, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(err, "cannot read %s", path);
		if (got == 0)
			return 0;
		if (room == 0)
			return error_set(
				err, ERROR_TOO_LARGE, "%s is over %zu bytes", path, out->cap);
		buffer_commit(out, (size_t)got);
	}
}

/* Gives the folder that contains the last name of the path; "." when there is no slash. */
static int folder_of(const char *path, char out[PATH_MAX], struct error *err)
{
	const char *const slash = strrchr(path, '/');
	const size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
	if (len >= PATH_MAX)
		return error_set(err, ERROR_INVALID, "the path %.80s... is over %d bytes", path,
			PATH_MAX - 1);
	memcpy(out, slash == NULL ? "." : path, slash == NULL ? 1 : len);
	out[slash == NULL ? 1 : len] = '\0';
	return 0;
}

static int file_replace(const struct file_ops *ops, const char *path, struct span bytes,
	mode_t mode, bool durable, struct error *err)
{
	uint8_t unique[8];
	char suffix[2 * sizeof(unique) + 1];
	char temp[PATH_MAX];
	random_bytes(unique, sizeof(unique));
	encode_hex(span_of(unique, sizeof(unique)), suffix);
	if (snprintf(temp, sizeof(temp), "%s.tmp-%s", path, suffix) >= (int)sizeof(temp))
		return error_set(err, ERROR_INVALID, "the path %.80s... is over %d bytes", path,
			PATH_MAX - 1);
	int result = write_new(ops, temp, bytes, mode, durable, err);
	if (result == 0 && ops->rename(ops, temp, path) != 0)
		result = error_set_errno(err, "cannot rename %s to %s", temp, path);
	if (result != 0)
		ops->unlink(ops, temp);
	return result == 0 && durable ? file_sync_name(ops, path, err) : result;
}

static int write_new(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	bool durable, struct error *err)
{
	const int fd = ops->open(ops, path, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (fd < 0)
		return error_set_errno(err, "cannot create %s", path);
	int result = file_write_at(ops, fd, bytes, 0, path, err);
	if (result == 0 && durable)
		result = file_sync(ops, fd, path, err);
	if (close(fd) != 0 && result == 0)
		result = error_set_errno(err, "cannot close %s", path);
	return result;
}
