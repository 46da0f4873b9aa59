/* Uploads files over the Xet face. The client cuts and hashes them and names the hashes to the
 * server; of the files that the server lacks, it sends the chunks that the server lacks, in xorbs
 * over several connections. A file appears whole, together with the other files of its batch. An
 * interrupted upload may be repeated: xorbs that have arrived are not sent twice. Each calling
 * thread makes one call at a time. */
#ifndef CLIENT_TRANSFER_XET_UPLOAD_H
#define CLIENT_TRANSFER_XET_UPLOAD_H

#include "client/local/hash_cache.h"
#include "client/work/progress.h"
#include "client/transfer/xet_access.h"

struct xet_upload_file {
	const char *path;
	struct span key; /* must pass remote_hub_takes */
};
/* Called after a file has appeared, in the order of the files. -1 ends the upload. */
typedef int xet_upload_done_fn(void *owner, size_t index, struct error *err);

struct xet_upload {
	const struct remote_options *options;
	struct remote *own;        /* the calling thread's connection */
	struct xet_access *access; /* with the right to write */
	struct span bucket;
	unsigned parallel; /* the most connections, at least 1 */
	struct hash_cache *cache;
	struct progress *reading;  /* counts bytes that are read for hashing; may be NULL */
	struct progress *progress; /* counts content, both sent and known; may be NULL */
	xet_upload_done_fn *done;  /* may be NULL */
	void *owner;
};
int xet_upload(const struct xet_upload *upload, const struct xet_upload_file *files, size_t count,
	struct error *err);

#endif
