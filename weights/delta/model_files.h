/* The files of one checkpoint without its tensors' bytes: of each shard the header, of every other
 * file the whole. Taken from an opened checkpoint, or worked out from the files of the base and
 * what a delta says of its result, with all proven that can be proven before a tensor is decoded.
 * Read-only once made; any thread. Spans are borrowed: what a list was made of must outlive it. */
#ifndef WEIGHTS_DELTA_MODEL_FILES_H
#define WEIGHTS_DELTA_MODEL_FILES_H

#include "weights/delta/delta_reader.h"

struct model_file {
	struct span path;
	uint64_t size;
	bool is_shard;
	uint8_t length[8]; /* of a shard: what stands before its JSON */
	struct span json;  /* of a shard: the header's text with its padding */
	struct span bytes; /* of another file */
	bool is_mapped;    /* `bytes` is the list's to unmap */
	/* of a shard: over length and JSON; of another file: over all of it */
	struct digest128 digest;
	struct safetensors *parsed; /* of a shard; owned */
};

struct model_files {
	bool is_folder; /* otherwise the checkpoint is one file, "model.safetensors" in the list */
	struct model_file *files; /* sorted by path */
	size_t count;
};

/* Each needs model_files_release in any case. */
int model_files_of(
	struct model_files *files, const struct checkpoint *checkpoint, struct error *err);
/* wrong_base when `base` lacks a file that the result takes from it, or has another one;
 * digest_mismatch when a file that comes with the delta is not what it should be; invalid when it
 * is malformed. `delta_path` is the folder or file of `reader`. */
int model_files_after(struct model_files *files, const struct model_files *base,
	const struct delta_reader *reader, const char *delta_path, struct error *err);
void model_files_release(struct model_files *files);

/* invalid unless the shards together have exactly the schema's tensors. */
int model_files_check(
	const struct model_files *files, const struct schema *schema, struct error *err);
uint64_t model_files_bytes(const struct model_files *files);
size_t model_files_shards(const struct model_files *files);
/* NULL when absent */
const struct model_file *model_files_find(const struct model_files *files, struct span path);

/* Where each tensor of the schema lies (the caller's array in schema order); after
 * model_files_check. */
struct model_place {
	size_t file;
	size_t shard; /* counting shards alone */
	uint64_t at;  /* absolute */
};
void model_files_place(const struct model_files *files, const struct schema *schema,
	struct model_place *out_places);

#endif
