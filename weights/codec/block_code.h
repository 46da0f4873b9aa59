/* One block of the `ulp-class` encoding. It turns up to 2^20 consecutive elements of a tensor into
 * their new values, given the old ones. Each block can be found, skipped, decoded and proven alone.
 * docs/FORMAT.md, "ulp-class blocks", is the source of the layout. The code path (portable, AVX2 or
 * AVX-512) is chosen once by the processor; bytes and results are the same on all. A context
 * belongs to one thread and keeps no state from one block to the next. */
#ifndef WEIGHTS_CODEC_BLOCK_CODE_H
#define WEIGHTS_CODEC_BLOCK_CODE_H

#include "base/buffer.h"
#include "base/digest/xxh3.h"
#include "base/error.h"
#include "weights/codec/dtype.h"

enum {
	BLOCK_CODE_ELEMENTS = 1 << 20,
	BLOCK_CODE_HEADER_MAX = 60 /* no header is longer */
};

struct block_code_context;
struct block_code_context *block_code_context_new(void);
void block_code_context_free(struct block_code_context *context);

/* Bytes of a full block of this dtype. Tensors of sub-byte dtypes are counted in bytes: 2^20. The
 * last block of a tensor may be shorter. */
uint64_t block_code_bytes(enum dtype dtype);

/* The facts that a block's header gives before the block is decoded. */
struct block_code_facts {
	uint8_t mode; /* numbers are in FORMAT.md */
	uint64_t result_bytes;
	/* elements that differ from the base; all elements of a block that is stored whole */
	uint64_t changed;
	size_t header_bytes;
	/* from the header to the next block; at most block_code_payload_max() */
	uint64_t payload_bytes;
	uint64_t result_hash; /* XXH3-64 of the result's bytes */
};
size_t block_code_payload_max(void);

/* Counts over many blocks, for inspect --stats. `ulp_steps` counts steps of 1, 2, 3, 4, and 5 or
 * more ulps, up or down. */
struct block_code_stats {
	uint64_t elements;
	uint64_t changed;
	uint64_t ulp_steps[5];
};

/* Appends to `out` the block that turns `base` into `next`, in the mode that gives the smallest
 * block. Both have the same length, at most block_code_bytes. `stats` may be NULL. Only `out` can
 * fail, as buffers do. */
void block_code_encode(struct block_code_context *context, enum dtype dtype, struct span base,
	struct span next, struct buffer *out, struct block_code_stats *stats);
/* Reads the header at the start of `bytes`. `expected_bytes` is the size of this block's result,
 * which the tensor's size gives. A header that contradicts it or breaks the layout is invalid. */
int block_code_parse(struct span bytes, enum dtype dtype, uint64_t expected_bytes,
	struct block_code_facts *out_facts, struct error *err);
/* `block` is header and payload; `base` and `into` have the size that block_code_parse expects of
 * the result. These two must not overlap, or must be the same bytes: then the base turns into the
 * result in place, and a watched base stream gets no base. Fails with digest_mismatch when the
 * result has another hash, mostly because of a wrong base, and with invalid for a malformed header
 * or payload; `into` is then garbage. Never reads or writes elsewhere, whatever the block's bytes
 * are. */
int block_code_decode(struct block_code_context *context, enum dtype dtype, struct span block,
	struct span base, uint8_t *into, struct error *err);
/* The same without a check of the hash: for a result that is the base of a block whose own result
 * is proven. */
int block_code_decode_unproven(struct block_code_context *context, enum dtype dtype,
	struct span block, struct span base, uint8_t *into, struct error *err);
/* Adds to `stats` what differs between a base and its result. */
void block_code_count(
	enum dtype dtype, struct span base, struct span next, struct block_code_stats *stats);

/* Gives streams to which each later encode or decode adds its base and its result while they are in
 * the cache. So digests of whole tensors cost less than another pass over them. NULL for no stream.
 * The bytes that a failed decode adds are undefined. */
void block_code_context_watch(
	struct block_code_context *context, struct xxh3_stream *base, struct xxh3_stream *result);

/* Makes the context use this code path, for tests and benches. BLOCK_CODE_BEST is the fastest path
 * of this processor. False when the processor lacks the path. */
enum block_code_path { BLOCK_CODE_BEST, BLOCK_CODE_PORTABLE, BLOCK_CODE_AVX2, BLOCK_CODE_AVX512 };
bool block_code_context_use(struct block_code_context *context, enum block_code_path path);

#endif
