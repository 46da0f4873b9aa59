/* The place of packs, as a table of operations: a folder, memory (tests, faults), and later perhaps
 * an S3 store. The store makes all names (hex ids and a suffix), never a client. Any thread; one
 * writer per open file, with readers beside it. A file that is removed while open stays readable
 * until it is closed. Drivers: backend_folder, backend_memory. */
#ifndef STORAGE_PACKS_BACKEND_H
#define STORAGE_PACKS_BACKEND_H

#include "base/error.h"
#include "base/file.h"
#include "base/span.h"
#include "storage/packs/segment.h"

struct backend;
struct backend_file { /* embed first */
	struct backend *backend;
};

/* Any thread, without a lock. */
typedef void backend_wake_fn(void *owner);
typedef int backend_take_fn(void *taker, const char *name, uint64_t size, struct error *err);
struct backend_ops {
	/* Creates a file for writing and reading; it must not exist. */
	int (*create)(struct backend *backend, const char *name, struct backend_file **out_file,
		struct error *err);
	/* Only in a far place, NULL elsewhere. The same for a file that grows on this machine alone
	 * until `sync` stores it: `append`, `truncate` and `read` never wait for a network. What
	 * was not synced may be gone after the end of the process. */
	int (*create_staged)(struct backend *backend, const char *name,
		struct backend_file **out_file, struct error *err);
	/* Opens a file for reading alone, as a read-only file system allows; not_found when
	 * absent. */
	int (*open)(struct backend *backend, const char *name, struct backend_file **out_file,
		struct error *err);
	/* The same past the page cache where the system can: reads tell what the disk has, and the
	 * pages of other readers stay in memory. For large reads by one thread at a time. */
	int (*open_uncached)(struct backend *backend, const char *name,
		struct backend_file **out_file, struct error *err);
	/* Writes at `offset`, which is at most the end of the written bytes. Overwrites what a
	 * failed append left there. */
	int (*append)(
		struct backend_file *file, struct span bytes, uint64_t offset, struct error *err);
	/* Scatter read from `offset` of exactly the total of the parts; corrupt when the file ends
	 * before. */
	int (*read)(struct backend_file *file, const struct iovec *parts, int count,
		uint64_t offset, struct error *err);
	/* Only in a far place, these three are NULL elsewhere. Whether a read of these bytes would
	 * not wait for a network, or fails at once. */
	bool (*is_near)(struct backend_file *file, uint64_t offset, uint64_t length);
	/* Begins to fetch these bytes. `wake` is called once, when a read of them will not wait any
	 * more or fails at once; it may be called before fetch returns. The file stays open until
	 * then. */
	void (*fetch)(struct backend_file *file, uint64_t offset, uint64_t length,
		backend_wake_fn *wake, void *owner);
	/* What a read gave there was wrong: the next read gets the bytes from where they are
	 * stored. */
	void (*forget)(struct backend_file *file, uint64_t offset, uint64_t length);
	/* When it returns, bytes, length and name survive a power cut. */
	int (*sync)(struct backend_file *file, struct error *err);
	int (*truncate)(struct backend_file *file, uint64_t length, struct error *err);
	int (*size)(struct backend_file *file, uint64_t *out_size, struct error *err);
	void (*close)(struct backend_file *file);
	/* Whole small files, durable when it returns. */
	int (*put)(struct backend *backend, const char *name, struct span bytes, struct error *err);
	/* The same for files that are checked when they are read and can be made again (pack
	 * indexes): after a power cut anything may be there. */
	int (*put_derived)(
		struct backend *backend, const char *name, struct span bytes, struct error *err);
	int (*get)(
		struct backend *backend, const char *name, struct buffer *out, struct error *err);
	int (*remove)(struct backend *backend, const char *name, struct error *err); /* absent: 0 */
	/* Calls `take` for every name with the file's size, in any order. `take` may remove
	 * files. */
	int (*list)(struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
	/* Doubtful files have a place of their own, where nothing is removed or replaced. Moves a
	 * file there (as NAME.1 and so on when another file has its name) and back (not_found when
	 * it is not there), and lists that place. */
	int (*set_aside)(struct backend *backend, const char *name, struct error *err);
	int (*bring_back)(struct backend *backend, const char *name, struct error *err);
	int (*list_aside)(
		struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
	/* When it returns, the removals and moves so far survive a power cut. */
	int (*sync_names)(struct backend *backend, struct error *err);
	void (*free)(struct backend *backend);
};
struct backend { /* embed first */
	const struct backend_ops *ops;
	struct pack_origin origin; /* of the packs that are written from here on; set at start */
	/* the store is only read, so derived files are not kept either; set at start */
	bool reads_only;
};

/* Whether files lie behind a network, as in an object store: then a sync takes long, and a file
 * that was synced does not grow any more. */
static inline bool backend_is_far(const struct backend *backend)
{
	return backend->ops->create_staged != NULL;
}

/* Says that a read gave wrong bytes there. True: another read gets them from where they are
 * stored. */
static inline bool backend_forget(struct backend_file *file, uint64_t offset, uint64_t length)
{
	if (file->backend->ops->forget == NULL)
		return false;
	file->backend->ops->forget(file, offset, length);
	return true;
}

/* Makes the folder when it is absent. `aside`, the folder of doubtful files, is made when it is
 * needed. `files` NULL: the real ones. */
struct backend *backend_folder_open(
	const char *folder, const char *aside, const struct file_ops *files, struct error *err);
struct backend *backend_memory_new(void);

#endif
