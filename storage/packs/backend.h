/* Where packs live: a table of operations, so that a folder, memory (tests, faults) and later an S3
 * store serve alike. Names are made by the store (hex ids and a suffix), never by clients. Any
 * thread; one writer per open file; reads beside it. A file removed while open stays readable until
 * closed. Sibling drivers: backend_folder, backend_memory. */
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

typedef int backend_take_fn(void *taker, const char *name, uint64_t size, struct error *err);
struct backend_ops {
	/* Creates, for writing and reading; must not exist. */
	int (*create)(struct backend *backend, const char *name, struct backend_file **out_file,
		struct error *err);
	/* Opens for reading alone, as a read-only file system allows; not_found when absent. */
	int (*open)(struct backend *backend, const char *name, struct backend_file **out_file,
		struct error *err);
	/* Writes at `offset`, at most the end of what was written; overwrites what a failed append
	 * left there. */
	int (*append)(
		struct backend_file *file, struct span bytes, uint64_t offset, struct error *err);
	/* Scatter read of exactly the parts' total from offset; short is corrupt. */
	int (*read)(struct backend_file *file, const struct iovec *parts, int count,
		uint64_t offset, struct error *err);
	/* Bytes, length and name survive a power cut when it returns. */
	int (*sync)(struct backend_file *file, struct error *err);
	int (*truncate)(struct backend_file *file, uint64_t length, struct error *err);
	int (*size)(struct backend_file *file, uint64_t *out_size, struct error *err);
	void (*close)(struct backend_file *file);
	/* Whole small files: durable when it returns. */
	int (*put)(struct backend *backend, const char *name, struct span bytes, struct error *err);
	/* The same for what is checked when read and can be made anew (pack indexes): after a power
	 * cut anything may stand there. */
	int (*put_derived)(
		struct backend *backend, const char *name, struct span bytes, struct error *err);
	int (*get)(
		struct backend *backend, const char *name, struct buffer *out, struct error *err);
	int (*remove)(struct backend *backend, const char *name, struct error *err); /* absent: 0 */
	/* Calls `take` for every name with the file's size; order is free. `take` may remove. */
	int (*list)(struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
	/* What is in doubt is kept in a place of its own, where nothing is removed or replaced:
	 * moves a file there (as NAME.1 and so on where another one has its name), and back
	 * (not_found when it is not there); lists what lies there. */
	int (*set_aside)(struct backend *backend, const char *name, struct error *err);
	int (*bring_back)(struct backend *backend, const char *name, struct error *err);
	int (*list_aside)(
		struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
	/* What was removed and moved so far survives a power cut when it returns. */
	int (*sync_names)(struct backend *backend, struct error *err);
	void (*free)(struct backend *backend);
	/* false: a file is written once and sealed with each commit (object stores) */
	bool can_append;
};
struct backend { /* embed first */
	const struct backend_ops *ops;
	struct pack_origin origin; /* of the packs that are written from here on; set at start */
	/* of a store that is only read: what is derived is not kept either; set at start */
	bool reads_only;
};

/* Makes the folder when absent; `aside` (where doubtful files go) is made when it is needed.
 * `files` NULL: the real ones. */
struct backend *backend_folder_open(
	const char *folder, const char *aside, const struct file_ops *files, struct error *err);
struct backend *backend_memory_new(void);

#endif
