/* Decides which keys are paths of files for clients of the Hub. S3 allows any key. Some keys lead
 * out of the folder that a client copies a bucket into, and one such key makes clients refuse the
 * whole bucket. Others cannot be the path of a file. The rules are in docs/protocol/hub.md,
 * "Files". */
#ifndef STORAGE_FILES_TREE_PATH_H
#define STORAGE_FILES_TREE_PATH_H

#include "base/error.h"
#include "base/span.h"

/* Whether listings show the path: no segment is empty, is "." or ".." (also as a piece between
 * backslashes), or begins with a backslash or with a drive letter and a colon. */
bool tree_path_is_shown(struct span path);
/* Whether a client may write the path: 0, or -1 with invalid and the rule that the path breaks. A
 * path that is not shown must not be written. */
int tree_path_check(struct span path, struct error *err);

#endif
