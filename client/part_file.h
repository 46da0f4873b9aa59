/* What a download is written to until it is whole and proven: a file beside the one that it becomes, of one process at a time. Any thread. */
#ifndef CLIENT_PART_FILE_H
#define CLIENT_PART_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Beside `path`: the path with `suffix` (".part") behind it, or, where that and the names of the journals are too long for a file name, 32 digits
 * that stand for the name in its place; the same at each call. Heap, the caller's. */
char *part_file_path(const char *path, const char *suffix);
/* A descriptor of the locked file, made where there is none, with `size` bytes taken on the disk at once, so that a full disk is known before the
 * download and not at its end. -1: busy when another process has it. */
int part_file_open(const char *path, uint64_t size, struct error *err);
/* Of both kinds of download: once the file has its name. */
void part_file_remove_journals(const char *path);

#endif
