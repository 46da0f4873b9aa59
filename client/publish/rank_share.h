/* Which files of a checkpoint folder one of N ranks publishes, and a copy of them. The folder may
 * hold all shards (one that all ranks write into), then rank I takes each N-th shard from the I-th
 * on, in order of their names; or only the rank's own, then it takes all that are there. Rank 0
 * also takes every file without tensors. The copy is a folder with these files; the index, which
 * names shards that are not in it, lies there as RANK_SHARE_INDEX. */
#ifndef CLIENT_PUBLISH_RANK_SHARE_H
#define CLIENT_PUBLISH_RANK_SHARE_H

#include "client/local/snapshot.h"
#include "client/publish/publish_state.h"

#define RANK_SHARE_INDEX      ".model.safetensors.index.json"
#define RANK_SHARE_INDEX_NAME "model.safetensors.index.json"

/* not_found when there is no shard for this rank, or, as all ranks are told that see the whole
 * checkpoint, for one of the others. invalid when a file changed meanwhile. `choice` (NULL: all)
 * says which files without tensors rank 0 takes. `to` must not exist. */
int rank_share_copy(const struct file_ops *files, const char *checkpoint, uint64_t rank,
	uint64_t ranks, const struct checkpoint_choice *choice, const char *to, struct error *err);

/* Such a copy, measured. */
struct rank_share {
	struct snapshot snapshot;
	struct step_file *files; /* the index included, under the name that the step knows it by */
	size_t file_count;
	struct publish_mark mark; /* all but the step */
};
/* As snapshot_open. Release in any case. */
int rank_share_open(
	struct rank_share *share, const char *folder, unsigned threads, struct error *err);
void rank_share_release(struct rank_share *share); /* a zeroed one is fine */

#endif
