/* The tensors of one checkpoint, read in order and block by block. They may lie in mapped files
 * (checkpoint_source), in objects of the store, or be decoded from a base and a delta
 * (delta_source). Code that encodes, applies, proves or transcodes works only on sources, so its
 * memory does not grow with the tensors. A source is read-only and serves any number of cursors on
 * any threads; a cursor belongs to one thread. */
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
	 * keeps its memory. `block` is above 0 only if `splits` says that a start in the middle of
	 * this tensor costs little. */
	int (*seek)(struct tensor_cursor *cursor, size_t tensor, uint64_t block, struct error *err);
	bool (*splits)(const struct tensor_source *source, size_t tensor);
};
/* The first member of each implementation's own struct. */
struct tensor_source {
	const struct tensor_source_ops *ops;
	const struct schema *schema; /* borrowed or owned by the implementation */
};
struct tensor_cursor {
	struct tensor_source *source;
};

/* Opens a cursor at the first byte of tensor `tensor` of the schema. NULL with the error set. */
struct tensor_cursor *tensor_source_open(
	struct tensor_source *source, size_t tensor, struct error *err);
/* Returns 1 with the next block, 0 at the tensor's end, or -1; after -1 the cursor may only be
 * closed. A block has block_code_bytes of the dtype, the last one may have less. It is valid until
 * the next call. */
int tensor_cursor_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
void tensor_cursor_close(struct tensor_cursor *cursor); /* NULL is fine */
void tensor_source_free(struct tensor_source *source);  /* NULL is fine */

/* Makes *cursor read from block `block` of `tensor`. *cursor is NULL or a cursor of this source. A
 * caller that reads many tensors saves memory work this way, because a cursor keeps its memory if
 * the source can seek. After -1 *cursor is NULL. */
int tensor_source_move(struct tensor_source *source, struct tensor_cursor **cursor, size_t tensor,
	uint64_t block, struct error *err);
/* Whether a read may begin at any block of this tensor at little cost, so that threads may share
 * it. */
bool tensor_source_splits(const struct tensor_source *source, size_t tensor);
uint64_t tensor_source_block_bytes(const struct tensor_source *source, size_t tensor);
/* The count of blocks; 0 for an empty tensor. */
uint64_t tensor_source_blocks(const struct tensor_source *source, size_t tensor);

/* Writes the digests of all tensors in schema order to the caller's array, on up to `threads`
 * threads (0: one per core). */
int tensor_source_digests(struct tensor_source *source, unsigned threads,
	struct digest128 *out_digests, struct error *err);

#endif
