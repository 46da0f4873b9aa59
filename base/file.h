/* Files and folders through a table, so that tests can fail the n-th write, fsync or rename,
 * stop the world between two, or cut the power (tests/unit/power_disk.h). `file_system()` is the
 * real one. Whatever server and client write for somebody to find again goes through here. Any
 * thread. */
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
	/* As the system calls of the same names: -1 and errno on failure. `state` is for
	 * wrappers. */
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
	/* statvfs of what `path` lies on. */
	int (*space)(const struct file_ops *ops, const char *path, struct file_space *out);
	void *state;
	/* syncs are left out: what is written may be lost or torn by a power cut */
	bool is_volatile;
};

const struct file_ops *file_system(void);

/* Helpers; each returns 0 or -1 with the error naming the path. Short reads and EINTR are
 * handled. */
int file_write_at(const struct file_ops *ops, int fd, struct span bytes, off_t offset,
	const char *path, struct error *err);
/* Reads exactly len bytes; fewer is corrupt. */
int file_read_at(const struct file_ops *ops, int fd, void *into, size_t len, off_t offset,
	const char *path, struct error *err);
int file_sync(const struct file_ops *ops, int fd, const char *path, struct error *err);
/* Asks the system to begin bringing these bytes to the disk, so that the sync at the end of a large
 * file finds little left. A hint: it promises nothing and does not fail. */
void file_begin_sync(const struct file_ops *ops, int fd, off_t offset, size_t len);
/* Takes `size` bytes of the disk for a new file, which is as long from then on: a full disk is told
 * before the work, and writing costs less. Where the file system cannot, the file stays as it
 * is. */
int file_reserve(int fd, uint64_t size, const char *path, struct error *err);
int file_sync_folder(const struct file_ops *ops, const char *folder, struct error *err);
/* The same, but 0 where folders cannot be opened or synced: that is the file system's own way,
 * or its owner's. */
int file_try_sync_folder(const struct file_ops *ops, const char *folder, struct error *err);
/* Syncs the folder around `path`: that it has this name there lasts. */
int file_sync_name(const struct file_ops *ops, const char *path, struct error *err);
/* Whole file into `out` up to its cap; not_found when absent. */
int file_read_all(const char *path, struct buffer *out, struct error *err);
/* temp in the same folder, write, fsync, rename, fsync folder: the path holds the old bytes or the
 * new ones, never a mix. */
int file_publish(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err);
/* The same without the syncs, for files that are checked when read and can be made anew: after a
 * power cut the path may hold anything. */
int file_place(const struct file_ops *ops, const char *path, struct span bytes, mode_t mode,
	struct error *err);
/* Makes parents too, and syncs the folder around each one that it made. Exists already: 0. */
int file_make_folder(const struct file_ops *ops, const char *path, mode_t mode, struct error *err);
/* The same for the folder that `path` lies in. */
int file_make_parent(const struct file_ops *ops, const char *path, mode_t mode, struct error *err);
bool file_exists(const char *path);
int file_size(const char *path, uint64_t *out_size, struct error *err);
/* A reflink: 0, or 1 when the file system has none for these two, and nothing is left of `to`. */
int file_reflink(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* Reflink when the file system can, else copy; `to` must not exist. Not synced. The bytes do not
 * pass through the table's pwrite. */
int file_clone(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* A second name for a file that nobody changes any more; where the file system has no hard
 * links, a synced copy. */
int file_share(const struct file_ops *ops, const char *from, const char *to, struct error *err);
/* absent: 0 */
int file_remove_tree(const struct file_ops *ops, const char *path, struct error *err);
/* Names in a folder without . and .., sorted by bytes; free with file_names_free. */
int file_list(const char *folder, char ***out_names, size_t *out_count, struct error *err);
void file_names_free(char **names, size_t count);

/* The real file system with a fuse, for tests: after `countdown` calls of the chosen kinds the
 * next one fails with `failure` (an errno), or, with `kill`, the process raises SIGKILL. Cutting
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
	int kinds;           /* of enum file_fault */
	int countdown;       /* atomically decremented; below 0: spent */
	int failure;
	bool kill;
	bool sticky; /* keep failing once tripped */
};
void file_faults_init(struct file_faults *faults, int kinds, int countdown, int failure);

#endif
