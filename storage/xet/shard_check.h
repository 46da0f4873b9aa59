/* Checks a shard against what is stored here: every xorb is stored, its chunks are as listed, every
 * term's range hash proves that the sender knew the chunks, and the chunks of each file give the
 * file's hash. The shard passes or fails as a whole. The check is done in slices, because it may
 * take seconds. The packs that it finds are referred (pack_store_refer) until it is freed. One
 * thread at a time; waits for the disk. hub-xet, "What the server must validate". */
#ifndef STORAGE_XET_SHARD_CHECK_H
#define STORAGE_XET_SHARD_CHECK_H

#include "storage/xet/xorb.h"

struct shard_check;

/* `bytes` must live until the last step. */
struct shard_check *shard_check_new(struct store *store, struct span bytes);
/* Does one slice. 1: there is more; 0: the shard is true; -1: invalid, busy when gc works on the
 * pack of a xorb, no_space, too_large, or a failure of the store. */
int shard_check_step(struct shard_check *check, struct error *err);

/* How many bytes of the shard were checked. */
size_t shard_check_at(const struct shard_check *check);

/* The results, from the last step until free. */
struct shard_check_file {
	struct chunk_id hash;
	uint64_t size;
	size_t first_segment; /* of shard_check_segments */
	size_t segment_count;
};
/* without empty files */
const struct shard_check_file *shard_check_files(
	const struct shard_check *check, size_t *out_count);
const struct segment *shard_check_segments(const struct shard_check *check);
/* all xorbs that the shard names */
const struct xorb *shard_check_xorbs(const struct shard_check *check, size_t *out_count);

/* `keeps_packs`: the packs stay referred until the next start, because rows that name them may come
 * back (a change in doubt). NULL is fine. */
void shard_check_free(struct shard_check *check, bool keeps_packs);

#endif
