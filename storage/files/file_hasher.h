/* Computes the Xet file hash of a stream of bytes. It cuts the bytes into chunks, also at the ends
 * of parts, and joins the chunks into a tree. It needs memory for one chunk and one branch of the
 * tree. One thread at a time. Internal to storage. */
#ifndef STORAGE_FILES_FILE_HASHER_H
#define STORAGE_FILES_FILE_HASHER_H

#include "storage/versions/part_ends.h"

struct file_hasher;

/* `ends` is borrowed; part_ends_left must not have been called on it yet. */
struct file_hasher *file_hasher_new(struct part_ends *ends);
void file_hasher_add(struct file_hasher *hasher, struct span bytes);
struct chunk_id file_hasher_result(struct file_hasher *hasher); /* only free may come after it */
void file_hasher_free(struct file_hasher *hasher);              /* NULL is fine */

#endif
