/* What a delta says of each tensor, in one of the formats: taken block by block in a walk over base
 * and next, laid out when all of it is known, then written where the layout puts it. One per
 * delta_encode. */
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

/* What waits in the spool of one block, or of a whole tensor where the format makes one piece of
 * it. */
struct payload_piece {
	unsigned stream;
	uint64_t at;
	uint64_t bytes;
	uint64_t changed; /* elements */
	/* TRL: */
	uint64_t first; /* changed position in the tensor */
	uint64_t last;
	uint64_t largest_gap; /* between two of the piece */
};

struct payload_tensor {
	const struct schema_tensor *facts;
	uint64_t changed;
	struct payload_piece *pieces; /* in order */
	uint64_t piece_count;
	char checksum[TENSOR_CHECKSUM_TEXT_BYTES]; /* slime */
	enum index_form form;                      /* TRL */
	/* Where the parts go, set by who lays out: */
	const struct staged_file *file;
	uint64_t at[PAYLOAD_PARTS];
};

/* One part of a tensor in the delta's file. */
struct payload_part {
	const char *suffix; /* behind the tensor's name */
	enum dtype dtype;
	uint64_t count; /* of elements: all are vectors */
};

/* What each thread keeps to itself. */
struct payload_worker {
	struct block_code_context *code;
	struct block_code_stats stats;
	struct buffer made;
	uint16_t *positions;
	uint8_t *block; /* XOR of one block */
	struct zstd_writer *zstd;
	struct tensor_checksum *checksum;
	bool begun;  /* slime: this tensor's frame, or its lists */
	uint64_t at; /* where they begin in the spool */
	uint64_t changed;
};

struct payload {
	const struct delta_encode_params *params;
	const struct payload_ops *ops;
	const struct file_ops *files;
	const struct schema *schema;
	struct payload_tensor *tensors;
	struct payload_piece *pieces;
	struct spool *spool; /* PAYLOAD_STREAMS per worker */
	struct payload_worker *workers;
	unsigned worker_count;
};
enum { PAYLOAD_STREAMS = 3 };

struct payload_ops {
	bool keeps_tensors; /* one thread per tensor, front to back, and one piece of it */
	int (*block)(struct payload *payload, unsigned worker, const struct tensor_block *block,
		struct error *err);
	/* Gives the parts of a changed tensor; how many. */
	unsigned (*layout)(struct payload *payload, struct payload_tensor *tensor,
		struct payload_part parts[PAYLOAD_PARTS]);
	int (*write)(struct payload *payload, unsigned worker, struct payload_tensor *tensor,
		struct error *err);
};
/* NULL: DELTA_FULL, which is written as it is. */
const struct payload_ops *payload_ops_of(enum delta_format format);

/* Everything is borrowed. */
void payload_init(struct payload *payload, const struct delta_encode_params *params,
	const struct file_ops *files, struct staging *staging, unsigned workers);
void payload_release(struct payload *payload);
/* When the walk has ended: adds up the pieces. */
void payload_sum(struct payload *payload, struct delta_stats *stats);

/* For the formats: adds to the worker's stream, and copies a piece to where it belongs. */
int payload_spool(struct payload *payload, unsigned worker, struct payload_piece *piece,
	struct span bytes, struct error *err);
int payload_copy(struct payload *payload, unsigned worker, const struct payload_piece *piece,
	const struct staged_file *file, uint64_t at, struct error *err);
struct payload_piece *payload_piece(
	const struct payload *payload, const struct tensor_block *block);

/* TRL: takes note of one run's positions, which begin at element `start`. */
void payload_trl_note(
	struct payload_piece *piece, uint64_t start, const uint16_t *positions, size_t count);

extern const struct payload_ops payload_blocks; /* ulp-class */
extern const struct payload_ops payload_xor;
extern const struct payload_ops payload_overwrite;
extern const struct payload_ops payload_trl;

#endif
