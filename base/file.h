/* Files and folders through a table of operations. Tests replace it to fail the n-th write, sync or
 * rename, to stop the process between two of them, or to cut the power (tests/unit/power_disk.h).
 * `file_system()` is the real table. Everything that server and client write and must find again
 * goes through a table. Any thread. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/buffer.h"

struct file_space {    /* of a file system, in bytes */
	uint64_t free; /* for this process */
	uint64_t all;
};

struct file_ops {
	/* Like the system calls of the same names: -1 and errno on failure. `state` belongs to
	 * tables that wrap another one. */
	int (*open)(const struct file_ops *ops, const char *path, int flags, mode_t mode);
	ssize_t (*pwrite)(
		const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset);
	ssize_t (*preadv)(const struct file_ops *ops, int fd, const struct iovec *parts, int count,
		off_t offset);
	int (*fdatasync)(const struct file_ops *ops, int fd);
	int (*ftruncate)(const struct file_ops *ops, int fd, off_t length);
	int (*rename)(const struct file_ops *ops, const char *from, const char *to);
	int (*unlink)(const struct file_ops *ops, const char *path);
	int (*mkdir)(const struct file_ops *ops, const char *path, mode_t mode);
	int (*rmdir)(const struct file_ops *ops, const char *path);
	int (*link)(const struct file_ops *ops, const char *from, const char *to);
	int (*symlink)(const struct file_ops *ops, const char *target, const char *path);
	/* Like statvfs, for the file system that `path` lies on. */
	int (*space)(const struct file_ops *ops, const char *path, struct file_space *out);
	void *state;
	/* Syncs are left out: a power cut may lose or tear what was written. */
	bool is_volatile;
};

const struct file_ops *file_system(void);

/* The functions below that can fail return 0, or -1 with an error that names the path. They handle
 * short reads, short writes and EINTR. */
int file_write_at(const struct file_ops *ops, int fd, struct span bytes, off_t offset,
	const char *path, struct error *err);
/* Fills all of `into`; corrupt when the file ends before. */
int file_read_at(const struct file_ops *ops, int fd, struct iovec into, off_t offset,
	const char *path, struct error *err);
int file_sync(const struct file_ops *ops, int fd, const char *path, struct error *err);
/* Asks the system to start writing these bytes to the disk, so that the sync at the end of a large
 * file finds little left to do. A hint: it promises nothing and does not fail. */
void file_begin_sync(const struct file_ops *ops, int fd, off_t offset, size_t len);
/* Reserves `size` bytes of the disk for a new file and makes the file that long. A full disk shows
 * before the work, and writing costs less. Does nothing where the file system cannot reserve. */
int file_reserve(int fd, uint64_t size, const char *path, struct error *err);
int file_sync_folder(const struct file_ops *ops, const char *folder, struct error *err);
/* The same, but succeeds where the folder may not be opened or synced: some file systems and some
 * owners do not allow it. */
int file_try_sync_folder(const struct file_ops *ops, const char *folder, struct error *err);
/* Syncs the folder that contains `path`, so that the name `path` survives a power cut. */
int file_sync_name(const struct file_ops *ops, const char *path, struct error *err);
/* Reads the whole file into `out`, up to the buffer's cap; not_found when there is no such file. */
int file_read_all(const char *path, struct buffer *out, struct error *err);
/* Writes a temporary file in the same folder, syncs it, renames it to `path` and syncs the folder:
 * the path holds the old bytes or the new ones, never a mix. */
int file_publish(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err);
/* The same without the syncs, for files that are checked when they are read and can be made again:
 * after a power cut the path may hold anything. */
int file_place(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err);
/* Makes parents too, and syncs the folder around each folder that it made. Returns 0 when the
 * folder exists already. */
int file_make_folder(const struct file_ops *ops, const char *path, mode_t mode, struct error *err);
/* The same for the folder that contains `path`. */
int file_make_parent(const struct file_ops *ops, const char *path, mode_t mode, struct error *err);
/* False also where it cannot be seen. */
bool file_exists(const char *path);
/* Fails where it cannot be seen whether something is there, with the reason and the path. */
int file_find(const char *path, bool *out_is_there, struct error *err);
int file_size(const char *path, uint64_t *out_size, struct error *err);
/* Returns 0 with a reflink, or 1 when the file system cannot make one between these two; then there
 * is no file `to`. */
int file_reflink(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* Makes a reflink where the file system can, else a copy. `to` must not exist. It is not synced.
 * The bytes do not pass through the table's pwrite. */
int file_clone(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* Makes a second name for a file that nobody changes any more, or a synced copy where the file
 * system has no hard links. */
int file_share(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* Returns 0 also when there is nothing at `path`. */
int file_remove_tree(const struct file_ops *ops, const char *path, struct error *err);
/* Ends the flock of a descriptor and closes it; -1 is fine. A process that was forked meanwhile has
 * a copy of the descriptor: closed alone, the lock would last as long as that process. */
void file_close_locked(int fd);
/* The names in a folder without . and .., sorted by bytes. Free them with file_names_free. */
int file_list(const char *folder, char ***out_names, size_t *out_count, struct error *err);
void file_names_free(char **names, size_t count);

/* The real file system with a fuse, for tests. After `countdown` calls of the chosen kinds, the
 * next one fails with `failure` (an errno) or, with `kill`, the process raises SIGKILL. Truncating
 * a file counts as a write, making a name as an open, removing a folder as an unlink. */
enum file_fault {
	FILE_FAULT_WRITE = 1,
	FILE_FAULT_SYNC = 2,
	FILE_FAULT_RENAME = 4,
	FILE_FAULT_UNLINK = 8,
	FILE_FAULT_OPEN = 16
};
struct file_faults {
	struct file_ops ops; /* pass &faults->ops */
	int kinds;           /* bits of enum file_fault */
	int countdown;       /* atomically decremented; below 0: the fuse has blown */
	int failure;
	bool kill;
	bool sticky; /* later calls of these kinds fail too */
};
void file_faults_init(struct file_faults *faults, int kinds, int countdown, int failure);

#endif
