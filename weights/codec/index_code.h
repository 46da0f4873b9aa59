/* The index arrays of TRL's and PULSE's deltas: which elements of a tensor changed, as gaps of 16
 * or 32 bits, as absolute positions, or as steps along rows and columns. Both ways work block by
 * block on positions within a block, as element_scan gives them; PULSE's are read alone. One
 * thread at a time per struct. */
#ifndef WEIGHTS_CODEC_INDEX_CODE_H
#define WEIGHTS_CODEC_INDEX_CODE_H

#include "base/error.h"
#include "base/span.h"

enum index_form {
	INDEX_GAP16,
	INDEX_GAP32,
	INDEX_ABSOLUTE32,
	INDEX_STEP32, /* the first position, then how far each lies behind the one before */
	INDEX_GRID /* all rows, then all columns, in steps: a column counts from 0 in a new row */
};

struct index_code {
	enum index_form form;
	uint64_t columns;   /* of a grid: of a row, 1 or more */
	unsigned row_bytes; /* of a grid: 1, 2 or 4; of four bytes, signed ones */
	unsigned col_bytes;
};

/* Tensors from this size on are beyond a signed 32-bit index. */
#define INDEX_ELEMENTS_MAX (UINT64_C(1) << 31)

size_t index_form_bytes(enum index_form form);          /* not of a grid */
size_t index_code_bytes(const struct index_code *code); /* of one position */

struct index_encoder {
	enum index_form form;
	uint64_t next; /* the smallest position that may follow */
};
void index_encoder_init(struct index_encoder *encoder, enum index_form form);
/* Codes `count` ascending positions relative to `block_start` into `out`; gives the bytes
 * written. */
size_t index_encoder_add(struct index_encoder *encoder, uint64_t block_start,
	const uint16_t *positions, size_t count, uint8_t *out);

struct index_decoder {
	struct index_code code;
	size_t step; /* bytes of one position */
	struct span data;
	uint64_t elements; /* of the tensor */
	uint64_t next;     /* the smallest position that may follow */
	uint64_t pending;  /* decoded, not yet given */
	size_t taken;      /* bytes of data decoded */
	/* Of a grid: */
	size_t number; /* of positions decoded */
	size_t count;  /* of all */
	uint64_t rows; /* of the tensor */
	uint64_t row;  /* where the last position lies */
	uint64_t column;
	bool has_pending;
};
/* `data` is a whole number of indexes; of a grid, `elements` is a whole number of rows. */
void index_decoder_init(struct index_decoder *decoder, const struct index_code *code,
	struct span data, uint64_t elements);
/* Gives the positions in [block_start, block_start + count) relative to block_start; `positions`
 * has room for `count`, and count is at most 65536. Blocks must be asked for from front to back.
 * Invalid when a position is not above the one before or not below `elements`. */
int index_decoder_take(struct index_decoder *decoder, uint64_t block_start, size_t count,
	uint16_t *positions, size_t *out_found, struct error *err);

#endif
