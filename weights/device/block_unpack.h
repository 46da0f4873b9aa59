/* Turns blocks of an `ulp-class` delta into what the kernels of block_kernels.cu apply. Bit streams
 * cross to the device as they are; payloads with zstd frames are decoded here, to the result, to
 * the XOR of base and result, or to pairs of position and XOR. No base is needed for that. */
#ifndef WEIGHTS_DEVICE_BLOCK_UNPACK_H
#define WEIGHTS_DEVICE_BLOCK_UNPACK_H

#include "weights/codec/block_code.h"
#include "weights/device/device_block.h"

/* What a block takes, as its header says. */
struct block_unpack_size {
	uint64_t block_bytes;  /* header and payload */
	uint64_t upload_bytes; /* a multiple of DEVICE_ALIGN */
	uint32_t list_changes; /* places in the lists of the device */
	bool is_decoded;       /* by the host, not by the device */
};

/* `bytes` begins with a block whose result has `result_bytes`: whole words, at least one and at
 * most a block. Fails with invalid when the header is malformed or the payload is cut off. */
int block_unpack_measure(struct span bytes, enum dtype dtype, uint64_t result_bytes,
	struct block_unpack_size *out_size, struct error *err);
struct block_unpack_input {
	enum dtype dtype;
	struct span block; /* header and payload */
	uint64_t result_bytes;
	uint8_t *upload; /* has the upload_bytes of block_unpack_measure */
};
/* Fills the upload, with zeros behind what is shorter, and `*out_block`, but for `words`, `payload`
 * and `changes_at`, which the caller knows. Fails with invalid when the payload is malformed; what
 * only the device decodes is not looked at. */
int block_unpack(struct block_code_context *context, const struct block_unpack_input *input,
	struct device_block *out_block, struct error *err);

#endif
