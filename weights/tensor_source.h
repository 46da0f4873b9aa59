/* The tensors of one checkpoint, readable in order block by block, wherever they lie: in mapped files (checkpoint_source), in objects of the
 * store, or as base and delta decoded on the way (delta_source). What encodes, applies, proves or transcodes works on sources alone, in memory
 * that does not grow with the tensors. A source is read-only and serves any number of cursors on any threads; a cursor is one thread's. */
#ifndef WEIGHTS_TENSOR_SOURCE_H
#define WEIGHTS_TENSOR_SOURCE_H

#include "weights/schema.h"

struct tensor_source;
struct tensor_cursor;

struct tensor_source_ops {
	struct tensor_cursor *(*open)(struct tensor_source *source, size_t tensor, struct error *err);
	int (*next)(struct tensor_cursor *cursor, struct span *out, struct error *err);
	void (*close_cursor)(struct tensor_cursor *cursor);
	void (*free)(struct tensor_source *source);
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
struct tensor_cursor *tensor_source_open(struct tensor_source *source, size_t tensor, struct error *err);
/* 1 and the next block: block_code_bytes of the dtype, the last one shorter; it lives until the next call. 0: the tensor's end. -1: an error, after
 * which only closing is allowed. */
int tensor_cursor_next(struct tensor_cursor *cursor, struct span *out, struct error *err);
void tensor_cursor_close(struct tensor_cursor *cursor); /* NULL is fine */
void tensor_source_free(struct tensor_source *source);  /* NULL is fine */

/* Digests of all tensors in schema order (the caller's array), on up to `threads` threads. */
int tensor_source_digests(struct tensor_source *source, unsigned threads, struct digest128 *out_digests, struct error *err);

#endif
