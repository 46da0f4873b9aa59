/* A checkpoint and the deltas upon it, opened as one. Level 0 is the checkpoint; level k is the
 * result of the k-th delta on level k - 1. Apply, fold, transcode and prove walk over the levels'
 * sources. Read-only once open; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_STACK_H
#define WEIGHTS_DELTA_DELTA_STACK_H

#include "weights/delta/model_files.h"
#include "weights/model/tensor_source.h"

struct delta_stack;

/* `base` and `base_files` are level 0 and borrowed. NULL for `base_files` opens a stack of tensors
 * alone: nobody looks at the files of the result that a delta describes. `paths` are files or
 * folders, in order. Fails with wrong_base and both names when a delta does not follow the delta
 * before it, by digest or else by step. Otherwise it fails as delta_reader_open, delta_source_new
 * and model_files_after do, and the text names the delta's path and step. */
struct delta_stack *delta_stack_open(struct tensor_source *base,
	const struct model_files *base_files, const char *const *paths, size_t count,
	struct error *err);
void delta_stack_close(struct delta_stack *stack); /* NULL is fine */

size_t delta_stack_levels(const struct delta_stack *stack); /* count + 1 */
struct tensor_source *delta_stack_source(const struct delta_stack *stack, size_t level);
/* NULL in a stack of tensors alone. */
const struct model_files *delta_stack_files(const struct delta_stack *stack, size_t level);
/* `level` is 1 or more. */
const struct delta_reader *delta_stack_reader(const struct delta_stack *stack, size_t level);
/* Whether a delta of the stack has changes for this tensor; otherwise its bytes are the base's. */
bool delta_stack_changes(const struct delta_stack *stack, struct span tensor);
/* Gives the digest that level `level` must have. False when neither the delta below nor the one
 * above names it. */
bool delta_stack_digest(
	const struct delta_stack *stack, size_t level, struct digest128 *out_digest);
/* Counts what the last delta changes, as delta_source_count does. Only with a delta. */
void delta_stack_count(struct delta_stack *stack, uint64_t *changed);
/* Proves the hash of a PULSE delta at the top: decodes all tensors one after another, and fails
 * with digest_mismatch when the result has another hash. Other deltas are proven elsewhere. */
int delta_stack_prove(const struct delta_stack *stack, struct error *err);
/* Puts "the delta 'PATH' (step N)" before the text, unless the text names the path already.
 * `reader` is NULL when the step is not known. Returns -1. */
int delta_stack_blame(const struct delta_reader *reader, const char *path, struct error *err);
/* Call it after a failure. If the delta at `path` names another base than this one, and a wrong
 * base may explain the error, wrong_base with both digests takes the error's place, because the
 * other message would mislead. `base_digests` are proven digests of the base's tensors; NULL:
 * computed here. Returns -1. */
int delta_stack_explain(const char *path, struct tensor_source *base,
	const struct digest128 *base_digests, unsigned threads, struct error *err);

#endif
