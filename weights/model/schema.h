/* The tensors of a model without their values: names, dtypes and shapes, in byte order of the
 * names. Also the digests of a checkpoint (docs/FORMAT.md, "Digests"), which stay the same when the
 * checkpoint gets other shards. Read-only once finished; any thread. */
#ifndef WEIGHTS_MODEL_SCHEMA_H
#define WEIGHTS_MODEL_SCHEMA_H

#include "base/digest/xxh3.h"
#include "weights/model/safetensors.h"

struct schema;

struct schema *schema_new(void);
void schema_free(struct schema *schema);
/* Adds all tensors of one shard. Fails with invalid when a name is given twice. */
int schema_add(struct schema *schema, const struct safetensors *shard, struct error *err);
/* Ends the adding. Call it once, before any function below. */
void schema_finish(struct schema *schema);

struct schema_tensor {
	struct span name;
	enum dtype dtype;
	unsigned rank;
	const uint64_t *shape;
	uint64_t bytes;
};
size_t schema_count(const struct schema *schema);
const struct schema_tensor *schema_tensor(const struct schema *schema, size_t index);
/* What changes of a tensor are counted in: its elements, or its bytes when the dtype is below a
 * byte. */
uint64_t schema_tensor_units(const struct schema_tensor *tensor);
/* Makes a finished schema of `count` tensors in any order; names and shapes are copied. Fails with
 * invalid, and the tensor's name, for a name that is not UTF-8, that safetensors files reserve or
 * that is given twice, and for a shape that overflows, does not fill whole bytes or has not `bytes`
 * bytes. `dtype` is one of the enum. */
struct schema *schema_of_tensors(
	const struct schema_tensor *tensors, size_t count, struct error *err);
ptrdiff_t schema_find(const struct schema *schema, struct span name); /* -1 when absent */
uint64_t schema_bytes(const struct schema *schema);                   /* of all tensors */

/* Prints and parses the text form that the catalog keeps for a run. For each tensor: the name, 0,
 * the dtype, 0, the dimensions joined by x, 0. */
void schema_print(const struct schema *schema, struct buffer *out);
struct schema *schema_parse(struct span text, struct error *err);

/* Returns 0 when `other` has exactly these tensors. When `other` only lacks some, fails with
 * incomplete_anchor and the name of the first missing tensor. Otherwise fails with schema_mismatch
 * and the name of the first tensor that is extra or different. */
int schema_check(const struct schema *schema, const struct schema *other, struct error *err);

/* XXH3-128 over the text form above. */
struct digest128 schema_digest(const struct schema *schema);
/* XXH3-128 over the text form with each tensor's 16-byte digest behind the tensor. `digests` is in
 * schema order. */
struct digest128 schema_checkpoint_digest(
	const struct schema *schema, const struct digest128 *digests);

#endif
