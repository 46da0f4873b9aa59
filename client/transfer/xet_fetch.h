/* A range of a file, brought as chunk records and written to its place in a part file. Every chunk
 * is decoded and named by what it holds, so the caller can prove the whole from the names. */
#ifndef CLIENT_TRANSFER_XET_FETCH_H
#define CLIENT_TRANSFER_XET_FETCH_H

#include "client/local/file_map.h"
#include "client/terminal/progress.h"
#include "client/transfer/xet_remote.h"

struct xet_fetch {
	struct chunk_id file;
	uint64_t size; /* of the file */
	const struct file_ops *files;
	int fd;           /* where to write */
	const char *path; /* its name, for messages */
	struct progress *progress;
};
/* Brings bytes [from, to) and writes no others. *out: the chunks that have bytes there, also those
 * that cross an end and so lie there in part; heap, the caller's, also on failure. not_found when
 * the server has no such file (any more); corrupt when what it sends is not what it announced. */
int xet_fetch_range(const struct xet_fetch *fetch, const struct xet_remote *xet, uint64_t from,
	uint64_t to, struct map_chunk **out, size_t *out_count, struct error *err);

#endif
