/* A list of files of the data folder that are not whole, each with the reason. One thread. */
#ifndef STORAGE_BACKUP_BACKUP_LACK_H
#define STORAGE_BACKUP_BACKUP_LACK_H

#include "storage/backup/backup_target.h"

struct backup_lack {
	char name[BACKUP_NAME_BYTES]; /* the path in the data folder */
	char why[ERROR_TEXT_BYTES];
};
struct backup_lacks { /* zero it */
	struct backup_lack *items;
	size_t count;
	size_t capacity;
};
/* The first reason for a file is the one that stays. */
void backup_lacks_add(struct backup_lacks *lacks, const char *name, const char *why);
void backup_lacks_release(struct backup_lacks *lacks); /* a zeroed one is fine */

#endif
