/* A checkpoint and deltas upon it, opened as one: level 0 is the checkpoint, level k what the k-th
 * delta makes of level k - 1. Applying, folding, transcoding and proving are walks over the levels'
 * sources. Read-only once open; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_STACK_H
#define WEIGHTS_DELTA_DELTA_STACK_H

#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct delta_stack;

/* `base` and `base_files` are level 0, borrowed. `paths` are files or folders, in order. wrong_base
 * when a delta says that it follows another one than the one before it (by digest, else by step),
 * naming both; else as delta_reader_open, delta_source_new and model_files_after, naming the
 * delta's path and step. */
struct delta_stack *delta_stack_open(struct tensor_source *base,
	const struct model_files *base_files, const char *const *paths, size_t count,
	struct error *err);
void delta_stack_close(struct delta_stack *stack); /* NULL is fine */

size_t delta_stack_levels(const struct delta_stack *stack); /* count + 1 */
struct tensor_source *delta_stack_source(const struct delta_stack *stack, size_t level);
const struct model_files *delta_stack_files(const struct delta_stack *stack, size_t level);
/* from level 1 on */
const struct delta_reader *delta_stack_reader(const struct delta_stack *stack, size_t level);
/* The digest that level `level` must have, as the deltas beside it say; false when none says. */
bool delta_stack_digest(
	const struct delta_stack *stack, size_t level, struct digest128 *out_digest);
/* digest_mismatch when the topmost delta is PULSE's and its result does not have the hash that it
 * says: decodes all tensors, one behind the other. Every other delta is proven otherwise. */
int delta_stack_prove(const struct delta_stack *stack, struct error *err);
/* Puts "the delta 'PATH' (step N)" before the text, unless that names the path already. `reader`
 * NULL: its step is not known. Always -1. */
int delta_stack_blame(const struct delta_reader *reader, const char *path, struct error *err);
/* For who has failed on the way: when the delta at `path` names another base than this one, puts
 * wrong_base with both digests in the place of what a wrong base explains, because any other
 * complaint would only mislead. `base_digests`: proven ones of its tensors; NULL: computed here.
 * Always -1. */
int delta_stack_explain(const char *path, struct tensor_source *base,
	const struct digest128 *base_digests, unsigned threads, struct error *err);

#endif
