/* The elements of tensors that changed, as positions. A few of them take two bytes each, many of
 * them one bit for each element, changed or not. Positions count elements; those of dtypes below a
 * byte are counted in bytes, as blocks are. */
#ifndef WEIGHTS_DELTA_DELTA_CHANGES_H
#define WEIGHTS_DELTA_DELTA_CHANGES_H

#include "weights/delta/delta_reader.h"
#include "weights/model/tensor_pass.h"

struct delta_changes;
/* Empty. `schema` is borrowed. */
struct delta_changes *delta_changes_new(const struct schema *schema);
void delta_changes_free(struct delta_changes *changes); /* NULL is fine */
const struct schema *delta_changes_schema(const struct delta_changes *changes);
/* Makes it, or one tensor of it, empty again. */
void delta_changes_reset(struct delta_changes *changes);
void delta_changes_reset_tensor(struct delta_changes *changes, size_t tensor);

/* Adds the elements whose bytes differ between base and next of a block. Any number of threads at
 * once, each block at most once. */
void delta_changes_add(struct delta_changes *changes, const struct tensor_block *block);
/* The same for a whole tensor of two sources of the schema. Fails as they do. */
int delta_changes_compare(struct delta_changes *changes, struct tensor_source *base,
	struct tensor_source *next, size_t tensor, struct error *err);
/* Adds elements of [DELTA_CHANGES_RUN * run, DELTA_CHANGES_RUN * (run + 1)) of a tensor: `count`
 * rising positions from the start of the run. The same threads; each run at most once. */
enum { DELTA_CHANGES_RUN = 65536 };
void delta_changes_put(struct delta_changes *changes, size_t tensor, uint64_t run,
	const uint16_t *positions, size_t count);

/* These two must not run beside those above. */
uint64_t delta_changes_count(const struct delta_changes *changes, size_t tensor);
/* Writes the rising positions to the caller's array, which has room for the count. */
void delta_changes_positions(
	const struct delta_changes *changes, size_t tensor, uint64_t *out_positions);

/* Adds the elements of one tensor that a delta changes. `base` is what the delta was made from, or
 * at least its tensor; then the elements are those whose bytes differ. Without a base (NULL) they
 * are those that the delta names, which a few formats allow: TRL's and PULSE's positions, slime's
 * and SkyRL's frames. For the others it fails with unsupported: an ulp-class delta counts only the
 * base's elements of one size, and a tensor that is stored whole does not say what changed. Fails
 * as delta_source does too; a part of the elements may then have been added. */
int delta_changes_read(struct delta_changes *changes, const struct delta_reader *reader,
	struct tensor_source *base, size_t tensor, struct error *err);

#endif
