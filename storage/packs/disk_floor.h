/* Whether there is room for new content. The last bytes of a disk are kept for deletes, the catalog
 * and gc: without them a full store could neither be emptied nor started. Every caller that is
 * about to store content checks first. Any thread. Internal to storage. */
#ifndef STORAGE_PACKS_DISK_FLOOR_H
#define STORAGE_PACKS_DISK_FLOOR_H

#include "base/file.h"
#include "storage/packs/store_health.h"

struct disk_floor {
	const struct file_ops *files; /* borrowed, like `folder` */
	const char *folder;           /* on the disk in question */
	struct store_health *health;  /* borrowed; NULL: the store accepts writes */
	/* How much must stay free, of a small disk at most an eighth. 0: nothing is kept. */
	uint64_t bytes;
};
/* read_only when the store accepts no writes; no_space when less is free. A disk whose space cannot
 * be read does not count as full: a write to it will fail. `floor` may be NULL: no limit. */
int disk_floor_check(const struct disk_floor *floor, struct error *err);
/* The same for content of this length, if it is known before the content comes. */
int disk_floor_check_room(const struct disk_floor *floor, uint64_t bytes, struct error *err);
/* How much must stay free of a disk of this size. */
uint64_t disk_floor_kept(const struct disk_floor *floor, const struct file_space *space);
/* Whether the error is such a refusal, unchanged: it has numbers and names no file. */
bool disk_floor_refuses(const struct error *err);

#endif
