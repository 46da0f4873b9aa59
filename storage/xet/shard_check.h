/* Whether what a shard says is true of what is stored here: every xorb is there, its chunks are as
 * listed, every term's range hash proves that the sender knew its chunks, and the chunks of each
 * file give the file's hash. All or nothing, in slices, since a shard may take seconds. What is
 * found is held (pack_store_refer) until the check is freed. One thread at a time; waits for the
 * disk. hub-xet, "What the server must validate". */
#ifndef STORAGE_XET_SHARD_CHECK_H
#define STORAGE_XET_SHARD_CHECK_H

#include "storage/xet/xorb.h"

struct shard_check;

/* `bytes` must live until the last step. */
struct shard_check *shard_check_new(struct store *store, struct span bytes);
/* One slice. 1: there is more; 0: all of it is true; -1: invalid, or busy when gc works on a xorb
 * just now, or what went wrong here. */
int shard_check_step(struct shard_check *check, struct error *err);

/* So many bytes of the shard were gone through. */
size_t shard_check_at(const struct shard_check *check);

/* After the last step, until free. */
struct shard_check_file {
	struct chunk_id hash;
	uint64_t size;
	size_t first_segment; /* of shard_check_segments */
	size_t segment_count;
};
/* not the empty ones */
const struct shard_check_file *shard_check_files(
	const struct shard_check *check, size_t *out_count);
const struct segment *shard_check_segments(const struct shard_check *check);
/* all that the shard names */
const struct xorb *shard_check_xorbs(const struct shard_check *check, size_t *out_count);

/* NULL is fine. `keeps_packs`: what the check held stays held until the next start, because rows
 * that name it may come back. */
void shard_check_free(struct shard_check *check, bool keeps_packs);

#endif
