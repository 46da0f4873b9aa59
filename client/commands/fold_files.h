/* Folds deltas over a checkpoint on disk, for the commands fold and transcode. */
#ifndef CLIENT_COMMANDS_FOLD_FILES_H
#define CLIENT_COMMANDS_FOLD_FILES_H

#include "client/work/progress.h"
#include "weights/delta/fold.h"

/* `base` is a path, or NULL to fold without a base. The params' base and base_files are set here;
 * it must name at least one delta. *out_format is the format that was written. */
int fold_files(const char *base, const struct fold_params *params, const struct progress_sink *sink,
	struct delta_stats *out_stats, enum delta_format *out_format, struct error *err);

#endif
