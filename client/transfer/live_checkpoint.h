/* A checkpoint folder that is mapped for writing: deltas change its tensors in place, and the files
 * beside them are replaced. Each shard loses its name: in its place comes a link to the file as
 * this process has it open, so that its bytes go with the process, even if that is killed. Holders
 * may keep it when its maker has dropped it; then it has no data. Not for several threads at once,
 * except live_checkpoint_free. */
#ifndef CLIENT_TRANSFER_LIVE_CHECKPOINT_H
#define CLIENT_TRANSFER_LIVE_CHECKPOINT_H

#include "base/file.h"
#include "weights/delta/delta_changes.h"
#include "weights/model/schema.h"
#include "weights/model/work_watch.h"

struct live_checkpoint;

/* The files of `folder` may be renamed and removed meanwhile. */
struct live_checkpoint *live_checkpoint_open(
	const struct file_ops *files, const char *folder, struct error *err);
/* One more holder. */
struct live_checkpoint *live_checkpoint_hold(struct live_checkpoint *live);
/* One holder less; the last one frees it. NULL is fine. */
void live_checkpoint_free(struct live_checkpoint *live);
/* Lets the data go: the memory is free when the files are gone, whoever still holds this. Pointers
 * to tensors find zero bytes until the last holder has freed it. */
void live_checkpoint_drop(struct live_checkpoint *live);

const struct schema *live_checkpoint_schema(const struct live_checkpoint *live);
/* The bytes of tensor `index` of the schema; NULL when they were dropped. */
void *live_checkpoint_tensor(const struct live_checkpoint *live, size_t index);
/* Rises when the bytes change. */
uint64_t live_checkpoint_version(const struct live_checkpoint *live);

struct live_patch {
	const struct file_ops *files;
	const char *folder; /* where the checkpoint lies now */
	/* applied in order; all are deltas, not checkpoints */
	const char *const *deltas;
	size_t count;
	const struct digest128 *base;   /* the digest of the tensors before */
	const struct digest128 *result; /* and after */
	bool keeps_changes;             /* for live_checkpoint_changes */
	unsigned threads;
	struct work_watch *watch; /* may be NULL */
};
/* Applies the deltas in place. 0 when the folder has become the result, file by file. 1 when that
 * needs new files, because the result has other headers than the base: nothing has changed. Fails
 * as delta_apply does; *out_spoiled: the tensors have changed and are worth nothing. */
int live_checkpoint_patch(struct live_checkpoint *live, const struct live_patch *patch,
	bool *out_spoiled, struct error *err);

/* What the last patch changed; NULL unless it was to keep that. Borrowed until the next one. */
const struct delta_changes *live_checkpoint_changes(const struct live_checkpoint *live);

#endif
