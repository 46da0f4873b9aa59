/* Prints the files that a backup, or a store that was restored from one, does not have whole. */
#ifndef SERVER_COMMANDS_LACK_PRINT_H
#define SERVER_COMMANDS_LACK_PRINT_H

#include "base/format/json_node.h"
#include "storage/backup/backup_lack.h"

/* On stdout, a line for each. */
void lack_print_lines(const struct backup_lacks *lacks);
/* As an array of this name. */
void lack_print_json(
	const struct backup_lacks *lacks, const char *member, struct json_writer *json);

#endif
