/* The floor is the wanted number of bytes, on a small disk an eighth of it. Refusals begin with the
 * same words, by which disk_floor_refuses knows them. */
#include "storage/packs/disk_floor.h"

#include <stdio.h>
#include <string.h>

enum { SHARE = 8 };

static const char REFUSAL[] = "The server's disk is full: ";

static int refuse(uint64_t free, uint64_t kept, uint64_t needed, struct error *err);
static double megabytes(uint64_t bytes);

bool disk_floor_refuses(const struct error *err)
{
	return err->kind == ERROR_NO_SPACE && strncmp(err->text, REFUSAL, sizeof(REFUSAL) - 1) == 0;
}

int disk_floor_check(const struct disk_floor *floor, struct error *err)
{
	return disk_floor_check_room(floor, 0, err);
}

int disk_floor_check_room(const struct disk_floor *floor, uint64_t bytes, struct error *err)
{
	struct file_space space;
	if (floor != NULL && store_health_may_write(floor->health, err) != 0)
		return -1;
	if (floor == NULL || floor->bytes + bytes == 0 ||
		floor->files->space(floor->files, floor->folder, &space) != 0)
		return 0;
	const uint64_t kept = disk_floor_kept(floor, &space);
	if (space.free >= kept && space.free - kept >= bytes)
		return 0;
	return refuse(space.free, kept, bytes, err);
}

uint64_t disk_floor_kept(const struct disk_floor *floor, const struct file_space *space)
{
	return floor->bytes < space->all / SHARE ? floor->bytes : space->all / SHARE;
}

static int refuse(uint64_t free, uint64_t kept, uint64_t needed, struct error *err)
{
	char need[64] = "";
	if (needed > 0)
		snprintf(need, sizeof(need), ", and %.1f MB are needed", megabytes(needed));
	return error_set(err, ERROR_NO_SPACE,
		"%s%.1f MB are free, the last %.1f MB are kept for deletes and the catalog"
		" (disk_reserve)%s.",
		REFUSAL, megabytes(free), megabytes(kept), need);
}

static double megabytes(uint64_t bytes)
{
	return (double)bytes / 1e6;
}
