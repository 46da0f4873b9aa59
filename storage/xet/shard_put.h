/* A shard that a client uploads: it registers files by their hash, made of xorbs that are stored
 * here. The whole shard is verified (shard_check.h) before any of it counts; then its files are
 * registered for the bucket and account (xet_file.h), some hundred a change, and the xorbs that it
 * names are promised anew. What it names is held from being found until the last change is through.
 * A file that is known already keeps its row. Large shards are checked four at a time, others wait
 * for their turn. A store that stops turns large ones away wherever they are. After that, and after
 * a crash in between some of the files are registered, which harms nobody: the client sends the
 * shard again. */
#ifndef STORAGE_XET_SHARD_PUT_H
#define STORAGE_XET_SHARD_PUT_H

#include "base/stream.h"
#include "storage/core/call.h"

struct shard_put;
struct shard_put_params {
	int64_t bucket_id;
	struct span account; /* copied */
	/* a write that answered SINK_WAIT may be tried again; from a helper */
	void (*room)(void *owner);
	void *owner; /* of room */
};
struct shard_put *shard_put_open(struct store *store, const struct shard_put_params *params);
/* too_large over 65 MiB. */
enum sink_result shard_put_write(struct shard_put *put, struct span bytes, struct error *err);
/* The call that checks and registers what was written. invalid: the shard is no shard, names what
 * is not stored here, or does not prove what it says; nothing was registered. no_space: it names
 * what is not stored here, and the disk has no room for a whole xorb, so that it was refused, most
 * likely. busy: try again; when the store stops some files may be registered. The put goes with it:
 * call_free aborts one that was never started. */
struct call *shard_put_call(struct shard_put *put);

struct shard_report {
	size_t files;     /* without empty ones */
	size_t new_files; /* of these, that were not known before */
	size_t xorbs;     /* that the shard names */
};
/* Once the call has ended well. */
const struct shard_report *shard_put_report(const struct shard_put *put);
struct shard_progress {
	bool is_checked;   /* its files are being registered */
	uint64_t verified; /* of its bytes */
	uint64_t total;
};
/* How far it is. Once the call was started, until free; any thread. */
void shard_put_progress(const struct shard_put *put, struct shard_progress *out);
/* Nobody waits for it any more: it ends at the next slice or change, within this call when it waits
 * for its turn; as busy, unless it was through. Once the call was started, until free. */
void shard_put_give_up(struct shard_put *put);

/* The store is about to stop: large shards that wait for their turn end at once, as busy, and so do
 * those that come later; those that have it end at their next slice or change. Small ones go on,
 * but not for long. */
void shard_put_quiesce(struct store *store);

#endif
