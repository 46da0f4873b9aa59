/* The Xet file hash of bytes that go by: chunked, parts apart where there are any, and joined into
 * a tree. Takes as much memory as a chunk and a branch of the tree. One thread at a time. Internal
 * to storage. */
#ifndef STORAGE_FILES_FILE_HASHER_H
#define STORAGE_FILES_FILE_HASHER_H

#include "storage/versions/part_ends.h"

struct file_hasher;

/* `ends` is borrowed and stands at its beginning. */
struct file_hasher *file_hasher_new(struct part_ends *ends);
void file_hasher_add(struct file_hasher *hasher, struct span bytes);
struct chunk_id file_hasher_result(struct file_hasher *hasher); /* only free may follow */
void file_hasher_free(struct file_hasher *hasher);              /* NULL is fine */

#endif
