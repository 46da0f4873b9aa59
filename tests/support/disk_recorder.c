/* A library for LD_PRELOAD: what the program does to the files below one folder is written down,
 * with the bytes, call by call, in one log. From the log tests/support/disk_state.py builds what a
 * disk may hold after a power cut.
 *
 *   DISK_RECORDER_FOLDER   the folder: absolute, without links on the way
 *   DISK_RECORDER_LOG      the log, outside the folder; several programs may share it
 *   DISK_RECORDER_SYNC_US  how long each sync takes at least, in microseconds; 0 if not set
 *   DISK_RECORDER_KILL_AT  records after which the process gets SIGKILL; never if not set
 *
 * Calls that change something run one at a time, each with its record, so the log has them in the
 * order in which they happened, and a process that ends by KILL_AT leaves none half done. A sync
 * has two records, one before it and one after it, and other calls run meanwhile: what stands
 * before the first is on the disk when the second is there. sync_file_range promises nothing and is
 * not recorded.
 *
 * What is written through a mapping cannot be followed: a writable shared mapping is a record, and
 * the reader of the log decides what it makes of it (SQLite maps its -shm files, which it makes
 * again after a crash). What libc writes without a call that can be replaced (stdio, dprintf) is
 * not seen; neither are sockets. A call that is seen and cannot be told in the log's terms ends the
 * program. System calls are made directly: nothing has to be looked up, from the first call on. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MAGIC = 0x43455244, COPY_BYTES = 1 << 20 };

/* tests/support/disk_log.py has the same list. */
enum record_kind {
	RECORD_NOTE = 1, /* of whoever else writes to the log */
	RECORD_CREATE,   /* path, file */
	RECORD_FOLDER,   /* path, file */
	RECORD_LINK,     /* path, file */
	RECORD_SYMLINK,  /* path, file, data: where it leads */
	RECORD_RENAME,   /* path, other: the new one */
	RECORD_UNLINK,   /* path; of an empty folder too */
	RECORD_WRITE,    /* file, at, data */
	RECORD_LENGTH,   /* file, at: the new length */
	RECORD_SYNC,     /* path, file, at: the sync's number in this process */
	RECORD_SYNCED,   /* file, at: the same number */
	RECORD_MAPPED,   /* path, file */
};

/* Little-endian, as the machines that this runs on; path, other path and data follow. */
struct record {
	uint32_t magic;
	uint32_t kind;
	uint32_t path_len;
	uint32_t other_len;
	uint32_t process;
	uint32_t padding;
	uint64_t file; /* inode */
	uint64_t at;
	uint64_t data_len;
};

struct change { /* a record to be */
	enum record_kind kind;
	const char *path;
	const char *other;
	uint64_t file;
	uint64_t at;
	const void *data;
	size_t data_len;
};

static char folder[PATH_MAX]; /* empty: nothing is recorded */
static size_t folder_len;
static int log_file = -1;
static long sync_us;
static long kill_at = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static uint64_t syncs; /* guarded by order */
static long records;   /* guarded by order */

static void give_up(const char *what, const char *path)
{
	dprintf(STDERR_FILENO, "disk_recorder: %s: %s (%s)\n", what, path, strerror(errno));
	abort();
}

static long number_of(const char *name, long otherwise)
{
	const char *const text = getenv(name);
	return text != NULL && *text != '\0' ? strtol(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void start(void)
{
	const char *const wanted = getenv("DISK_RECORDER_FOLDER");
	const char *const path = getenv("DISK_RECORDER_LOG");
	if (wanted == NULL || path == NULL)
		return;
	if (strlen(wanted) >= sizeof folder)
		give_up("the path is too long", wanted);
	const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
	log_file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	if (log_file < 0)
		give_up("cannot open the log", path);
	sync_us = number_of("DISK_RECORDER_SYNC_US", 0);
	kill_at = number_of("DISK_RECORDER_KILL_AT", -1);
	folder_len = strlen(wanted);
	memcpy(folder, wanted, folder_len + 1);
}

/* One append, which no other cuts in two. */
static void record(const struct change *change)
{
	const size_t path_len = change->path != NULL ? strlen(change->path) : 0;
	const size_t other_len = change->other != NULL ? strlen(change->other) : 0;
	const struct record head = {.magic = RECORD_MAGIC,
		.kind = change->kind,
		.path_len = (uint32_t)path_len,
		.other_len = (uint32_t)other_len,
		.process = (uint32_t)getpid(),
		.file = change->file,
		.at = change->at,
		.data_len = change->data_len};
	const struct iovec parts[] = {
		{(void *)&head, sizeof head},
		{(void *)change->path, path_len},
		{(void *)change->other, other_len},
		{(void *)change->data, change->data_len},
	};
	const size_t len = sizeof head + path_len + other_len + change->data_len;
	if (syscall(SYS_writev, log_file, parts, 4) != (long)len)
		give_up("cannot append to the log", folder);
	records++;
}

static void order_begin(void)
{
	pthread_mutex_lock(&order);
}

/* Gives the result, errno being that of the call. */
static long order_end(long result, int failure)
{
	if (kill_at >= 0 && records >= kill_at)
		kill(getpid(), SIGKILL);
	pthread_mutex_unlock(&order);
	errno = failure;
	return result;
}

static const char *below(const char *path)
{
	if (strncmp(path, folder, folder_len) != 0)
		return NULL;
	if (path[folder_len] != '/' && path[folder_len] != '\0')
		return NULL;
	return path + folder_len + (path[folder_len] == '/');
}

/* What a descriptor leads to, as the kernel names it. */
static bool descriptor_path(int fd, char out[PATH_MAX])
{
	char link[48];
	snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
	const long len = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
	if (len < 0)
		return false;
	out[len] = '\0';
	return true;
}

/* The name below the folder, or NULL when it lies somewhere else. */
static const char *name_below(int at, const char *path, char text[PATH_MAX])
{
	if (folder_len == 0 || path == NULL)
		return NULL;
	if (path[0] == '/')
		return below(path);
	if (!descriptor_path(at, text))
		return NULL;
	const size_t len = strlen(text);
	if (len + 1 + strlen(path) >= PATH_MAX)
		return NULL;
	text[len] = '/';
	memcpy(text + len + 1, path, strlen(path) + 1);
	return below(text);
}

/* Whether a descriptor is a file or a folder that is recorded; `out_path` may be NULL. */
static bool is_recorded(int fd, struct stat *out_facts, const char **out_path, char text[PATH_MAX])
{
	const int saved = errno;
	const bool is_ours = folder_len > 0 && fstat(fd, out_facts) == 0 &&
		(S_ISREG(out_facts->st_mode) || S_ISDIR(out_facts->st_mode)) &&
		descriptor_path(fd, text) && below(text) != NULL;
	if (is_ours && out_path != NULL)
		*out_path = below(text);
	errno = saved;
	return is_ours;
}

static uint64_t inode_of(int at, const char *path)
{
	struct stat facts;
	if (fstatat(at, path, &facts, AT_SYMLINK_NOFOLLOW) != 0)
		give_up("cannot look at", path);
	return facts.st_ino;
}

/* Names. */

static void record_opened(int fd, const char *name, bool was_there, int flags)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		give_up("cannot look at", name);
	if (!was_there)
		record(&(struct change){.kind = RECORD_CREATE, .path = name, .file = facts.st_ino});
	else if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY)
		record(&(struct change){.kind = RECORD_LENGTH, .file = facts.st_ino});
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
	char text[PATH_MAX];
	const char *const name = name_below(at, path, text);
	if (name != NULL && (flags & O_TMPFILE) == O_TMPFILE)
		give_up("files without a name cannot be recorded", path);
	if (name == NULL || (flags & (O_CREAT | O_TRUNC)) == 0)
		return (int)syscall(SYS_openat, at, path, flags, mode);
	order_begin();
	struct stat before;
	const bool was_there = fstatat(at, path, &before, 0) == 0;
	const long fd = syscall(SYS_openat, at, path, flags, mode);
	const int failure = errno;
	if (fd >= 0)
		record_opened((int)fd, name, was_there, flags);
	return (int)order_end(fd, failure);
}

static mode_t mode_of(int flags, va_list arguments)
{
	const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
	return makes ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	const mode_t mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	const mode_t mode = mode_of(flags, arguments);
	va_end(arguments);
	return open_at(at, path, flags, mode);
}

int creat(const char *path, mode_t mode)
{
	return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* What the headers call instead when they see that no mode is given. */
int __open_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);

int __open_2(const char *path, int flags)
{
	return open_at(AT_FDCWD, path, flags, 0);
}

int __openat_2(int at, const char *path, int flags)
{
	return open_at(at, path, flags, 0);
}

int mkdirat(int at, const char *path, mode_t mode)
{
	char text[PATH_MAX];
	const char *const name = name_below(at, path, text);
	if (name == NULL)
		return (int)syscall(SYS_mkdirat, at, path, mode);
	order_begin();
	const long result = syscall(SYS_mkdirat, at, path, mode);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){
			.kind = RECORD_FOLDER, .path = name, .file = inode_of(at, path)});
	return (int)order_end(result, failure);
}

int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int symlinkat(const char *target, int at, const char *path)
{
	char text[PATH_MAX];
	const char *const name = name_below(at, path, text);
	if (name == NULL)
		return (int)syscall(SYS_symlinkat, target, at, path);
	order_begin();
	const long result = syscall(SYS_symlinkat, target, at, path);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){.kind = RECORD_SYMLINK,
			.path = name,
			.file = inode_of(at, path),
			.data = target,
			.data_len = strlen(target)});
	return (int)order_end(result, failure);
}

int symlink(const char *target, const char *path)
{
	return symlinkat(target, AT_FDCWD, path);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	char text[PATH_MAX];
	const char *const name = name_below(to_at, to, text);
	if (name == NULL)
		return (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
	order_begin();
	const long result = syscall(SYS_linkat, from_at, from, to_at, to, flags);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){
			.kind = RECORD_LINK, .path = name, .file = inode_of(to_at, to)});
	return (int)order_end(result, failure);
}

int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
	char from_text[PATH_MAX];
	char to_text[PATH_MAX];
	const char *const from_name = name_below(from_at, from, from_text);
	const char *const to_name = name_below(to_at, to, to_text);
	if (from_name == NULL && to_name == NULL)
		return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
	if (from_name == NULL || to_name == NULL || (flags & RENAME_EXCHANGE) != 0)
		give_up("such a rename cannot be recorded", from);
	order_begin();
	const long result = syscall(SYS_renameat2, from_at, from, to_at, to, flags);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){
			.kind = RECORD_RENAME, .path = from_name, .other = to_name});
	return (int)order_end(result, failure);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return renameat2(from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char *path, int flags)
{
	char text[PATH_MAX];
	const char *const name = name_below(at, path, text);
	if (name == NULL)
		return (int)syscall(SYS_unlinkat, at, path, flags);
	order_begin();
	const long result = syscall(SYS_unlinkat, at, path, flags);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){.kind = RECORD_UNLINK, .path = name});
	return (int)order_end(result, failure);
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path)
{
	const int result = unlink(path);
	return result != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : result;
}

/* Bytes. */

/* `at` -1: where the descriptor stands, or at the end with O_APPEND. */
static off_t place_of(int fd, const struct stat *facts, off_t at)
{
	if (at >= 0)
		return at;
	if ((syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) != 0)
		return facts->st_size;
	return (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
}

static ssize_t write_bytes(int fd, const void *data, size_t len, off_t at)
{
	if (at < 0)
		return syscall(SYS_write, fd, data, len);
	return syscall(SYS_pwrite64, fd, data, len, at);
}

static ssize_t write_at(int fd, const void *data, size_t len, off_t at)
{
	char text[PATH_MAX];
	struct stat facts;
	if (!is_recorded(fd, &facts, NULL, text))
		return write_bytes(fd, data, len, at);
	order_begin();
	if (fstat(fd, &facts) != 0)
		give_up("cannot look at", text);
	const off_t place = place_of(fd, &facts, at);
	const ssize_t wrote = write_bytes(fd, data, len, at);
	const int failure = errno;
	if (wrote > 0)
		record(&(struct change){.kind = RECORD_WRITE,
			.file = facts.st_ino,
			.at = (uint64_t)place,
			.data = data,
			.data_len = (size_t)wrote});
	return order_end(wrote, failure);
}

ssize_t write(int fd, const void *data, size_t len)
{
	return write_at(fd, data, len, -1);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	return write_at(fd, data, len, at);
}

/* As one write of all parts together. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t at)
{
	size_t len = 0;
	for (int i = 0; i < count; i++)
		len += parts[i].iov_len;
	char *const whole = malloc(len + 1);
	if (whole == NULL)
		give_up("no memory", "for a write of several parts");
	for (size_t i = 0, done = 0; i < (size_t)count; done += parts[i++].iov_len)
		memcpy(whole + done, parts[i].iov_base, parts[i].iov_len);
	const ssize_t wrote = write_at(fd, whole, len, at);
	const int failure = errno;
	free(whole);
	errno = failure;
	return wrote;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	char text[PATH_MAX];
	struct stat facts;
	if (is_recorded(fd, &facts, NULL, text))
		return write_parts(fd, parts, count, -1);
	return syscall(SYS_writev, fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
	char text[PATH_MAX];
	struct stat facts;
	if (is_recorded(fd, &facts, NULL, text))
		return write_parts(fd, parts, count, at);
	return syscall(SYS_pwritev, fd, parts, count, at, 0L);
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags)
{
	char text[PATH_MAX];
	struct stat facts;
	if (!is_recorded(fd, &facts, NULL, text))
		return syscall(SYS_pwritev2, fd, parts, count, at, 0L, flags);
	if (flags != 0)
		give_up("pwritev2 with flags cannot be recorded", text);
	return write_parts(fd, parts, count, at);
}

int ftruncate(int fd, off_t length)
{
	char text[PATH_MAX];
	struct stat facts;
	if (!is_recorded(fd, &facts, NULL, text))
		return (int)syscall(SYS_ftruncate, fd, length);
	order_begin();
	const long result = syscall(SYS_ftruncate, fd, length);
	const int failure = errno;
	if (result == 0)
		record(&(struct change){
			.kind = RECORD_LENGTH, .file = facts.st_ino, .at = (uint64_t)length});
	return (int)order_end(result, failure);
}

int truncate(const char *path, off_t length)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const int result = fd < 0 ? -1 : ftruncate(fd, length);
	const int failure = errno;
	if (fd >= 0)
		close(fd);
	errno = failure;
	return result;
}

int fallocate(int fd, int mode, off_t at, off_t len)
{
	char text[PATH_MAX];
	struct stat facts;
	if (!is_recorded(fd, &facts, NULL, text))
		return (int)syscall(SYS_fallocate, fd, mode, at, len);
	if ((mode & ~FALLOC_FL_KEEP_SIZE) != 0)
		give_up("fallocate that changes bytes cannot be recorded", text);
	order_begin();
	const long result = syscall(SYS_fallocate, fd, mode, at, len);
	const int failure = errno;
	if (fstat(fd, &facts) == 0 && result == 0 && mode == 0 && facts.st_size == at + len)
		record(&(struct change){.kind = RECORD_LENGTH,
			.file = facts.st_ino,
			.at = (uint64_t)facts.st_size});
	return (int)order_end(result, failure);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	const int saved = errno;
	const int failure = fallocate(fd, 0, at, len) == 0 ? 0 : errno;
	errno = saved;
	return failure;
}

/* What was copied without passing through the program: as a write of the same bytes, read from
 * where they came from. */
static void record_copy(int from, off_t from_at, uint64_t file, off_t to_at, size_t len)
{
	char *const piece = malloc(COPY_BYTES);
	if (piece == NULL)
		give_up("no memory", "for a copy");
	while (len > 0) {
		const size_t wanted = len < COPY_BYTES ? len : COPY_BYTES;
		const ssize_t got = pread(from, piece, wanted, from_at);
		if (got <= 0)
			give_up("cannot read what was copied", folder);
		record(&(struct change){.kind = RECORD_WRITE,
			.file = file,
			.at = (uint64_t)to_at,
			.data = piece,
			.data_len = (size_t)got});
		from_at += got;
		to_at += got;
		len -= (size_t)got;
	}
	free(piece);
}

/* `at` NULL: where the descriptor stands. */
static off_t copy_place(int fd, const off64_t *at)
{
	return at != NULL ? *at : (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
}

ssize_t copy_file_range(
	int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
	char text[PATH_MAX];
	struct stat facts;
	if (!is_recorded(to, &facts, NULL, text))
		return syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
	order_begin();
	const off_t source = copy_place(from, from_at);
	const off_t target = copy_place(to, to_at);
	const ssize_t copied = syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
	const int failure = errno;
	if (copied > 0)
		record_copy(from, source, facts.st_ino, target, (size_t)copied);
	return order_end(copied, failure);
}

static int clone_file(int to, int from)
{
	char text[PATH_MAX];
	struct stat facts;
	struct stat source;
	if (!is_recorded(to, &facts, NULL, text))
		return (int)syscall(SYS_ioctl, to, FICLONE, from);
	order_begin();
	const long result = syscall(SYS_ioctl, to, FICLONE, from);
	const int failure = errno;
	if (result == 0 && fstat(from, &source) == 0)
		record_copy(from, 0, facts.st_ino, 0, (size_t)source.st_size);
	return (int)order_end(result, failure);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *const argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == FICLONE)
		return clone_file(fd, (int)(intptr_t)argument);
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

void *mmap(void *address, size_t len, int protection, int flags, int fd, off_t at)
{
	char text[PATH_MAX];
	struct stat facts;
	const char *path;
	const bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE && fd >= 0;
	const bool is_written = is_shared && (protection & PROT_WRITE) != 0;
	if (is_written && is_recorded(fd, &facts, &path, text)) {
		order_begin();
		record(&(struct change){.kind = RECORD_MAPPED, .path = path, .file = facts.st_ino});
		order_end(0, errno);
	}
	return (void *)syscall(SYS_mmap, address, len, protection, flags, fd, at);
}

/* Syncs. */

static void take_time(void)
{
	struct timespec left = {.tv_sec = sync_us / 1000000, .tv_nsec = sync_us % 1000000 * 1000};
	while (sync_us > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
		continue;
}

static int sync_file(long call, int fd)
{
	char text[PATH_MAX];
	struct stat facts;
	const char *path;
	if (!is_recorded(fd, &facts, &path, text))
		return (int)syscall(call, fd);
	order_begin();
	const uint64_t number = ++syncs;
	record(&(struct change){
		.kind = RECORD_SYNC, .path = path, .file = facts.st_ino, .at = number});
	order_end(0, errno);
	take_time();
	const long result = syscall(call, fd);
	const int failure = errno;
	order_begin();
	if (result == 0)
		record(&(struct change){.kind = RECORD_SYNCED, .file = facts.st_ino, .at = number});
	return (int)order_end(result, failure);
}

int fsync(int fd)
{
	return sync_file(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_file(SYS_fdatasync, fd);
}

/* The names for files of over 2 GiB, which are the same calls on 64-bit machines. */
_Static_assert(sizeof(off_t) == sizeof(off64_t), "file offsets of 64 bits");
#define ALIAS(name) __attribute__((alias(#name)))
int open64(const char *path, int flags, ...) ALIAS(open);
int openat64(int at, const char *path, int flags, ...) ALIAS(openat);
int creat64(const char *path, mode_t mode) ALIAS(creat);
int __open64_2(const char *path, int flags) ALIAS(__open_2);
int __openat64_2(int at, const char *path, int flags) ALIAS(__openat_2);
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at) ALIAS(pwrite);
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) ALIAS(pwritev);
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t at, int flags)
	ALIAS(pwritev2);
int ftruncate64(int fd, off64_t length) ALIAS(ftruncate);
int truncate64(const char *path, off64_t length) ALIAS(truncate);
int fallocate64(int fd, int mode, off64_t at, off64_t len) ALIAS(fallocate);
int posix_fallocate64(int fd, off64_t at, off64_t len) ALIAS(posix_fallocate);
void *mmap64(void *address, size_t len, int protection, int flags, int fd, off64_t at) ALIAS(mmap);
