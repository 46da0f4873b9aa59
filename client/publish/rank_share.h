/* The files of a checkpoint folder that one of N ranks publishes, and a copy of them. If the folder
 * holds all shards, because all ranks write into it, rank I takes each N-th shard from the I-th on,
 * in order of their names. If the folder holds only the rank's own shards, the rank takes all of
 * them. Rank 0 also takes every file without tensors. The copy is a folder with these files. The
 * index lies there under the hidden name RANK_SHARE_INDEX, because it names shards that the copy
 * lacks. */
#ifndef CLIENT_PUBLISH_RANK_SHARE_H
#define CLIENT_PUBLISH_RANK_SHARE_H

#include "client/local/snapshot.h"
#include "client/publish/publish_state.h"
#include "client/publish/rank_memory.h"

#define RANK_SHARE_INDEX      ".model.safetensors.index.json"
#define RANK_SHARE_INDEX_NAME "model.safetensors.index.json"

struct rank_share_params {
	const struct file_ops *files;
	const char *checkpoint; /* folder */
	uint64_t rank, ranks;   /* rank < ranks */
	/* which of the files are published (publish_choice.h); NULL: all */
	const struct checkpoint_choice *choice;
	const char *to; /* folder to make; must not exist */
};
/* Copies this rank's files. not_found when there is no shard for this rank; or, if this rank sees
 * the whole checkpoint, when there is none for any one of the ranks. invalid when a file changed
 * meanwhile. */
int rank_share_copy(const struct rank_share_params *params, struct error *err);

/* Adds up the bytes of these files; `files` and `to` do not count. Fails as rank_share_copy. */
int rank_share_size(const struct rank_share_params *params, uint64_t *out, struct error *err);

/* Such a copy, opened and measured. */
struct rank_share {
	struct snapshot snapshot;
	struct step_file *files; /* with the index, under the name that it has in the step */
	size_t file_count;
	struct publish_mark mark; /* all but its step */
};
/* As snapshot_open. The caller releases the share, also after a failure. */
int rank_share_open(struct rank_share *share, const char *folder, unsigned threads,
	struct work_watch *watch, struct error *err);
/* The same for what lies in memory, which must outlive the share. */
int rank_share_open_memory(struct rank_share *share, const struct rank_memory *memory,
	unsigned threads, struct work_watch *watch, struct error *err);
void rank_share_release(struct rank_share *share); /* a zeroed one is fine */

#endif
