#include "tests/support/library_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT "a file that goes up and comes down again"

static void count_told(void *owner, const char *what, const char *name, uint64_t bytes);
static void write_text(const char *path);

void walk_sync(const struct walk *walk)
{
	struct deltabucket_sync_settings settings = DELTABUCKET_SYNC_SETTINGS;
	struct deltabucket_synced synced = DELTABUCKET_SYNCED;
	struct deltabucket_error err = {0};
	char up[WALK_PATH_BYTES], file[WALK_PATH_BYTES], down[WALK_PATH_BYTES];
	int told = 0;
	walk_path(walk, "up", up);
	walk_path(walk, "up/file", file);
	walk_path(walk, "down", down);
	if (mkdir(up, 0755) != 0)
		abort();
	write_text(file);
	settings.bucket = "walks";
	settings.prefix = "synced";
	settings.folder = up;
	settings.direction = "up";
	settings.told = count_told;
	settings.owner = &told;
	walk_expect(deltabucket_sync(walk->client, &settings, &synced, NULL, &err) == 0 &&
			synced.moved == 1,
		"sync up", &err);
	settings.folder = down;
	settings.direction = "down";
	settings.deletes = 1;
	walk_expect(deltabucket_sync(walk->client, &settings, NULL, NULL, &err) == 0 && told == 2,
		"sync down", &err);
	settings.prefix = "nothing";
	walk_expect(deltabucket_sync(walk->client, &settings, &synced, NULL, &err) == -1 &&
			strcmp(err.kind, "not_found") == 0,
		"sync from nothing", &err);
}

static void count_told(void *owner, const char *what, const char *name, uint64_t bytes)
{
	if (what == NULL || name == NULL || bytes != strlen(TEXT))
		abort();
	++*(int *)owner;
}

static void write_text(const char *path)
{
	FILE *const file = fopen(path, "w");
	if (file == NULL || fputs(TEXT, file) < 0 || fclose(file) != 0)
		abort();
}
