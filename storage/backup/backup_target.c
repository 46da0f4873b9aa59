#include "storage/backup/backup_target.h"

#include <string.h>

struct backup_target *backup_target_open(
	const char *place, bool makes, const struct file_ops *files, struct error *err)
{
	static const char s3[] = "s3://";
	if (strncmp(place, s3, sizeof(s3) - 1) == 0)
		return target_s3_open(place + sizeof(s3) - 1, err);
	return target_folder_open(place, makes, files, err);
}

void backup_target_free(struct backup_target *target)
{
	if (target != NULL)
		target->ops->free(target);
}
