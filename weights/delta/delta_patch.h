/* Applies deltas to tensors in memory, in place. Blocks are decoded one by one, hashed together
 * with the base that they replace, and written over it, so the work needs a few blocks of memory
 * for each thread. */
#ifndef WEIGHTS_DELTA_DELTA_PATCH_H
#define WEIGHTS_DELTA_DELTA_PATCH_H

#include "weights/delta/delta_changes.h"
#include "weights/delta/delta.h"
#include "weights/model/work_watch.h"

struct delta_patch_params {
	const struct schema *schema;
	/* the first byte of each tensor, in schema order; that of an empty one may be NULL. Nobody
	 * else reads or writes them during the call. */
	uint8_t *const *tensors;
	/* files or folders of any format, at least one, each made from the result of the one
	 * before. Full checkpoints count too. Their files beside the tensors are passed over. */
	const char *const *deltas;
	size_t delta_count;
	/* the digest that the tensors must have before; NULL: what the first delta says, if it
	 * says one */
	const struct digest128 *expected_base;
	/* the digest that they must have afterwards, whatever the last delta says; NULL: any */
	const struct digest128 *expected_result;
	/* proven digests of the tensors before, in schema order, which halve the hashing; NULL:
	 * computed here */
	const struct digest128 *base_tensor_digests;
	/* the caller's array for the digests afterwards, in schema order; NULL: not wanted */
	struct digest128 *result_tensor_digests;
	/* gets the elements whose bytes change; it was made for `schema` and is empty; NULL: not
	 * wanted */
	struct delta_changes *changes;
	/* Everything is proven in a pass of its own before the first byte is written, so a failure
	 * leaves the tensors as they were. Otherwise one pass proves and writes. */
	bool proves_first;
	unsigned threads; /* 0: one per core */
	/* hears of each byte once; with proves_first it cannot end the work once the proof is made.
	 * NULL: none */
	struct work_watch *watch;
};
/* Fails as delta_apply does, and with unsupported when two tensors overlap in memory. After a
 * failure *out_spoiled tells whether any tensor was written to; then the tensors are worth nothing,
 * and digest_mismatch or invalid may stand where wrong_base would, because the base is lost. After
 * a success it is false. `out_stats` is that of delta_apply, with the tensors' bytes as
 * `full_bytes`. */
int delta_patch(const struct delta_patch_params *params, struct delta_stats *out_stats,
	bool *out_spoiled, struct error *err);

#endif
