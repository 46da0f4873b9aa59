/* The checksums that slime's directories carry for each tensor: XXH3-128, BLAKE3 (both of all its
 * bytes, in hex) or Adler-32 (%08x). One thread at a time per stream. */
#ifndef WEIGHTS_DELTA_TENSOR_CHECKSUM_H
#define WEIGHTS_DELTA_TENSOR_CHECKSUM_H

#include "weights/delta/delta.h"

enum { TENSOR_CHECKSUM_TEXT_BYTES = 65 };

struct tensor_checksum;
struct tensor_checksum *tensor_checksum_new(enum delta_checksum kind);
void tensor_checksum_reset(struct tensor_checksum *checksum);
void tensor_checksum_add(struct tensor_checksum *checksum, struct span bytes);
void tensor_checksum_result(
	const struct tensor_checksum *checksum, char out[TENSOR_CHECKSUM_TEXT_BYTES]);
void tensor_checksum_free(struct tensor_checksum *checksum); /* NULL is fine */

#endif
