/* A file or folder that comes into being whole: built beside its final path under a hidden name,
 * synced, then renamed into place. Until staging_commit gave 0 nothing stands at the final path;
 * after staging_free nothing is left beside it. One thread at a time, but the descriptors of added
 * files may be written from any. */
#ifndef WEIGHTS_MODEL_STAGING_H
#define WEIGHTS_MODEL_STAGING_H

#include "base/file.h"

struct staging;

#define STAGING_PREFIX ".part-" /* of the hidden names */

/* `out` must not exist. Free with staging_free. */
struct staging *staging_begin(
	const struct file_ops *ops, const char *out, bool is_folder, struct error *err);

struct staged_file {
	int fd;
	char *path; /* where it is being built, for messages */
};
/* Opens a new file that stays open until the commit. `path` is relative to the folder (and
 * checked); of a single file it is not looked at. The result lives as long as the staging. */
const struct staged_file *staging_add(struct staging *staging, struct span path, struct error *err);
/* A new file with these bytes, synced and closed at once. */
int staging_put(struct staging *staging, struct span path, struct span bytes, struct error *err);
/* A file that has the bytes of `from`, which nobody changes: a hard link where the file system
 * allows it, else a copy. */
int staging_link(struct staging *staging, struct span path, const char *from, struct error *err);
/* A new file without a name, for what waits to be put in its place: gone with the staging,
 * committed or not. -1 with the error set. */
int staging_scratch(struct staging *staging, struct error *err);
/* Syncs files and folders, renames, syncs the folder around it. */
int staging_commit(struct staging *staging, struct error *err);
/* Removes what was not committed. NULL is fine. */
void staging_free(struct staging *staging);

#endif
