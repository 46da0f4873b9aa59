/* A checkpoint that nobody writes to any more, opened and measured: what a manifest says about
 * it. */
#ifndef CLIENT_LOCAL_SNAPSHOT_H
#define CLIENT_LOCAL_SNAPSHOT_H

#include "base/file.h"
#include "weights/model/checkpoint.h"
#include "wire/step_message.h"

struct snapshot {
	struct checkpoint *checkpoint;
	struct digest128 *tensor_digests; /* schema order */
	size_t tensor_count;
	struct step_file *files; /* sorted by path; paths lie in the checkpoint */
	size_t file_count;
	uint64_t bytes;
	struct digest128 digest; /* of the tensors */
	struct digest128 schema_digest;
	struct digest128 content; /* of the file list */
};

/* Shares the checkpoint's files with the new folder `to` (a reflink each); 1 when the file system
 * cannot, and parts of `to` may be left. */
int snapshot_share(const struct file_ops *files, const struct checkpoint *from, const char *to,
	struct error *err);
/* Copies the checkpoint at `from` (a file becomes model.safetensors) into the new folder `to`,
 * by reflink where the file system can. Not synced. `choice` as in checkpoint_open_chosen. */
int snapshot_copy(const struct file_ops *files, const char *from,
	const struct checkpoint_choice *choice, const char *to, struct error *err);

/* too_large when there are more files than a manifest may list. `watch` may be NULL; all bytes come
 * twice, as tensors and as files. `choice` as in checkpoint_open_chosen. */
int snapshot_open(struct snapshot *snapshot, const char *path,
	const struct checkpoint_choice *choice, unsigned threads, struct work_watch *watch,
	struct error *err);
void snapshot_close(struct snapshot *snapshot); /* a zeroed one is fine */

/* Digest of a list of files, whatever its order: path, size and digest of each. */
struct digest128 snapshot_content(const struct step_file *files, size_t count);

#endif
