/* Folding deltas over a checkpoint that lies in files: what the commands fold and transcode do. */
#ifndef CLIENT_COMMANDS_FOLD_FILES_H
#define CLIENT_COMMANDS_FOLD_FILES_H

#include "weights/delta/fold.h"

/* `base` is a path, or NULL to fold without one; the params' base and base_files are set here.
 * *out_format: what was written. */
int fold_files(const char *base, const struct fold_params *params, bool shows_progress,
	struct delta_stats *out_stats, enum delta_format *out_format, struct error *err);

#endif
