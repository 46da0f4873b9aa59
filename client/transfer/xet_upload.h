/* Files into a bucket, over the content-addressed half: chunked and hashed here, named to the
 * server, and of what it lacks the chunks that it lacks, in xorbs over several connections. A file
 * appears whole, with its neighbours of one batch. Interrupted, it may be begun again: xorbs that
 * arrived are not sent twice. One call at a time per thread that calls. */
#ifndef CLIENT_TRANSFER_XET_UPLOAD_H
#define CLIENT_TRANSFER_XET_UPLOAD_H

#include "client/local/hash_cache.h"
#include "client/terminal/progress.h"
#include "client/transfer/xet_access.h"

struct xet_upload_file {
	const char *path;
	struct span key; /* remote_hub_takes it */
};
/* After a file is there, in the order of the files. */
typedef int xet_upload_done_fn(void *owner, size_t index, struct error *err);

struct xet_upload {
	const struct remote_options *options;
	struct remote *own;        /* the calling thread's connection */
	struct xet_access *access; /* to write */
	struct span bucket;
	unsigned parallel; /* connections at most */
	struct hash_cache *cache;
	struct progress *reading;  /* counts what is read to be hashed; may be NULL */
	struct progress *progress; /* counts content, whether it is sent or known; may be NULL */
	xet_upload_done_fn *done;  /* may be NULL */
	void *owner;
};
int xet_upload(const struct xet_upload *upload, const struct xet_upload_file *files, size_t count,
	struct error *err);

#endif
