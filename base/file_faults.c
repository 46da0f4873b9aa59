/* Each operation asks trip() whether the fuse blows at this call, and otherwise calls the real file
 * system. Reads never fail. The countdown is atomic, because the code under test has threads. */
#include "base/file.h"

#include <errno.h>
#include <signal.h>

static int file_faults_open(const struct file_ops *ops, const char *path, int flags, mode_t mode);
static bool trip(const struct file_ops *ops, enum file_fault kind);
static ssize_t file_faults_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset);
static ssize_t file_faults_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset);
static int file_faults_fdatasync(const struct file_ops *ops, int fd);
static int file_faults_ftruncate(const struct file_ops *ops, int fd, off_t length);
static int file_faults_rename(const struct file_ops *ops, const char *from, const char *to);
static int file_faults_unlink(const struct file_ops *ops, const char *path);
static int file_faults_mkdir(const struct file_ops *ops, const char *path, mode_t mode);
static int file_faults_rmdir(const struct file_ops *ops, const char *path);
static int file_faults_link(const struct file_ops *ops, const char *from, const char *to);
static int file_faults_symlink(const struct file_ops *ops, const char *target, const char *path);
static int file_faults_space(const struct file_ops *ops, const char *path, struct file_space *out);

void file_faults_init(struct file_faults *faults, int kinds, int countdown, int failure)
{
	*faults = (struct file_faults){
		.ops =
			{
				.open = file_faults_open,
				.pwrite = file_faults_pwrite,
				.preadv = file_faults_preadv,
				.fdatasync = file_faults_fdatasync,
				.ftruncate = file_faults_ftruncate,
				.rename = file_faults_rename,
				.unlink = file_faults_unlink,
				.mkdir = file_faults_mkdir,
				.rmdir = file_faults_rmdir,
				.link = file_faults_link,
				.symlink = file_faults_symlink,
				.space = file_faults_space,
				.state = faults,
			},
		.kinds = kinds,
		.countdown = countdown,
		.failure = failure,
	};
}

static int file_faults_open(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_OPEN) ? -1 : real->open(real, path, flags, mode);
}

/* True when this call must fail. Does not return when the process must die. */
static bool trip(const struct file_ops *ops, enum file_fault kind)
{
	struct file_faults *const faults = ops->state;
	if ((faults->kinds & (int)kind) == 0)
		return false;
	const int before = __atomic_fetch_sub(&faults->countdown, 1, __ATOMIC_SEQ_CST);
	if (before > 0 || (before < 0 && !faults->sticky))
		return false;
	if (faults->kill)
		raise(SIGKILL);
	errno = faults->failure;
	return true;
}

static ssize_t file_faults_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_WRITE) ? -1 : real->pwrite(real, fd, data, len, offset);
}

static ssize_t file_faults_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	const struct file_ops *const real = file_system();
	(void)ops;
	return real->preadv(real, fd, parts, count, offset);
}

static int file_faults_fdatasync(const struct file_ops *ops, int fd)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_SYNC) ? -1 : real->fdatasync(real, fd);
}

static int file_faults_ftruncate(const struct file_ops *ops, int fd, off_t length)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_WRITE) ? -1 : real->ftruncate(real, fd, length);
}

static int file_faults_rename(const struct file_ops *ops, const char *from, const char *to)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_RENAME) ? -1 : real->rename(real, from, to);
}

static int file_faults_unlink(const struct file_ops *ops, const char *path)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_UNLINK) ? -1 : real->unlink(real, path);
}

static int file_faults_mkdir(const struct file_ops *ops, const char *path, mode_t mode)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_OPEN) ? -1 : real->mkdir(real, path, mode);
}

static int file_faults_rmdir(const struct file_ops *ops, const char *path)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_UNLINK) ? -1 : real->rmdir(real, path);
}

static int file_faults_link(const struct file_ops *ops, const char *from, const char *to)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_OPEN) ? -1 : real->link(real, from, to);
}

static int file_faults_symlink(const struct file_ops *ops, const char *target, const char *path)
{
	const struct file_ops *const real = file_system();
	return trip(ops, FILE_FAULT_OPEN) ? -1 : real->symlink(real, target, path);
}

static int file_faults_space(const struct file_ops *ops, const char *path, struct file_space *out)
{
	const struct file_ops *const real = file_system();
	(void)ops;
	return real->space(real, path, out);
}
