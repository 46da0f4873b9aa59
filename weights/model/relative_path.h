/* The rule for paths that come out of files: they name something below a folder of ours and nothing
 * else. */
#ifndef WEIGHTS_MODEL_RELATIVE_PATH_H
#define WEIGHTS_MODEL_RELATIVE_PATH_H

#include "base/span.h"

enum { RELATIVE_PATH_MAX_BYTES = 1024 };

/* One or more names joined by '/', UTF-8 without control characters, at most
 * RELATIVE_PATH_MAX_BYTES, no name empty, over 255 bytes or beginning with '.' (so neither . nor ..
 * nor anything hidden). */
bool relative_path_is_valid(struct span path);
/* `folder`/`path`, NUL-terminated; free() it. */
char *relative_path_join(const char *folder, struct span path);

#endif
