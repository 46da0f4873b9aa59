/* A shard that a client uploads: it registers files by their hash, made of xorbs that are stored
 * here. The whole shard is verified (shard_check.h) before any of it counts. Then the xorbs that it
 * names are promised again, and its files are registered for the bucket and account (xet_file.h),
 * in changes of some hundred rows. The packs of the xorbs are referred from the check until the
 * last change is done. A file that is known already keeps its row. Four large shards are checked at
 * a time; others wait for their turn. A store that stops turns large shards away wherever they are.
 * After that, and after a crash, some of the files may be registered. That is harmless: the client
 * sends the shard again. */
#ifndef STORAGE_XET_SHARD_PUT_H
#define STORAGE_XET_SHARD_PUT_H

#include "base/stream.h"
#include "storage/core/call.h"

struct shard_put;
struct shard_put_params {
	int64_t bucket_id;
	struct span account; /* copied */
	/* A helper calls it when a write that answered SINK_WAIT may be tried again. NULL is
	 * fine. */
	void (*room)(void *owner);
	void *owner; /* of room */
};
struct shard_put *shard_put_open(struct store *store, const struct shard_put_params *params);
/* Before the call is started. too_large over 65 MiB. */
enum sink_result shard_put_write(struct shard_put *put, struct span bytes, struct error *err);
/* The call that checks and registers the shard. invalid: the bytes are not a shard, or it names
 * xorbs that are not stored here, or it does not prove what it says; nothing was registered.
 * no_space: the same for a xorb that is not stored here, when the disk has no room for a whole
 * xorb, which is then most likely why it is missing. busy: try again; when the store stops, some
 * files may be registered. The put is part of the call: call_free frees it, also when it was never
 * started. */
struct call *shard_put_call(struct shard_put *put);

struct shard_report {
	size_t files;     /* without empty ones */
	size_t new_files; /* those of them that were not known before */
	size_t xorbs;     /* that the shard names */
};
/* After the call has ended well. */
const struct shard_report *shard_put_report(const struct shard_put *put);
struct shard_progress {
	bool is_checked;   /* the files are being registered */
	uint64_t verified; /* bytes */
	uint64_t total;    /* bytes */
};
/* Tells how far the shard is. From the start of the call until free; any thread. */
void shard_put_progress(const struct shard_put *put, struct shard_progress *out);
/* Ends the shard early, with busy: within this call when it waits for its turn, else at its next
 * slice or change. No effect when it has finished. From the start of the call until free; any
 * thread. */
void shard_put_give_up(struct shard_put *put);

/* For a store that is about to stop. Large shards that wait for their turn, or come later, end at
 * once with busy; those that have their turn end at their next slice or change. Small ones
 * continue, but not for long. */
void shard_put_quiesce(struct store *store);

#endif
