/* The files of a delta: their names by format, headers, metadata and index. All of it is known when
 * the layout is made, except the tensors' bytes. The layout gives each tensor the place where its
 * bytes go. */
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
	/* tensor digests of the result, for slime's checksums; NULL: the payload has checksums */
	const struct digest128 *next_digests;
	/* complete except payload_bytes and delta_bytes, to which the layout adds */
	struct delta_stats *stats;
	bool has_digests;
	/* a fold without a base has only the list of files that the deltas give: */
	bool is_told;
	const struct delta_result_file *told; /* NULL: the deltas give none */
	size_t told_count;
	bool told_folder;
};
/* Makes every file with its header, the index and the files without tensors. Sets the place of each
 * tensor of the payload. */
int delta_layout_make(struct delta_layout *layout, struct error *err);

#endif
