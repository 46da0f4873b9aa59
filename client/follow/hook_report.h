/* What a command of --exec tells `follow` besides its exit status: lines KEY=VALUE that it appends
 * to a file, whose path it finds in DELTABUCKET_REPORT. One key is known: pause_ms. Other lines are
 * ignored, so that commands may be newer than this program. */
#ifndef CLIENT_FOLLOW_HOOK_REPORT_H
#define CLIENT_FOLLOW_HOOK_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

#define HOOK_REPORT_NAME "exec.report"

/* The file's absolute path in the follower's folder, where nothing lies now. Heap, the caller's. */
char *hook_report_begin(const struct file_ops *files, const char *folder);
/* The longest of the pauses that the command has told, for it may have called several engines;
 * false when there is none. Removes the file. */
bool hook_report_end(const struct file_ops *files, const char *path, uint64_t *out_pause_ms);

#endif
