/* A checkpoint on disk, mapped for reading: one .safetensors file, or a folder with shards and
 * other files (config, tokenizer, the index itself). The shards are those that
 * model.safetensors.index.json names, else the only other *.safetensors.index.json, else every
 * *.safetensors directly in the folder; a *.safetensors directly in the folder that the index does
 * not name is left from an older layout and no part of the checkpoint. Other files are taken from
 * subfolders too, through symbolic links to files but not to folders; names that begin with '.' are
 * skipped. Read-only; any thread. The files must not change while it is open. */
#ifndef WEIGHTS_MODEL_CHECKPOINT_H
#define WEIGHTS_MODEL_CHECKPOINT_H

#include "weights/model/schema.h"
#include "weights/model/work_watch.h"

struct checkpoint;

struct checkpoint_file {
	const char *
		path; /* relative to the folder; "model.safetensors" for a single-file checkpoint */
	const char *full_path;
	uint64_t size;
	struct span bytes;               /* the whole file, mapped */
	const struct safetensors *shard; /* NULL for files that hold no tensors */
	struct span header;              /* of a shard: its 8-byte length and JSON, as they lie */
	struct span data;                /* of a shard: the data buffer, mapped */
};

/* `path` is a file or a folder. Refuses what weight-delta 1.3 and 1.4 refuse: malformed shards, a
 * tensor in two shards, an index that names missing files or tensors. */
struct checkpoint *checkpoint_open(const char *path, struct error *err);
/* Which files of a folder are the checkpoint's. `wants` is asked once for each file that has a name
 * without a leading '.', in any order: its path below the folder, and its size. */
struct checkpoint_choice {
	bool (*wants)(void *chooser, const char *path, uint64_t size);
	void *chooser;
};
/* As checkpoint_open, as if the folder had no other files. A single file is not asked about. */
struct checkpoint *checkpoint_open_chosen(
	const char *path, const struct checkpoint_choice *choice, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint);

bool checkpoint_is_folder(const struct checkpoint *checkpoint);
size_t checkpoint_file_count(const struct checkpoint *checkpoint); /* sorted by path */
const struct checkpoint_file *checkpoint_file(const struct checkpoint *checkpoint, size_t index);
const struct schema *checkpoint_schema(const struct checkpoint *checkpoint);
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint); /* of all files */
/* Bytes of tensor `index` of the schema. */
struct span checkpoint_tensor(const struct checkpoint *checkpoint, size_t index);

/* Tensor digests in schema order (array of schema_count, the caller's), on up to `threads` threads
 * (0: one per core). Fails only where `watch`, which may be NULL, ends it. */
int checkpoint_tensor_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err);
/* The same of whole files (array of checkpoint_file_count). */
int checkpoint_file_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err);

#endif
