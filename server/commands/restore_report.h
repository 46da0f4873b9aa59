/* What a restore has done, and the moments of a place, for people and as JSON, on the standard
 * output. */
#ifndef SERVER_COMMANDS_RESTORE_REPORT_H
#define SERVER_COMMANDS_RESTORE_REPORT_H

#include "storage/backup/restore.h"

void restore_report_list(const struct backup_moments *moments, bool json);
/* `data` is the folder as the caller named it. */
void restore_report_print(const struct backup_moment *moment, const struct restore_report *report,
	const char *data, bool json);

#endif
