/* The index arrays of TRL's and PULSE's deltas. They say which elements of a tensor changed: as
 * gaps of 16 or 32 bits, as absolute positions, or as steps along rows and columns. Encoder and
 * decoder work block by block on positions within a block, as element_scan gives them. PULSE's
 * forms are only decoded. One thread at a time per struct. */
#ifndef WEIGHTS_CODEC_INDEX_CODE_H
#define WEIGHTS_CODEC_INDEX_CODE_H

#include "base/error.h"
#include "base/span.h"

enum index_form {
	INDEX_GAP16,
	INDEX_GAP32,
	INDEX_ABSOLUTE32,
	INDEX_STEP32, /* the first position, then the distance of each from the one before */
	/* all rows, then all columns, as distances; columns count from 0 in a new row */
	INDEX_GRID
};

struct index_code {
	enum index_form form;
	/* grid only: */
	uint64_t columns;   /* columns of a row, 1 or more */
	unsigned row_bytes; /* 1, 2 or 4; numbers of four bytes are signed */
	unsigned col_bytes; /* the same */
};

/* Tensors of this size or larger exceed a signed 32-bit index. */
#define INDEX_ELEMENTS_MAX (UINT64_C(1) << 31)

/* Bytes of one position. The form is not a grid. */
size_t index_form_bytes(enum index_form form);
/* Bytes of one position, also of a grid. */
size_t index_code_bytes(const struct index_code *code);

struct index_encoder {
	enum index_form form;
	uint64_t next; /* the smallest position that may follow */
};
/* `form` is one of TRL's: gaps or absolute positions. */
void index_encoder_init(struct index_encoder *encoder, enum index_form form);
/* Encodes `count` ascending positions relative to `block_start` into `out` and returns the count of
 * bytes written. */
size_t index_encoder_add(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out);

struct index_decoder {
	struct index_code code;
	size_t step; /* bytes of one position */
	struct span data;
	uint64_t elements; /* of the tensor */
	uint64_t next;     /* the smallest position that may follow */
	uint64_t pending;  /* decoded and not yet given, if has_pending */
	size_t taken;      /* bytes of data decoded */
	/* grid only: */
	size_t number; /* positions decoded */
	size_t count;  /* all positions */
	uint64_t rows; /* of the tensor */
	uint64_t row;  /* of the last position */
	uint64_t column;
	bool has_pending;
};
/* `data` is a whole number of indexes. `elements` is a whole number of rows, if it is a grid. */
void index_decoder_init(struct index_decoder *decoder, const struct index_code *code,
	struct span data, uint64_t elements);
/* Gives the positions in [block_start, block_start + count) relative to block_start. `count` is at
 * most 65536; `positions` has room for it. Callers must go through the blocks from front to back.
 * Fails with invalid when a position is not above the one before or not below `elements`. */
int index_decoder_take(struct index_decoder *decoder, uint64_t block_start, size_t count,
	uint16_t *positions, size_t *out_found, struct error *err);

#endif
