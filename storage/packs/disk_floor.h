/* Whether new content may come. The last bytes of a disk are kept for deletes, the catalog and the
 * garbage collection: without them a store that is full could neither be emptied nor started.
 * Whoever is about to store content looks first. Any thread. Internal to storage. */
#ifndef STORAGE_PACKS_DISK_FLOOR_H
#define STORAGE_PACKS_DISK_FLOOR_H

#include "base/file.h"
#include "storage/packs/store_health.h"

struct disk_floor {
	const struct file_ops *files; /* borrowed, as `folder` */
	const char *folder;           /* on the disk that is meant */
	struct store_health *health;  /* borrowed; NULL: the store takes writes */
	/* wanted to stay free; of a small disk an eighth at most. 0: nothing is kept */
	uint64_t bytes;
};
/* read_only when the store takes no writes; no_space when there is less. A disk that cannot be
 * asked is not full: writing to it will tell. NULL is no floor. */
int disk_floor_check(const struct disk_floor *floor, struct error *err);
/* The same for content of so many bytes, as far as its length is known before it comes. */
int disk_floor_check_room(const struct disk_floor *floor, uint64_t bytes, struct error *err);
/* Whether this is such a refusal, as it was said: it has the numbers and names no file. */
bool disk_floor_refuses(const struct error *err);

#endif
