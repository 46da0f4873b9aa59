/* Files out of a bucket, over the content-addressed half: what lies in local files is copied,
 * what was downloaded before stays, the rest comes in ranges over several connections. A file
 * gets its name when all of it hashes to what the server promised, and has it for good when the
 * call returns. Resumable: beside PART_PATH lies PART_PATH.chunks. One call at a time per thread
 * that calls. */
#ifndef CLIENT_TRANSFER_XET_DOWNLOAD_H
#define CLIENT_TRANSFER_XET_DOWNLOAD_H

#include "client/local/hash_cache.h"
#include "client/terminal/progress.h"
#include "client/transfer/xet_access.h"

struct xet_download_file {
	struct chunk_id hash;
	uint64_t size;
	/* what appears, or is replaced; its folder exists. When it is there it is a seed */
	const char *path;
	const char *part_path;    /* beside it */
	const char *const *seeds; /* more of them */
	size_t seed_count;
};
/* After a file is there; in no order, one at a time. */
typedef int xet_download_done_fn(void *owner, size_t index, struct error *err);

struct xet_download {
	const struct file_ops *files; /* what it writes through */
	const struct remote_options *options;
	struct remote *own; /* the calling thread's connection */
	struct xet_access *access;
	unsigned parallel; /* connections at most */
	struct hash_cache *cache;
	struct progress *progress;  /* counts content; may be NULL */
	xet_download_done_fn *done; /* may be NULL */
	void *owner;
};
/* A file that is there already with the right hash is left alone. One whose chunks do not add up to
 * its hash is fetched a second time from the start before the call fails with digest_mismatch. Part
 * files stay behind a failure, for the next call. */
int xet_download(const struct xet_download *download, const struct xet_download_file *files,
	size_t count, struct error *err);

#endif
