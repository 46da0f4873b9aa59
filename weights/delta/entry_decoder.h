/* One changed tensor of a delta on its way out, block by block: what delta_source's cursors are
 * made of. One thread at a time; keeps its memory from one entry to the next. */
#ifndef WEIGHTS_DELTA_ENTRY_DECODER_H
#define WEIGHTS_DELTA_ENTRY_DECODER_H

#include "base/format/compress_stream.h"
#include "weights/codec/block_code.h"
#include "weights/delta/delta_reader.h"
#include "weights/delta/tensor_checksum.h"

/* Where the blocks of one entry begin, so that decoding can. Made once per entry, then
 * read-only. */
struct entry_map {
	uint64_t *offsets;            /* of BLOCKS: in `data`, one more than blocks */
	struct index_decoder *starts; /* of large SPARSE ones: the state before each block */
	uint64_t *values;             /* with starts: values taken before */
};
/* Proves that the entry has the form that the tensor's size asks for. *map needs entry_map_release
 * in any case. */
int entry_map_make(struct entry_map *map, const struct delta_entry *entry,
	const struct schema_tensor *tensor, struct error *err);
void entry_map_release(struct entry_map *map);
/* Whether decoding may begin at any block. */
bool entry_map_splits(const struct entry_map *map, const struct delta_entry *entry);

struct entry_decoder {
	bool proves; /* slime's checksums; set by the owner */
	/* What is being decoded: */
	const struct delta_entry *entry;
	const struct schema_tensor *tensor;
	const struct entry_map *map;
	uint64_t block_bytes;
	uint64_t block; /* the next one */
	/* Memory, made when it is first needed: */
	uint8_t *into; /* one block of any dtype */
	struct block_code_context *code;
	uint16_t *positions;
	struct zstd_reader *frame;
	struct zstd_reader *frame_values; /* OVERWRITE: the same frame, further on */
	struct tensor_checksum *checksums[DELTA_CHECKSUMS];
	/* Of SPARSE: */
	struct index_decoder index;
	uint64_t taken; /* values */
	/* Of XOR and OVERWRITE: */
	struct tensor_checksum *checksum;
	/* Of OVERWRITE: */
	uint8_t *run_positions; /* u32 each */
	uint8_t *run_values;
	uint64_t left; /* changes not yet read from the frames */
	size_t run_at, run_count;
	uint64_t follow; /* the smallest position that may follow */
};
struct entry_decoder *entry_decoder_new(void);
void entry_decoder_free(struct entry_decoder *decoder); /* NULL is fine */

/* `checksum`: of XOR and OVERWRITE. `block` above 0 only where the map splits. */
int entry_decoder_begin(struct entry_decoder *decoder, const struct delta_entry *entry,
	const struct schema_tensor *tensor, const struct entry_map *map,
	enum delta_checksum checksum, uint64_t block, struct error *err);
bool entry_decoder_needs_base(const struct entry_decoder *decoder);
/* The next block out of the base's, which has its length (empty when no base is needed). *out lives
 * until the next call, or as long as `base`. */
int entry_decoder_next(
	struct entry_decoder *decoder, struct span base, struct span *out, struct error *err);

/* The parts by kind: entry_decoder_sparse.c, entry_decoder_frame.c. */
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
