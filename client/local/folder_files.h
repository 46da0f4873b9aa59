/* The files of a small folder tree, with their paths in it: what a delta consists of, what is left
 * over in a work folder. */
#ifndef CLIENT_LOCAL_FOLDER_FILES_H
#define CLIENT_LOCAL_FOLDER_FILES_H

#include <stdint.h>

#include "base/file.h"

struct folder_file {
	char *name; /* relative, '/' between folders */
	char *path;
	uint64_t size;
};

struct folder_files {
	struct folder_file *files; /* sorted by name, byte order */
	size_t count;
	size_t most; /* that may be read into it */
};

enum { FOLDER_FILES_MAX = 4096 };

/* Regular files at most 32 folders deep; anything else in there is invalid, more than
 * FOLDER_FILES_MAX too_large. */
int folder_files_read(const char *folder, struct folder_files *out, struct error *err);
/* The same with another limit. */
int folder_files_read_most(
	const char *folder, size_t most, struct folder_files *out, struct error *err);
void folder_files_release(struct folder_files *files);

/* "folder/name" on the heap; aborts on nothing, paths of any length. */
char *folder_files_join(const char *folder, const char *name);
/* Syncs `folder` and every folder in it, so that the names in them last. */
int folder_files_sync(const struct file_ops *files, const char *folder, struct error *err);
/* Syncs the folders that these paths lie in, each once, where folders can be synced. */
int folder_files_sync_names(
	const struct file_ops *files, const char *const *paths, size_t count, struct error *err);
/* Removes what a killed file_publish of `name` left in `folder`. Call under the folder's lock. */
int folder_files_remove_temporary(
	const struct file_ops *files, const char *folder, const char *name, struct error *err);

#endif
