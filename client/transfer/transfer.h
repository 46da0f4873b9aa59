/* Uploads and downloads of whole files over several connections, with one thread for each. A
 * download goes in ranges into a part file with a journal, is checked against its digest, synced
 * and only then renamed. When the call returns, the names are synced too. Each calling thread makes
 * one call at a time. */
#ifndef CLIENT_TRANSFER_TRANSFER_H
#define CLIENT_TRANSFER_TRANSFER_H

#include "base/digest/xxh3.h"
#include "base/file.h"
#include "chunker/chunk.h"
#include "client/remote/remote.h"
#include "client/work/progress.h"

enum { TRANSFER_PART_BYTES = 16 * 1024 * 1024, TRANSFER_PARALLEL = 4 };

struct transfer_options {
	const struct remote_options *remote;
	/* an open connection of the calling thread, used beside new ones; may be NULL */
	struct remote *own;
	const struct file_ops *files; /* downloads are written through it */
	unsigned parallel;            /* the most connections; 0: TRANSFER_PARALLEL */
	uint64_t part_bytes;          /* 0: TRANSFER_PART_BYTES */
	struct progress *progress;    /* may be NULL */
	_Atomic uint64_t *received;   /* counts the bytes of answers; may be NULL */
};

struct transfer_download {
	const char *target; /* of the requests */
	uint64_t size;
	bool has_digest;
	struct digest128 digest;
	bool has_hash;
	/* The file hash of Xet. Without a digest it can show that an existing file is the wanted
	 * one. It cannot show that a file is another one, because a file has a different hash for
	 * each way to cut it into chunks. */
	struct chunk_id hash;
	const char *etag; /* the object must still have it; NULL: not checked */
	/* appears when the download is whole and proven; an existing file is replaced */
	const char *path;
	const char *part_path; /* beside it: "<path>.part"; the journal is "<part_path>.journal" */
};
/* The folders must exist. A file that already exists with the right size and digest is not
 * downloaded. A file that arrives with a wrong digest is downloaded a second time from the start;
 * if that is wrong too, the call fails with digest_mismatch. After a failure, part files stay for
 * the next call. */
int transfer_download(const struct transfer_options *options, const struct transfer_download *files,
	size_t count, struct error *err);

struct transfer_upload {
	const char *target;
	const char *path;
	uint64_t size; /* the file must have this size */
};
/* Called after each file, under a lock, so one call at a time. -1 ends the transfer. May be
 * NULL. */
typedef int transfer_done_fn(void *owner, size_t index, struct error *err);
int transfer_upload(const struct transfer_options *options, const struct transfer_upload *files,
	size_t count, transfer_done_fn *done, void *owner, struct error *err);

/* Computes the digest of a whole file. */
int transfer_file_digest(const char *path, struct digest128 *out, struct error *err);

#endif
