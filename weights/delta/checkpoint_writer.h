/* Writes a checkpoint. Headers and other files are written at the start; tensors then come in any
 * order from many threads. Nothing is at the final path before the commit, and nothing is left
 * beside it after checkpoint_writer_free. */
#ifndef WEIGHTS_DELTA_CHECKPOINT_WRITER_H
#define WEIGHTS_DELTA_CHECKPOINT_WRITER_H

#include "base/file.h"
#include "weights/delta/model_files.h"

struct checkpoint_writer;

/* `files` and `schema` are borrowed; model_files_check must have accepted them together. Fails with
 * exists when `out` exists. `links` is NULL, or has for each file NULL or the path of a file with
 * the same bytes, which must not change. Such a file is linked, and bytes put into it are
 * dropped. */
struct checkpoint_writer *checkpoint_writer_begin(const struct file_ops *ops, const char *out,
	const struct model_files *files, const struct schema *schema, const char *const *links,
	struct error *err);
/* `at` counts from the tensor's first byte. Any thread. */
int checkpoint_writer_put(const struct checkpoint_writer *writer, size_t tensor, uint64_t at,
	struct span bytes, struct error *err);
/* Syncs the files and renames them into place. */
int checkpoint_writer_commit(struct checkpoint_writer *writer, struct error *err);
void checkpoint_writer_free(struct checkpoint_writer *writer); /* NULL is fine */

#endif
