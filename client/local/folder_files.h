/* The files of a small folder tree, with their paths in it: for example the files of a delta, or
 * the leftovers in a work folder. */
#ifndef CLIENT_LOCAL_FOLDER_FILES_H
#define CLIENT_LOCAL_FOLDER_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

struct folder_file {
	char *name; /* relative to the folder, with '/' between parts */
	char *path; /* the folder and the name */
	uint64_t size;
};

struct folder_files {
	struct folder_file *files; /* sorted by name, byte order */
	size_t count;
	size_t most;        /* the limit on count */
	bool follows_links; /* see folder_files_read_linked */
};

enum { FOLDER_FILES_MAX = 4096 };

/* Lists the regular files, at most 32 folders deep. Anything else in the folder, or deeper, is
 * invalid; more than FOLDER_FILES_MAX files are too_large. */
int folder_files_read(const char *folder, struct folder_files *out, struct error *err);
/* The same, with the limit `most`. */
int folder_files_read_most(
	const char *folder, size_t most, struct folder_files *out, struct error *err);
/* As folder_files_read_most, but a link to a regular file counts as that file. A link to a folder
 * stays invalid, so there are no loops; a link that leads nowhere is not_found. */
int folder_files_read_linked(
	const char *folder, size_t most, struct folder_files *out, struct error *err);
void folder_files_release(struct folder_files *files);

/* "folder/name", of any length. The caller frees it. */
char *folder_files_join(const char *folder, const char *name);
/* Syncs `folder` and every folder in it, so that the names in them last. */
int folder_files_sync(const struct file_ops *files, const char *folder, struct error *err);
/* Syncs the folders of these paths, each once, if folders can be synced there. */
int folder_files_sync_names(
	const struct file_ops *files, const char *const *paths, size_t count, struct error *err);
/* Removes the temporary files that a killed file_publish of `name` left in `folder`. The caller
 * must hold the folder's lock. */
int folder_files_remove_temporary(
	const struct file_ops *files, const char *folder, const char *name, struct error *err);

#endif
