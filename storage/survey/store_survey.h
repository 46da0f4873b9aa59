/* The store in a few sums: what its packs take and what of it is live, what its buckets show, and
 * what is kept for Hub clients although no version needs it. Any thread. */
#ifndef STORAGE_SURVEY_STORE_SURVEY_H
#define STORAGE_SURVEY_STORE_SURVEY_H

#include "storage/core/call.h"

struct store_survey {
	uint64_t packs;
	uint64_t pack_bytes;
	/* by the estimates of pack_survey.h; a pack that is not known counts whole */
	uint64_t live_bytes;
	uint64_t unknown; /* packs whose live bytes are not known */
	uint64_t open;    /* packs that still grow */
	uint64_t objects; /* current versions that are not delete markers, in all buckets */
	uint64_t logical_bytes;
	uint64_t promised_bytes;   /* of the packs that a promise keeps whole */
	int64_t promised_ms;       /* the end of the last promise; 0: there is none */
	uint64_t registered_bytes; /* of registered files that no version uses (xet_file.h) */
	int64_t registered_ms;     /* until which they stay at most; 0: there are none */
	uint64_t set_aside;        /* files in DIR/set-aside */
	uint64_t set_aside_bytes;
};

/* A call (storage/core/call.h) that reads all packs and registered files slice by slice on a
 * helper. */
struct call *store_survey_call(struct store *store);
/* After its success; lives as long as the call. */
const struct store_survey *store_survey_result(const struct call *call);

#endif
