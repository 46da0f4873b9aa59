/* What a backup has done, for people and as JSON, on the standard output. */
#ifndef SERVER_COMMANDS_BACKUP_REPORT_H
#define SERVER_COMMANDS_BACKUP_REPORT_H

#include "storage/backup/backup.h"
#include "storage/backup/backup_verify.h"

/* One line, or one JSON object on a line. `pruned` NULL: nothing was to be pruned. */
void backup_report_print(
	const struct backup_report *report, const struct backup_pruned *pruned, bool json);
void backup_report_print_verified(const struct backup_verified *verified, bool json);
/* On the standard error: that nothing could be noted, if so. */
void backup_report_tell_unnoted(const struct backup_report *report);
/* On the standard error: why nothing was pruned. */
void backup_report_tell_reader(const struct backup_pruned *pruned);

#endif
