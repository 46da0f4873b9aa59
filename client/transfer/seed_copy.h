/* Local files that may hold parts of what is to be downloaded: their chunks are found in the store
 * by questions, and those that the wanted file has too are copied, each proven by its id. */
#ifndef CLIENT_TRANSFER_SEED_COPY_H
#define CLIENT_TRANSFER_SEED_COPY_H

#include "client/transfer/xet_fetch.h"

/* Copies what it can into fetch->fd and notes it in `map`. A seed that cannot be read is passed
 * over. -1 when the server or the disk fails. */
int seed_copy(const struct xet_fetch *fetch, const struct xet_remote *xet, const char *const *seeds,
	size_t seed_count, struct file_map *map, struct error *err);

#endif
