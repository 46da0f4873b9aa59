/* A delta that is opened and checked as far as possible without its base. It has one entry for each
 * tensor that it changes. The reader takes our ulp-class containers, slime's, SkyRL's and PULSE's
 * directories, TRL's files of either key scheme, and a full checkpoint in the place of a delta.
 * Read-only once open, a PULSE delta once bound; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_READER_H
#define WEIGHTS_DELTA_DELTA_READER_H

#include "weights/codec/index_code.h"
#include "weights/delta/delta_metadata.h"

struct delta_reader;

enum delta_entry_kind {
	/* `index` and `values` have positions and new elements; PULSE's only once bound */
	DELTA_ENTRY_SPARSE,
	DELTA_ENTRY_WHOLE,    /* `values` is the new tensor */
	DELTA_ENTRY_BLOCKS,   /* `data` has ulp-class blocks, one behind the other */
	DELTA_ENTRY_XOR,      /* `data` is one zstd frame of new XOR old */
	DELTA_ENTRY_OVERWRITE /* `data` is one zstd frame of u32 count, u32 byte positions, bytes */
};

struct delta_entry {
	struct span name;
	enum delta_entry_kind kind;
	enum dtype dtype;      /* of the values */
	unsigned rank;         /* whole tensors and PULSE only */
	const uint64_t *shape; /* NULL: not given */
	struct index_code code;
	struct span index;
	struct span values;
	uint64_t count; /* of the values; 0 for other kinds, where only the base tells it */
	struct span data;
	size_t file; /* BLOCKS only: the file of `data`, for delta_reader_file_name */
	uint64_t at; /* absolute place of `data` in that file; PULSE: number in the payload */
	struct span checksum; /* XOR and OVERWRITE only: of the whole new tensor, in hex */
};

/* `path` is a file or a folder. A folder is a delta when it has delta.safetensors, an index with
 * delta_encoding or TRL's keys, a manifest.json without model.safetensors beside it, or
 * delta_sparse.bin.zst. Otherwise it must be a full checkpoint. */
struct delta_reader *delta_reader_open(const char *path, struct error *err);
void delta_reader_close(struct delta_reader *reader); /* NULL is fine */

/* Opens a delta of one file from borrowed bytes in memory, for fuzzing and for objects that are not
 * files. */
struct delta_reader *delta_reader_from_bytes(
	struct span bytes, const char *path, struct error *err);

/* Puts "the delta 'PATH' (step N)" before the text, unless the text names the path already. Returns
 * -1. */
int delta_reader_blame(const struct delta_reader *reader, struct error *err);

const struct delta_metadata *delta_reader_metadata(const struct delta_reader *reader);
bool delta_reader_is_folder(const struct delta_reader *reader);
enum delta_format delta_reader_format(const struct delta_reader *reader);
/* Bytes of its safetensors files and index. */
uint64_t delta_reader_bytes(const struct delta_reader *reader);
/* The checkpoint of a DELTA_FULL; NULL for other formats. */
const struct checkpoint *delta_reader_checkpoint(const struct delta_reader *reader);
/* The name of a safetensors file of the delta in its index; "delta.safetensors" if there is no
 * index. */
size_t delta_reader_file_count(const struct delta_reader *reader);
struct span delta_reader_file_name(const struct delta_reader *reader, size_t file);

size_t delta_reader_count(const struct delta_reader *reader); /* sorted by name */
const struct delta_entry *delta_reader_entry(const struct delta_reader *reader, size_t index);
/* NULL when the delta does not change the tensor. */
const struct delta_entry *delta_reader_find(const struct delta_reader *reader, struct span name);

/* Gives the count of elements that the delta changes. False when only the base can tell it. */
bool delta_reader_changed(const struct delta_reader *reader, uint64_t *out_elements);
/* Does not count TRL's entries without changes. */
size_t delta_reader_changed_tensors(const struct delta_reader *reader);

/* Finds the entry of each tensor of a base with this schema. Fails when an entry names a tensor
 * that the schema lacks or does not fit its tensor. A PULSE delta is unpacked here, beside its
 * files: a small one may unpack to much, and the schema now bounds how much. The first call is for
 * one thread. The caller frees *out_entries, which has one entry for each tensor of the schema;
 * NULL: unchanged. */
int delta_reader_bind(const struct delta_reader *reader, const struct schema *schema,
	const struct delta_entry ***out_entries, struct error *err);

#endif
