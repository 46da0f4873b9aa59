/* Decodes one changed tensor of a delta block by block, for delta_source's cursors. One thread at a
 * time. A decoder keeps its memory from one entry to the next. */
#ifndef WEIGHTS_DELTA_ENTRY_DECODER_H
#define WEIGHTS_DELTA_ENTRY_DECODER_H

#include "base/format/compress_stream.h"
#include "weights/codec/block_code.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/tensor_checksum.h"

/* The places where the blocks of one entry begin, so that decoding can begin there. Made once for
 * each entry, then read-only. */
struct entry_map {
	uint64_t *offsets; /* BLOCKS only: places in `data`, one more than blocks */
	/* large SPARSE entries only: */
	struct index_decoder *starts; /* the state before each block */
	uint64_t *values;             /* the count of values before each block */
};
/* Makes the map and checks that the entry has the layout that the tensor's size asks for. *map
 * needs entry_map_release, also after a failure. */
int entry_map_make(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err);
void entry_map_release(struct entry_map *map);
/* Whether decoding may begin at any block. */
bool entry_map_splits(const struct entry_map *map, const struct delta_entry *entry);

struct entry_decoder {
	/* set by the owner, for slime's entries: */
	bool proves; /* check the tensors' checksums */
	enum delta_checksum checksum_kind;
	/* the entry that is being decoded: */
	const struct delta_entry *entry;
	const struct schema_tensor *tensor;
	const struct entry_map *map;
	uint64_t block_bytes;
	uint64_t block; /* the next block */
	/* memory that is made when first needed: */
	uint8_t *into; /* the largest block so far */
	size_t into_bytes;
	struct block_code_context *code;
	uint16_t *positions;
	struct zstd_reader *frame;
	struct zstd_reader *frame_values; /* OVERWRITE only: the same frame, further on */
	struct tensor_checksum *checksums[DELTA_CHECKSUMS];
	/* SPARSE only: */
	struct index_decoder index;
	uint64_t taken; /* values taken so far */
	/* XOR and OVERWRITE only: */
	struct tensor_checksum *checksum;
	/* OVERWRITE only: */
	uint8_t *run_positions; /* u32 each */
	uint8_t *run_values;
	uint64_t left; /* changes that are not yet read from the frames */
	size_t run_at, run_count;
	uint64_t follow; /* the smallest position that may follow */
};
struct entry_decoder *entry_decoder_new(void);
void entry_decoder_free(struct entry_decoder *decoder); /* NULL is fine */

/* Begins an entry at block `block`, which is above 0 only if the map splits. */
int entry_decoder_begin(struct entry_decoder *decoder, const struct delta_entry *entry,
	const struct schema_tensor *tensor, const struct entry_map *map, uint64_t block,
	struct error *err);
bool entry_decoder_needs_base(const struct entry_decoder *decoder);
/* Makes the next block from the base's block, which has the same length; it is empty when no base
 * is needed. *out is valid until the next call, or as long as `base`. */
int entry_decoder_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);

/* The functions of each kind, in entry_decoder_sparse.c and entry_decoder_frame.c. */
int entry_sparse_begin(struct entry_decoder *decoder, struct error *err);
int entry_sparse_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);
int entry_sparse_map(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err);
int entry_frame_begin(struct entry_decoder *decoder, struct error *err);
int entry_xor_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);
int entry_overwrite_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);

#endif
