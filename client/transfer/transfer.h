/* Many bytes at once: files up and down over several connections, a thread each. Downloads come
 * in ranges into a part file with a resume journal, are checked against their digest, synced and
 * only then renamed to their name; the names last when the call returns. One call at a time per
 * thread that calls. */
#ifndef CLIENT_TRANSFER_TRANSFER_H
#define CLIENT_TRANSFER_TRANSFER_H

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "chunker/chunk.h"
#include "client/remote/remote.h"
#include "client/terminal/progress.h"

enum { TRANSFER_PART_BYTES = 16 * 1024 * 1024, TRANSFER_PARALLEL = 4 };

struct transfer_options {
	const struct remote_options *remote;
	/* an open connection of the calling thread to use along with new ones; may be NULL */
	struct remote *own;
	const struct file_ops *files; /* what downloads are written through */
	unsigned parallel;            /* connections at most; 0: TRANSFER_PARALLEL */
	uint64_t part_bytes;          /* 0: TRANSFER_PART_BYTES */
	struct progress *progress;    /* may be NULL */
	_Atomic uint64_t *received;   /* counts bytes of answers; may be NULL */
};

struct transfer_download {
	const char *target; /* request target */
	uint64_t size;
	bool has_digest;
	struct digest128 digest;
	bool has_hash;
	/* the file hash of Xet: tells a file that is there already where there is no digest. It
	 * proves no other, since one file has as many hashes as ways to cut it into chunks */
	struct chunk_id hash;
	const char *etag; /* NULL: none; the object must still have it */
	/* what appears when all is there and proven; replaced when it exists */
	const char *path;
	const char *part_path; /* beside it: "<path>.part"; the journal is "<part_path>.journal" */
};
/* Folders must exist. A file that is there already with the right size and digest is not fetched
 * again. A file whose digest is wrong is fetched a second time from the start before the call fails
 * with digest_mismatch. Part files stay behind a failure, for the next call. */
int transfer_download(const struct transfer_options *options, const struct transfer_download *files,
	size_t count, struct error *err);

struct transfer_upload {
	const char *target;
	const char *path;
	uint64_t size; /* the file must have it */
};
/* `done(owner, index)` is called after each file, under a lock: one at a time. It may be NULL. */
typedef int transfer_done_fn(void *owner, size_t index, struct error *err);
int transfer_upload(const struct transfer_options *options, const struct transfer_upload *files,
	size_t count, transfer_done_fn *done, void *owner, struct error *err);

/* Digest of a whole file. */
int transfer_file_digest(const char *path, struct digest128 *out, struct error *err);

#endif
