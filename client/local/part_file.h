/* What a download is written to until it is whole and proven: a file beside the one that it
 * becomes, of one process at a time. Any thread. */
#ifndef CLIENT_LOCAL_PART_FILE_H
#define CLIENT_LOCAL_PART_FILE_H

#include "base/file.h"

/* Beside `path`: the path with `suffix` (".part") behind it, or, where that and the names of the
 * journals are too long for a file name, 32 digits that stand for the name in its place; the same
 * at each call. Heap, the caller's. */
char *part_file_path(const char *path, const char *suffix);
/* Whether a download may take the name `path`: invalid where a device, pipe or socket has it, also
 * by way of a link, since the download would take its place. */
int part_file_check_target(const char *path, struct error *err);
/* A descriptor of the locked file, made where there is none, with `size` bytes taken on the disk at
 * once, so that a full disk is known before the download and not at its end. -1: busy when another
 * process has it. */
int part_file_open(
	const struct file_ops *files, const char *path, uint64_t size, struct error *err);
/* The part file is whole and proven: the target is checked once more, the bytes are made to last,
 * then the file takes the name `path`, then the journals of both kinds of download go. That the
 * name lasts is left to folder_files_sync_names, once for all files of a call. */
int part_file_finish(const struct file_ops *files, int fd, const char *part_path, const char *path,
	struct error *err);
/* The journals of both kinds of download. */
void part_file_remove_journals(const struct file_ops *files, const char *path);

#endif
