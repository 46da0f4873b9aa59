/* A file or folder that appears whole or not at all. It is built beside its final path under a
 * hidden name, synced, and then renamed into place. Nothing is at the final path before
 * staging_commit returns 0, and nothing is left beside it after staging_free. One thread at a time,
 * but any thread may write to the descriptors of added files. */
#ifndef WEIGHTS_MODEL_STAGING_H
#define WEIGHTS_MODEL_STAGING_H

#include "base/file.h"

struct staging;

#define STAGING_PREFIX ".part-" /* begins the hidden names */

/* Fails with exists when `out` exists. Free the result with staging_free. */
struct staging *staging_begin(
	const struct file_ops *ops, const char *out, bool is_folder, struct error *err);

struct staged_file {
	int fd;
	char *path; /* where it is built, for messages */
};
/* Opens a new file that stays open until staging_free. `path` is relative to the folder and is
 * checked; it is ignored when a single file is staged. The result lives as long as the staging. */
const struct staged_file *staging_add(struct staging *staging, struct span path, struct error *err);
/* Makes a file with these bytes, syncs it and closes it at once. */
int staging_put(struct staging *staging, struct span path, struct span bytes, struct error *err);
/* Makes a file with the bytes of `from`, which must not change: a hard link if the file system
 * allows it, else a copy. */
int staging_link(struct staging *staging, struct span path, const char *from, struct error *err);
/* Returns the descriptor of a new file without a name, for bytes that wait for their place, or -1
 * with the error set. The file goes away with the staging, committed or not. */
int staging_scratch(struct staging *staging, struct error *err);
/* Syncs files and folders, renames them into place, and syncs the folder around them. */
int staging_commit(struct staging *staging, struct error *err);
/* Removes everything that was not committed. NULL is fine. */
void staging_free(struct staging *staging);

#endif
