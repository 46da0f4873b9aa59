/* Packs as objects of an S3 store: PREFIX/packs/xx/NAME, with a block cache on this machine
 * (block_cache.h). A pack that is being written lies in the cache until the store has it. Any
 * thread; ARCHITECTURE.md, invariant 7, is what makes the cache's bytes safe.
 *
 * `open` asks nobody: that a pack is absent shows at its first read (not_found). The three calls on
 * doubtful files do nothing and list nothing, since nothing is moved at the store. A file that is
 * removed while it is open can be read as far as its blocks are here. Failures of the store are
 * busy (s3_client.h). */
#ifndef STORAGE_FAR_FAR_BACKEND_H
#define STORAGE_FAR_FAR_BACKEND_H

#include "storage/far/far_place.h"
#include "storage/packs/backend.h"

struct far_options { /* all is copied */
	const struct far_place *place;
	const char *ca_file;      /* PEM, trusted alone; NULL: the system's CAs */
	const char *region;       /* NULL: us-east-1 */
	const char *cache_folder; /* made when it is absent; one process at a time */
	uint64_t cache_bytes;
	size_t part_bytes;    /* 0: 16 MiB */
	uint32_t block_bytes; /* 0: 4 MiB */
	unsigned tries;       /* of one request; 0: 5 */
	int64_t pause_ms;     /* before the second one; 0: 1 s */
};
/* Asks the store nothing. */
struct backend *far_backend_open(const struct far_options *options, struct error *err);

#endif
