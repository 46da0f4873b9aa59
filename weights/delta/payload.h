/* The bytes of a delta for each tensor, in one of the formats. They are made block by block in a
 * walk over base and next, wait in a spool, and are written to their places once the layout knows
 * all sizes. One for each delta_encode. */
#ifndef WEIGHTS_DELTA_PAYLOAD_H
#define WEIGHTS_DELTA_PAYLOAD_H

#include "base/arena.h"
#include "base/format/compress_stream.h"
#include "weights/codec/block_code.h"
#include "weights/codec/index_code.h"
#include "weights/delta/delta_encode.h"
#include "weights/delta/tensor_checksum.h"
#include "weights/model/spool.h"
#include "weights/model/tensor_pass.h"

enum { PAYLOAD_PARTS = 2 };

/* The bytes in the spool of one block, or of a whole tensor if the format makes one piece of it. */
struct payload_piece {
	unsigned stream;
	uint64_t at;
	uint64_t bytes;
	uint64_t changed; /* count of changed elements */
	/* TRL only: */
	uint64_t first; /* first changed position in the tensor */
	uint64_t last;
	uint64_t largest_gap; /* between two changed positions of the piece */
};

struct payload_tensor {
	const struct schema_tensor *facts;
	uint64_t changed;
	struct payload_piece *pieces; /* in order */
	uint64_t piece_count;
	char checksum[TENSOR_CHECKSUM_TEXT_BYTES]; /* slime only */
	enum index_form form;                      /* TRL only */
	/* the places of the parts, set by the layout: */
	const struct staged_file *file;
	uint64_t at[PAYLOAD_PARTS];
};

/* One part of a tensor in the delta's file. */
struct payload_part {
	const char *suffix; /* follows the tensor's name */
	enum dtype dtype;
	uint64_t count; /* of elements; every part is a vector */
};

/* The memory and state of one thread. */
struct payload_worker {
	struct block_code_context *code;
	struct block_code_stats stats;
	struct buffer made;
	uint16_t *positions;
	uint8_t *block; /* XOR of one block */
	struct zstd_writer *zstd;
	struct tensor_checksum *checksum;
	/* slime only: */
	bool begun;       /* the frame of this tensor has begun */
	uint64_t at;      /* place of the frame in the spool */
	uint64_t changed; /* elements of this tensor so far */
};

struct payload {
	const struct delta_encode_params *params;
	const struct payload_ops *ops;
	const struct file_ops *files;
	const struct schema *schema;
	struct payload_tensor *tensors;
	struct payload_piece *pieces;
	struct spool *spool; /* PAYLOAD_STREAMS streams for each worker */
	struct payload_worker *workers;
	unsigned worker_count;
};
enum { PAYLOAD_STREAMS = 3 };

struct payload_ops {
	/* one thread walks a tensor from front to back and makes one piece of it */
	bool keeps_tensors;
	int (*block)(struct payload *payload, unsigned worker, const struct tensor_block *block,
		struct error *err);
	/* gives the parts of a changed tensor and returns their count */
	unsigned (*layout)(struct payload *payload, struct payload_tensor *tensor,
		struct payload_part parts[PAYLOAD_PARTS]);
	int (*write)(struct payload *payload, unsigned worker, struct payload_tensor *tensor,
		struct error *err);
};
/* NULL for DELTA_FULL, which is written as it is. */
const struct payload_ops *payload_ops_of(enum delta_format format);

/* All arguments are borrowed. The format is not DELTA_FULL. */
void payload_init(struct payload *payload, const struct delta_encode_params *params,
	const struct file_ops *files, struct staging *staging, unsigned workers);
void payload_release(struct payload *payload);
/* Adds up the pieces. Call it once, after the walk. */
void payload_sum(struct payload *payload, struct delta_stats *stats);

/* For the formats. Adds a piece to the worker's stream. */
int payload_spool(struct payload *payload, unsigned worker, struct payload_piece *piece,
	struct span bytes, struct error *err);
/* Copies a piece to its place in the file. */
int payload_copy(struct payload *payload, unsigned worker, const struct payload_piece *piece,
	const struct staged_file *file, uint64_t at, struct error *err);
/* The piece that the block belongs to. */
struct payload_piece *payload_piece(
	const struct payload *payload, const struct tensor_block *block);

/* TRL only: adds one run's positions, relative to element `start`, to the piece's statistics. */
void payload_trl_note(
	struct payload_piece *piece, uint64_t start, const uint16_t *positions, size_t count);

extern const struct payload_ops payload_blocks; /* ulp-class */
extern const struct payload_ops payload_xor;
extern const struct payload_ops payload_overwrite;
extern const struct payload_ops payload_trl;

#endif
