/* Where the bytes of a batch's line come from. Internal to storage. */
#ifndef STORAGE_FILES_BATCH_SOURCE_H
#define STORAGE_FILES_BATCH_SOURCE_H

#include "storage/files/batch.h"
#include "storage/versions/version.h"

struct batch_search {
	struct db *db;
	const struct batch_params *params;
	int64_t bucket; /* the batch's */
	int64_t now_ms;
	/* so many versions may still be looked at, by all lines of the change; behind that it is
	 * not_found, whatever others there are (why: xet_content.h) */
	size_t *looks;
	struct arena *arena; /* for texts of what is found */
};
/* Inside a change: a version that has the file and that the caller may reach, or, without a row
 * (sequence 0), what a registered file or the empty one would be as a version. not_found, also for
 * buckets that are not there. */
int batch_source_find(const struct batch_search *search, const struct batch_line *line,
	struct version *out, struct error *err);

#endif
