/* The rule for paths that come from files: they may only name something below a folder of ours. */
#ifndef WEIGHTS_MODEL_RELATIVE_PATH_H
#define WEIGHTS_MODEL_RELATIVE_PATH_H

#include "base/span.h"

enum { RELATIVE_PATH_MAX_BYTES = 1024 };

/* A valid path is one or more names joined by '/', in UTF-8 without control characters and at most
 * RELATIVE_PATH_MAX_BYTES long. A name has 1 to 255 bytes and does not begin with '.', so "." and
 * ".." and hidden files are excluded. */
bool relative_path_is_valid(struct span path);
/* Returns `folder`/`path`, NUL-terminated. The caller frees it. */
char *relative_path_join(const char *folder, struct span path);

#endif
