#include "storage/backup/backup_lack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void backup_lacks_add(struct backup_lacks *lacks, const char *name, const char *why)
{
	for (size_t i = 0; i < lacks->count; i++)
		if (strcmp(lacks->items[i].name, name) == 0)
			return;
	lacks->items = memory_make_room(
		lacks->items, lacks->count, &lacks->capacity, sizeof(*lacks->items));
	struct backup_lack *lack = &lacks->items[lacks->count++];
	snprintf(lack->name, sizeof(lack->name), "%s", name);
	snprintf(lack->why, sizeof(lack->why), "%s", why);
}

void backup_lacks_release(struct backup_lacks *lacks)
{
	free(lacks->items);
	*lacks = (struct backup_lacks){.count = 0};
}
