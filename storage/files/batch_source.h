/* Finds the bytes that a line of a batch adds or copies. Internal to storage. */
#ifndef STORAGE_FILES_BATCH_SOURCE_H
#define STORAGE_FILES_BATCH_SOURCE_H

#include "storage/files/batch.h"
#include "storage/versions/version.h"

struct batch_search {
	struct db *db;
	const struct batch_params *params;
	int64_t bucket; /* the batch's */
	int64_t now_ms;
	/* how many more versions all lines of the change may look at. At 0 a search gives
	 * not_found, even if there are more versions (xet_content.h says why). */
	size_t *looks;
	struct arena *arena; /* for texts of the result */
};
/* Gives a version that has the line's file and that the caller may reach. For a registered file, or
 * the empty one, it describes a version without a row (sequence 0). not_found, also when the bucket
 * does not exist. For lines that do not delete, inside a change or a snapshot. */
int batch_source_find(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err);

#endif
