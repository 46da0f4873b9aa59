#include "storage/disk_floor.h"

enum { SHARE = 8 };

int disk_floor_check(const struct disk_floor *const floor, struct error *const err)
{
	struct file_space space;
	if (floor != NULL && store_health_may_write(floor->health, err) != 0)
		return -1;
	if (floor == NULL || floor->bytes == 0 || floor->files->space(floor->files, floor->folder, &space) != 0)
		return 0;
	const uint64_t kept = floor->bytes < space.all / SHARE ? floor->bytes : space.all / SHARE;
	if (space.free >= kept)
		return 0;
	return error_set(err, ERROR_NO_SPACE, "%s: %llu bytes of its file system are free, and the last %llu are kept for deletes and the catalog.",
		floor->folder, (unsigned long long)space.free, (unsigned long long)kept);
}
