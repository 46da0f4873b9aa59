/* Checkpoints of a few tensors that change a little from step to step, as safetensors files, and
 * derived versions made of them. */
#ifndef TESTS_UNIT_STORAGE_DERIVED_FIXTURE_H
#define TESTS_UNIT_STORAGE_DERIVED_FIXTURE_H

#include "storage/versions/derived.h"
#include "tests/unit/storage/store_fixture.h"

enum { DERIVED_TENSORS = 5 };

struct derived_checkpoint {
	struct buffer bytes; /* the file */
	struct derived_tensor {
		enum dtype dtype;
		uint64_t begin; /* in the file */
		uint64_t end;
	} tensors[DERIVED_TENSORS];
	uint64_t header; /* bytes before the tensors */
};
/* Step 0 has `large` BF16 elements in its largest tensor; each further step changes about one
 * element in a hundred of all tensors but one. */
void derived_checkpoint_make(struct derived_checkpoint *out, size_t large, unsigned step);
void derived_checkpoint_release(struct derived_checkpoint *checkpoint);

/* Makes the recipe of `next` over the version `base`, whose content is `base_bytes`. Stores the
 * blocks as a hidden version. */
struct derived_recipe *derived_fixture_recipe(struct store_fixture *fixture,
	const struct derived_checkpoint *base_bytes, const struct object *base,
	const struct derived_checkpoint *next, bool in_pieces);
/* Puts a checkpoint. The object's texts last as long as the fixture. */
struct object derived_fixture_put(struct store_fixture *fixture, const char *bucket,
	const char *key, const struct derived_checkpoint *checkpoint);
/* Puts it, then swaps it for a recipe over `base`. */
struct object derived_fixture_put_swapped(struct store_fixture *fixture, const char *bucket,
	const char *key, const struct derived_checkpoint *base_bytes, const struct object *base,
	const struct derived_checkpoint *next);

/* Makes the version readable as records (storage/xet/made_file.h), and waits for that. */
int derived_fixture_make(struct store *store, int64_t version, struct error *err);
/* False when there is no such made file. Asserts that it is whole. */
bool derived_fixture_made_holds(
	struct store_fixture *fixture, const struct chunk_id *file, struct span bytes);

/* Runs derived_swap as a change of its own, and waits for it. */
int derived_fixture_swap(struct store *store, int64_t version, const struct derived_recipe *recipe,
	const struct digest128 *digest, struct error *err);

#endif
