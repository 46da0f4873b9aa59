/* What a model is made of, without its values: names, dtypes and shapes, in byte order of the
 * names. Also the digests of a checkpoint (docs/FORMAT.md, "Digests"): resharding keeps them.
 * Read-only once built; any thread. */
#ifndef WEIGHTS_MODEL_SCHEMA_H
#define WEIGHTS_MODEL_SCHEMA_H

#include "base/digest/xxh3.h"
#include "weights/model/safetensors.h"

struct schema;

struct schema *schema_new(void);
void schema_free(struct schema *schema);
/* Adds all tensors of one shard; a name given twice is invalid. */
int schema_add(struct schema *schema, const struct safetensors *shard, struct error *err);
/* Sorts; call once after the last add and before anything below. */
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
ptrdiff_t schema_find(const struct schema *schema, struct span name); /* -1 when absent */
uint64_t schema_bytes(const struct schema *schema);                   /* of all tensors */

/* A compact text form (name, 0, dtype, 0, dims joined by x, 0, per tensor) and back: what the
 * catalog keeps of a run. */
void schema_print(const struct schema *schema, struct buffer *out);
struct schema *schema_parse(struct span text, struct error *err);

/* 0 when `other` has exactly these tensors. incomplete_anchor naming the first missing tensor when
 * it only lacks some; schema_mismatch naming the first extra or differing one otherwise. */
int schema_check(const struct schema *schema, const struct schema *other, struct error *err);

/* XXH3-128 over the text form above. */
struct digest128 schema_digest(const struct schema *schema);
/* XXH3-128 over the text form with each tensor's 16-byte digest behind it: `digests` is in schema
 * order. */
struct digest128 schema_checkpoint_digest(
	const struct schema *schema, const struct digest128 *digests);

#endif
