/* A checkpoint coming into being: headers and other files at once, tensors wherever their bytes
 * come, from many threads. Nothing stands at the final path before the commit, nothing is left
 * beside it after checkpoint_writer_free. */
#ifndef WEIGHTS_DELTA_CHECKPOINT_WRITER_H
#define WEIGHTS_DELTA_CHECKPOINT_WRITER_H

#include "base/file.h"
#include "weights/delta/model_files.h"

struct checkpoint_writer;

/* `files` (checked against the schema: model_files_check) and `schema` are borrowed. `out` must not
 * exist. `links`: NULL, or per file NULL or a file that has all its bytes and that nobody changes:
 * it is linked, and what is put into it is dropped. */
struct checkpoint_writer *checkpoint_writer_begin(const struct file_ops *ops, const char *out,
	const struct model_files *files, const struct schema *schema, const char *const *links,
	struct error *err);
/* `at` counts from the tensor's first byte. Any thread. */
int checkpoint_writer_put(const struct checkpoint_writer *writer, size_t tensor, uint64_t at,
	struct span bytes, struct error *err);
/* Syncs and renames. */
int checkpoint_writer_commit(struct checkpoint_writer *writer, struct error *err);
void checkpoint_writer_free(struct checkpoint_writer *writer); /* NULL is fine */

#endif
