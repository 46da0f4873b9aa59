/* The files of a delta: their names by format, headers, metadata and index. Everything is known
 * when a layout is made but the tensors' bytes, which go where it has told the tensors. */
#ifndef WEIGHTS_DELTA_DELTA_LAYOUT_H
#define WEIGHTS_DELTA_DELTA_LAYOUT_H

#include "weights/delta/delta_metadata.h"
#include "weights/delta/payload.h"

/* Whether a delta of this format is a folder. */
bool delta_layout_is_folder(enum delta_format format, const struct model_files *next_files);

struct delta_layout {
	struct payload *payload;
	struct staging *staging;
	const struct delta_encode_params *params;
	/* of the tensors; slime's checksums. NULL: payload's checksums are set */
	const struct digest128 *next_digests;
	/* complete but for payload_bytes and delta_bytes, which are added to */
	struct delta_stats *stats;
	bool has_digests;
	/* A fold without a base knows of files what the deltas say: */
	bool is_told;
	const struct delta_result_file *told; /* NULL: nothing */
	size_t told_count;
	bool told_folder;
};
/* Makes every file with its header, the index and the files without tensors, and tells the tensors
 * of the payload where they belong. */
int delta_layout_make(struct delta_layout *layout, struct error *err);

#endif
