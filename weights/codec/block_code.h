/* One block of the `ulp-class` encoding: how up to 2^20 consecutive elements of a tensor become
 * others, given the old ones. Each block stands for itself: it can be found, skipped, decoded and
 * proven alone. docs/FORMAT.md, "ulp-class blocks", is the source of the layout. Whatever the
 * processor offers (portable, AVX2, AVX-512, chosen once), the bytes and the results are the same.
 * A context is one thread's; no state is kept from one block to the next. */
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

/* Bytes of a full block of this dtype (of sub-byte dtypes, whose tensors are counted in bytes:
 * 2^20). The last block of a tensor is shorter. */
uint64_t block_code_bytes(enum dtype dtype);

/* What a block says of itself before it is decoded. */
struct block_code_facts {
	uint8_t mode; /* numbers are in FORMAT.md */
	uint64_t result_bytes;
	/* elements that differ from the base; of a block stored whole: all */
	uint64_t changed;
	size_t header_bytes;
	/* behind the header, up to the next block; at most block_code_payload_max() */
	uint64_t payload_bytes;
	uint64_t result_hash; /* XXH3-64 of the result's bytes */
};
size_t block_code_payload_max(void);

/* What happened, added up over blocks: for inspect --stats. `ulp_steps` counts |ulp| of 1, 2, 3, 4,
 * 5 and more. */
struct block_code_stats {
	uint64_t elements;
	uint64_t changed;
	uint64_t ulp_steps[5];
};

/* Appends the block that makes `next` out of `base` (of equal length, at most block_code_bytes) to
 * `out`, by whichever mode is smallest. `stats` may be NULL. Nothing can fail but memory. */
void block_code_encode(struct block_code_context *context, enum dtype dtype, struct span base,
	struct span next, struct buffer *out, struct block_code_stats *stats);
/* Reads the header at the start of `bytes`. `expected_bytes`: of this block's result, which the
 * tensor's size gives; a block that says otherwise is invalid, as is all that breaks the layout. */
int block_code_parse(struct span bytes, enum dtype dtype, uint64_t expected_bytes,
	struct block_code_facts *out_facts, struct error *err);
/* `block` is header and payload, `base` and `into` have result_bytes; they do not overlap, or are
 * the same bytes: the base becomes the result where it lies (who watches then sees no base).
 * digest_mismatch when the result has another hash (a wrong base, mostly), invalid for a malformed
 * payload. Reads and writes nowhere else, whatever the bytes are. On failure `into` is garbage. */
int block_code_decode(struct block_code_context *context, enum dtype dtype, struct span block,
	const struct block_code_facts *facts, struct span base, uint8_t *into, struct error *err);
/* The same without looking at the hash: for a result that is itself the base of a block which is
 * proven. */
int block_code_decode_unproven(struct block_code_context *context, enum dtype dtype,
	struct span block, const struct block_code_facts *facts, struct span base, uint8_t *into,
	struct error *err);
/* What a block changed, once base and result are both at hand. */
void block_code_count(
	enum dtype dtype, struct span base, struct span next, struct block_code_stats *stats);

/* Streams that each block encoded or decoded from now on adds its base and its result to, in
 * passing, while they are in the cache: digests of whole tensors at less than the cost of another
 * pass. NULL for none. What a failed decode adds is undefined. */
void block_code_context_watch(
	struct block_code_context *context, struct xxh3_stream *base, struct xxh3_stream *result);

/* For tests and benches: makes the context use this path; BLOCK_CODE_BEST is what the processor
 * offers. False when it does not. */
enum block_code_path { BLOCK_CODE_BEST, BLOCK_CODE_PORTABLE, BLOCK_CODE_AVX2, BLOCK_CODE_AVX512 };
bool block_code_context_use(struct block_code_context *context, enum block_code_path path);

#endif
