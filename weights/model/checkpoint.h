/* A checkpoint on disk, mapped for reading: one .safetensors file, or a folder with shards and
 * other files (config, tokenizer, the index itself). shard_rule.h says which files are shards. All
 * others are files without tensors, whatever they hold: a .safetensors that the index does not
 * name, or that lies in a subfolder without being named, is never parsed. Files come from
 * subfolders too, and through symbolic links to files but not to folders. Names that begin with '.'
 * are skipped. Read-only; any thread. The files must not change while the checkpoint is open. */
#ifndef WEIGHTS_MODEL_CHECKPOINT_H
#define WEIGHTS_MODEL_CHECKPOINT_H

#include "weights/model/schema.h"
#include "weights/model/work_watch.h"

struct checkpoint;

struct checkpoint_file {
	/* relative to the folder; "model.safetensors" for a single-file checkpoint */
	const char *path;
	const char *full_path;
	uint64_t size;
	struct span bytes;               /* the whole file, mapped */
	const struct safetensors *shard; /* NULL for files that hold no tensors */
	struct span header;              /* shards only: the 8-byte length and the JSON */
	struct span data;                /* shards only: the data buffer, mapped */
};

/* `path` is a file or a folder. Refuses what weight-delta 1.3 and 1.4 refuse: malformed shards, a
 * tensor in two shards, an index that names missing files or tensors. */
struct checkpoint *checkpoint_open(const char *path, struct error *err);
/* Chooses the files of a folder that belong to the checkpoint. `wants` is called once for each file
 * whose name does not begin with '.', in any order, with its path below the folder and its size (0
 * for a link that leads nowhere, which is refused only if it is wanted). When the shards are known,
 * `wants_other` is called for each chosen .safetensors that is not one of them; NULL: all stay. */
struct checkpoint_choice {
	bool (*wants)(void *chooser, const char *path, uint64_t size);
	void *chooser;
	bool (*wants_other)(void *chooser, const char *path, uint64_t size);
};
/* As checkpoint_open, as if the folder had only the chosen files. A checkpoint that is a single
 * file is opened without a choice. */
struct checkpoint *checkpoint_open_chosen(
	const char *path, const struct checkpoint_choice *choice, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint);

bool checkpoint_is_folder(const struct checkpoint *checkpoint);
size_t checkpoint_file_count(const struct checkpoint *checkpoint); /* sorted by path */
const struct checkpoint_file *checkpoint_file(const struct checkpoint *checkpoint, size_t index);
const struct schema *checkpoint_schema(const struct checkpoint *checkpoint);
uint64_t checkpoint_bytes(const struct checkpoint *checkpoint); /* of all files */
/* The bytes of tensor `index` of the schema. */
struct span checkpoint_tensor(const struct checkpoint *checkpoint, size_t index);

/* Writes the tensor digests in schema order to the caller's array of schema_count, on up to
 * `threads` threads (0: one per core). `watch` may be NULL. Fails only when `watch` ends the
 * work. */
int checkpoint_tensor_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err);
/* The same for whole files, with an array of checkpoint_file_count. */
int checkpoint_file_digests(const struct checkpoint *checkpoint, unsigned threads,
	struct work_watch *watch, struct digest128 *out_digests, struct error *err);

#endif
