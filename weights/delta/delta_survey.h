/* What a delta does to each tensor, for people who want to know: `inspect --stats`. */
#ifndef WEIGHTS_DELTA_DELTA_SURVEY_H
#define WEIGHTS_DELTA_DELTA_SURVEY_H

#include "weights/codec/block_code.h"
#include "weights/delta/delta_reader.h"
#include "weights/model/tensor_source.h"

struct delta_survey_row {
	struct span name;
	enum dtype dtype; /* with a base */
	/* of what is coded of the tensor, without the safetensors around it */
	uint64_t payload_bytes;
	/* with a base; without one only `changed`, where the format tells */
	struct block_code_stats stats;
};
struct delta_survey {
	bool has_base;
	/* of the whole checkpoint; with a base, or where the delta says it; else 0 */
	uint64_t elements;
	struct delta_survey_row total;
	struct delta_survey_row *rows; /* per changed tensor, sorted by name */
	size_t count;
};
/* `base` NULL: without. Spans are the reader's. Needs delta_survey_release in any case. Fails as
 * reading the delta does; whether the base is the right one is proven by the blocks alone. */
int delta_survey_make(struct delta_survey *survey, const struct delta_reader *reader,
	struct tensor_source *base, unsigned threads, struct error *err);
void delta_survey_release(struct delta_survey *survey);

#endif
