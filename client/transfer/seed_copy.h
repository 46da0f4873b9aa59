/* Copies parts of a download from local files (seeds). Questions to the server show where the
 * chunks of a seed lie in the store; the chunks that the wanted file also has are copied, each
 * proven by its id. */
#ifndef CLIENT_TRANSFER_SEED_COPY_H
#define CLIENT_TRANSFER_SEED_COPY_H

#include "client/transfer/xet_fetch.h"

/* Copies what it can into fetch->fd and notes it in `map`. Seeds that cannot be read are ignored.
 * -1 when the server or the disk fails. */
int seed_copy(const struct xet_fetch *fetch, const struct xet_remote *xet, const char *const *seeds,
	size_t seed_count, struct file_map *map, struct error *err);

#endif
