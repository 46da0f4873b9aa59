/* Downloads files over the Xet face. Content that local files have is copied, content that was
 * downloaded before is kept, and the rest is downloaded in ranges over several connections. A file
 * gets its name when its content has the hash that the server promised; when the call returns, the
 * name is synced. Downloads resume with the journal PART_PATH.chunks. Each calling thread makes one
 * call at a time. */
#ifndef CLIENT_TRANSFER_XET_DOWNLOAD_H
#define CLIENT_TRANSFER_XET_DOWNLOAD_H

#include "client/local/hash_cache.h"
#include "client/work/progress.h"
#include "client/transfer/xet_access.h"

struct xet_download_file {
	struct chunk_id hash;
	uint64_t size;
	const char *name; /* of the object, in messages */
	/* where the file appears. Its folder must exist. An existing file is a seed, and is
	 * replaced */
	const char *path;
	const char *part_path;    /* beside it */
	const char *const *seeds; /* paths of further local files */
	size_t seed_count;
};
/* Called after each file, in any order, one call at a time. -1 ends the download. */
typedef int xet_download_done_fn(void *owner, size_t index, struct error *err);

struct xet_download {
	const struct file_ops *files; /* all files are written through it */
	const struct remote_options *options;
	struct remote *own; /* the calling thread's connection */
	struct xet_access *access;
	unsigned parallel; /* the most connections, at least 1 */
	struct hash_cache *cache;
	struct progress *progress;  /* counts content; may be NULL */
	xet_download_done_fn *done; /* may be NULL */
	void *owner;
};
/* A file that already exists with the right hash is left alone. A file whose chunks do not give its
 * hash is downloaded a second time from the start; if that is wrong too, the call fails with
 * digest_mismatch. After a failure, part files stay for the next call. */
int xet_download(const struct xet_download *download, const struct xet_download_file *files,
	size_t count, struct error *err);

#endif
