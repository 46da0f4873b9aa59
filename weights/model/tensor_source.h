/* The tensors of one checkpoint, readable in order block by block, wherever they lie: in mapped
 * files (checkpoint_source), in objects of the store, or as base and delta decoded on the way
 * (delta_source). What encodes, applies, proves or transcodes works on sources alone, in memory
 * that does not grow with the tensors. A source is read-only and serves any number of cursors on
 * any threads; a cursor is one thread's. */
#ifndef WEIGHTS_MODEL_TENSOR_SOURCE_H
#define WEIGHTS_MODEL_TENSOR_SOURCE_H

#include "weights/model/schema.h"

struct tensor_source;
struct tensor_cursor;

struct tensor_source_ops {
	struct tensor_cursor *(*open)(
		struct tensor_source *source, size_t tensor, struct error *err);
	int (*next)(struct tensor_cursor *cursor, struct span *out, struct error *err);
	void (*close_cursor)(struct tensor_cursor *cursor);
	void (*free)(struct tensor_source *source);
	/* These two may be NULL. `seek` moves an open cursor to block `block` of any tensor and
	 * keeps its memory; `block` is above 0 only where `splits` says that beginning in the
	 * middle of this tensor costs little. */
	int (*seek)(struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
	bool (*splits)(const struct tensor_source *source, size_t tensor);
};
/* First member of each implementation. */
struct tensor_source {
	const struct tensor_source_ops *ops;
	const struct schema *schema; /* borrowed or owned by the implementation */
};
struct tensor_cursor {
	struct tensor_source *source;
};

/* From the first byte of tensor `tensor` of the schema. NULL with the error set. */
struct tensor_cursor *tensor_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
/* 1 and the next block: block_code_bytes of the dtype, the last one shorter; it lives until the
 * next call. 0: the tensor's end. -1: an error, after which only closing is allowed. */
int tensor_cursor_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
void tensor_cursor_close(struct tensor_cursor *cursor); /* NULL is fine */
void tensor_source_free(struct tensor_source *source);  /* NULL is fine */

/* *cursor is NULL or one of this source: from now on it reads from block `block` of `tensor`. For
 * who reads many tensors: a cursor keeps its memory where the source can seek. -1: *cursor is
 * NULL. */
int tensor_source_move(struct tensor_source *source, struct tensor_cursor **cursor, size_t tensor,
	uint64_t block, struct error *err);
/* Whether several threads gain by reading parts of this tensor, beginning at any block. */
bool tensor_source_splits(const struct tensor_source *source, size_t tensor);
uint64_t tensor_source_block_bytes(const struct tensor_source *source, size_t tensor);
/* 0 of an empty tensor */
uint64_t tensor_source_blocks(const struct tensor_source *source, size_t tensor);

/* Digests of all tensors in schema order (the caller's array), on up to `threads` threads (0: one
 * per core). */
int tensor_source_digests(struct tensor_source *source, unsigned threads,
	struct digest128 *out_digests, struct error *err);

#endif
