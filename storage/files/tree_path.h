/* Which keys are paths of files to clients of the Hub. Keys of S3 are free; some of them would lead
 * out of the folder that a client copies a bucket into, so that clients refuse the whole bucket
 * over one of them, and some cannot be a file's path. Rules: docs/protocol/hub.md, "Files". */
#ifndef STORAGE_FILES_TREE_PATH_H
#define STORAGE_FILES_TREE_PATH_H

#include "base/error.h"
#include "base/span.h"

/* Whether listings show it: no segment is empty, "." or "..", begins with a backslash or is a drive
 * letter with its colon. */
bool tree_path_is_shown(struct span path);
/* Whether a client may write it: invalid with the rule that it breaks. What is not shown may not be
 * written. */
int tree_path_check(struct span path, struct error *err);

#endif
