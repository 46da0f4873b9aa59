/* A delta, opened and checked as far as it can be without its base: one entry for each tensor it
 * changes. Takes our ulp-class containers, slime's, SkyRL's and PULSE's directories, TRL's files of
 * either key scheme, and a full checkpoint in a delta's place. Read-only once open, and of PULSE
 * once bound; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_READER_H
#define WEIGHTS_DELTA_DELTA_READER_H

#include "weights/codec/index_code.h"
#include "weights/delta/delta_metadata.h"

struct delta_reader;

enum delta_entry_kind {
	/* `index` and `values`: positions and new elements; of PULSE once bound */
	DELTA_ENTRY_SPARSE,
	DELTA_ENTRY_WHOLE,    /* `values` is the new tensor */
	DELTA_ENTRY_BLOCKS,   /* `data`: ulp-class blocks, one behind the other */
	DELTA_ENTRY_XOR,      /* `data`: one zstd frame of new XOR old */
	DELTA_ENTRY_OVERWRITE /* `data`: one zstd frame of u32 count, u32 byte positions, bytes */
};

struct delta_entry {
	struct span name;
	enum delta_entry_kind kind;
	enum dtype dtype;      /* of the values */
	unsigned rank;         /* of a whole tensor, and of PULSE's */
	const uint64_t *shape; /* NULL: not said */
	struct index_code code;
	struct span index;
	struct span values;
	uint64_t count; /* of values; otherwise 0: only the base tells */
	struct span data;
	size_t file;          /* of BLOCKS: where `data` lies, delta_reader_file_name */
	uint64_t at;          /* in that file, absolute; of PULSE: its number in the payload */
	struct span checksum; /* of XOR and OVERWRITE: of the whole new tensor, in hex */
};

/* `path` is a file, or a folder: delta.safetensors, an index with delta_encoding or TRL's keys,
 * a manifest.json without model.safetensors beside it, delta_sparse.bin.zst, else a full
 * checkpoint. */
struct delta_reader *delta_reader_open(const char *path, struct error *err);
void delta_reader_close(struct delta_reader *reader); /* NULL is fine */

/* From bytes in memory, borrowed: one file. For fuzzing, and for objects that are no files. */
struct delta_reader *delta_reader_from_bytes(
	struct span bytes, const char *path, struct error *err);

/* Puts "the delta 'PATH' (step N)" before the text, unless that names the path already. Always
 * -1. */
int delta_reader_blame(const struct delta_reader *reader, struct error *err);

const struct delta_metadata *delta_reader_metadata(const struct delta_reader *reader);
bool delta_reader_is_folder(const struct delta_reader *reader);
enum delta_format delta_reader_format(const struct delta_reader *reader);
/* of its safetensors files and index */
uint64_t delta_reader_bytes(const struct delta_reader *reader);
/* The checkpoint that a DELTA_FULL is; NULL of every other. */
const struct checkpoint *delta_reader_checkpoint(const struct delta_reader *reader);
/* A safetensors file of the delta, as the index calls it; "delta.safetensors" where there is
 * none. */
size_t delta_reader_file_count(const struct delta_reader *reader);
struct span delta_reader_file_name(const struct delta_reader *reader, size_t file);

size_t delta_reader_count(const struct delta_reader *reader); /* sorted by name */
const struct delta_entry *delta_reader_entry(const struct delta_reader *reader, size_t index);
/* NULL: the tensor is unchanged */
const struct delta_entry *delta_reader_find(const struct delta_reader *reader, struct span name);

/* Elements that it changes, as far as it says; false when only the base could tell. */
bool delta_reader_changed(const struct delta_reader *reader, uint64_t *out_elements);
/* TRL names unchanged ones too */
size_t delta_reader_changed_tensors(const struct delta_reader *reader);

/* What the delta would make of a base with this schema: fails when an entry names a tensor that is
 * not there, or fits it ill. PULSE's is unpacked here, beside its files: a small one may hold much,
 * and how much it may be is known now. One thread the first time. *out_entries, one per tensor of
 * the schema (NULL where nothing changes), is the caller's to free. */
int delta_reader_bind(const struct delta_reader *reader, const struct schema *schema,
	const struct delta_entry ***out_entries, struct error *err);

#endif
