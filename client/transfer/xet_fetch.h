/* Downloads a range of a file as chunk records and writes it to its place in a part file. Every
 * chunk is decoded and hashed, so the caller can prove the whole file from the chunk ids. */
#ifndef CLIENT_TRANSFER_XET_FETCH_H
#define CLIENT_TRANSFER_XET_FETCH_H

#include "client/local/file_map.h"
#include "client/work/progress.h"
#include "client/transfer/xet_remote.h"

struct xet_fetch {
	struct chunk_id file;
	uint64_t size; /* of the file */
	const struct file_ops *files;
	int fd;                    /* of the part file */
	const char *path;          /* its path, for messages */
	struct progress *progress; /* may be NULL */
};
/* Downloads the bytes of `gap`, which must not be empty, and writes no others. *out has the chunks
 * with bytes in it, including those that cross an end and so lie there in part. The caller frees
 * *out, also after a failure. Fails with not_found when the server does not have the file, or no
 * longer; with corrupt when the bytes differ from what the server announced. */
int xet_fetch_range(const struct xet_fetch *fetch, const struct xet_remote *xet,
	const struct map_gap *gap, struct map_chunk **out, size_t *out_count, struct error *err);

#endif
