/* A finished checkpoint, opened and measured for a manifest. Nothing may write to it any more. */
#ifndef CLIENT_LOCAL_SNAPSHOT_H
#define CLIENT_LOCAL_SNAPSHOT_H

#include "base/file.h"
#include "weights/model/checkpoint.h"
#include "wire/step_message.h"

struct snapshot {
	struct checkpoint *checkpoint;
	struct digest128 *tensor_digests; /* schema order */
	size_t tensor_count;
	struct step_file *files; /* sorted by path; the paths are borrowed from the checkpoint */
	size_t file_count;
	uint64_t bytes;
	struct digest128 digest; /* of the tensors */
	struct digest128 schema_digest;
	struct digest128 content; /* of the file list */
};

/* Makes the folder `to` with a reflink of each file of the checkpoint. 1 when the file system
 * cannot do this; then `to` may be left with some of the files. */
int snapshot_share(const struct file_ops *files, const struct checkpoint *from, const char *to,
	struct error *err);
/* Copies the checkpoint at `from` into the new folder `to`, by reflink if the file system can; a
 * checkpoint that is one file becomes model.safetensors. Does not sync. `choice` is as in
 * checkpoint_open_chosen. */
int snapshot_copy(const struct file_ops *files, const char *from,
	const struct checkpoint_choice *choice, const char *to, struct error *err);

/* Fails with too_large when there are more files than a manifest may list. `watch`, which may be
 * NULL, counts all bytes twice: as tensors and as files. `choice` is as in
 * checkpoint_open_chosen. */
int snapshot_open(struct snapshot *snapshot, const char *path,
	const struct checkpoint_choice *choice, unsigned threads, struct work_watch *watch,
	struct error *err);
/* The same in steps, for checkpoints whose tensors are hashed in another pass. snapshot_begin takes
 * the checkpoint over, also on failure; `name` is its name in messages. Then snapshot_measure_files
 * sets files and content, and the caller fills tensor_digests and calls snapshot_take_tensors, in
 * any order and on any threads. */
int snapshot_begin(struct snapshot *snapshot, struct checkpoint *checkpoint, const char *name,
	struct error *err);
int snapshot_measure_files(
	struct snapshot *snapshot, unsigned threads, struct work_watch *watch, struct error *err);
void snapshot_take_tensors(struct snapshot *snapshot);
void snapshot_close(struct snapshot *snapshot); /* a zeroed one is fine */

/* The digest of a list of files, from the path, size and digest of each. The order of the list does
 * not matter. */
struct digest128 snapshot_content(const struct step_file *files, size_t count);

#endif
