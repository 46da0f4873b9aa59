/* A part file: a download is written to it until it is whole and proven. It lies beside the file
 * that it becomes and belongs to one process at a time. Any thread. */
#ifndef CLIENT_LOCAL_PART_FILE_H
#define CLIENT_LOCAL_PART_FILE_H

#include "base/file.h"

/* The path of the part file: `path` followed by `suffix` (".part"). If that or the name of a
 * journal is too long for a file name, 32 hex digits replace the name, the same ones in each call.
 * The caller frees it. */
char *part_file_path(const char *path, const char *suffix);
/* Whether a download may replace `path`. invalid when that is a device, pipe or socket, or a link
 * to one. */
int part_file_check_target(const char *path, struct error *err);
/* Opens and locks the part file, or makes it. Reserves `size` bytes on the disk, so that a full
 * disk shows before the download and not at its end. Returns the descriptor, for file_close_locked;
 * -1 with busy when another process holds the file. */
int part_file_open(
	const struct file_ops *files, const char *path, uint64_t size, struct error *err);
/* To be called when the part file is whole and proven. Checks the target once more, syncs the file,
 * renames it to `path` and removes the journals of both kinds of download. It does not sync the
 * folder: callers do that with folder_files_sync_names, once for all files of a call. */
int part_file_finish(const struct file_ops *files, int fd, const char *part_path, const char *path,
	struct error *err);
/* Removes the journals of both kinds of download; `path` is the part file. */
void part_file_remove_journals(const struct file_ops *files, const char *path);

#endif
