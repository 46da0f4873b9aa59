#include "storage/disk_floor.h"

enum { SHARE = 8 };

int disk_floor_check(const struct disk_floor *const floor, struct error *const err)
{
	return disk_floor_check_room(floor, 0, err);
}

int disk_floor_check_room(const struct disk_floor *const floor, const uint64_t bytes, struct error *const err)
{
	struct file_space space;
	if (floor != NULL && store_health_may_write(floor->health, err) != 0)
		return -1;
	if (floor == NULL || floor->bytes + bytes == 0 || floor->files->space(floor->files, floor->folder, &space) != 0)
		return 0;
	const uint64_t kept = floor->bytes < space.all / SHARE ? floor->bytes : space.all / SHARE;
	if (space.free >= kept && space.free - kept >= bytes)
		return 0;
	return error_set(err, ERROR_NO_SPACE, "%s: %llu bytes of its file system are free, the last %llu are kept for deletes and the catalog, and %llu "
		"are to come.", floor->folder, (unsigned long long)space.free, (unsigned long long)kept, (unsigned long long)bytes);
}
