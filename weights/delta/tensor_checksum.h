/* The checksums of a tensor's bytes in slime's directories: XXH3-128 or BLAKE3 in hex, or Adler-32
 * as %08x. One thread at a time per struct. */
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
