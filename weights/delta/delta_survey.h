/* Counts what a delta changes in each tensor, for `inspect --stats`. */
#ifndef WEIGHTS_DELTA_DELTA_SURVEY_H
#define WEIGHTS_DELTA_DELTA_SURVEY_H

#include "weights/codec/block_code.h"
#include "weights/delta/delta_reader.h"
#include "weights/model/tensor_source.h"

struct delta_survey_row {
	struct span name;
	enum dtype dtype; /* only with a base */
	/* bytes of the encoded tensor, without the safetensors around it */
	uint64_t payload_bytes;
	/* without a base only `changed`, if the format tells it */
	struct block_code_stats stats;
};
struct delta_survey {
	bool has_base;
	/* elements of the whole checkpoint; 0 without a base when the delta does not say it */
	uint64_t elements;
	struct delta_survey_row total;
	struct delta_survey_row *rows; /* one for each changed tensor, sorted by name */
	size_t count;
};
/* `base` may be NULL. Spans point into the reader. *survey needs delta_survey_release, also after a
 * failure. Fails as reads of the delta do; only the blocks prove that the base is the right one. */
int delta_survey_make(struct delta_survey *survey, const struct delta_reader *reader,
	struct tensor_source *base, unsigned threads, struct error *err);
void delta_survey_release(struct delta_survey *survey);

#endif
