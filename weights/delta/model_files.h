/* The files of one checkpoint without its tensors' bytes: the header of each shard, and all of each
 * other file. A list comes from an opened checkpoint, or from the base's files and a delta's
 * description of its result; everything is then proven that can be proven before a tensor is
 * decoded. Read-only once made; any thread. Spans are borrowed: the sources of a list must outlive
 * it. */
#ifndef WEIGHTS_DELTA_MODEL_FILES_H
#define WEIGHTS_DELTA_MODEL_FILES_H

#include "weights/delta/delta_reader.h"

struct model_file {
	struct span path;
	uint64_t size;
	bool is_shard;
	/* shards only: */
	uint8_t length[8];          /* the bytes before the JSON */
	struct span json;           /* the header's text with its padding */
	struct safetensors *parsed; /* owned */
	/* other files only: */
	struct span bytes;
	bool is_mapped; /* the list unmaps `bytes` */
	/* for a shard over length and JSON, for another file over all of it */
	struct digest128 digest;
};

struct model_files {
	bool is_folder; /* otherwise the checkpoint is one file, "model.safetensors" in the list */
	struct model_file *files; /* sorted by path */
	size_t count;
};

/* Keeps the order of the checkpoint's files. *files needs model_files_release, also after a
 * failure; so it does below. */
int model_files_of(
	struct model_files *files, const struct checkpoint *checkpoint, struct error *err);
/* `delta_path` is the folder or file of `reader`. Fails with wrong_base when `base` lacks a file
 * that the result takes from it or has another one, with digest_mismatch when a file that comes
 * with the delta has another digest, and with invalid when it is malformed. */
int model_files_after(struct model_files *files, const struct model_files *base,
	const struct delta_reader *reader, const char *delta_path, struct error *err);
void model_files_release(struct model_files *files);

/* Fails with invalid unless the shards together have exactly the schema's tensors. */
int model_files_check(
	const struct model_files *files, const struct schema *schema, struct error *err);
uint64_t model_files_bytes(const struct model_files *files);
size_t model_files_shards(const struct model_files *files);
/* NULL when the list has no file of this path. */
const struct model_file *model_files_find(const struct model_files *files, struct span path);

/* The place of a tensor. */
struct model_place {
	size_t file;
	size_t shard; /* number of the file, counting only shards */
	uint64_t at;  /* absolute */
};
/* Fills the caller's array with the places of all tensors, in schema order. Call it after
 * model_files_check. */
void model_files_place(const struct model_files *files, const struct schema *schema,
	struct model_place *out_places);

#endif
