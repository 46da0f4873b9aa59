/* The weights_hash of PULSE: SHA-256 over name, dtype, shape and bytes of every tensor, in the
 * order of the names. docs/FORMAT.md, "PULSE's deltas". */
#ifndef WEIGHTS_DELTA_PULSE_HASH_H
#define WEIGHTS_DELTA_PULSE_HASH_H

#include "base/digest/digest.h"
#include "weights/model/tensor_source.h"

/* Reads all tensors one after another. Fails with unsupported for a dtype without a torch name. */
int pulse_hash_find(struct tensor_source *tensors, uint8_t out[SHA256_BYTES], struct error *err);
/* Fails with digest_mismatch when the tensors have another hash. */
int pulse_hash_check(
	struct tensor_source *tensors, const uint8_t hash[SHA256_BYTES], struct error *err);

#endif
