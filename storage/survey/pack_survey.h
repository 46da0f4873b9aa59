/* Packs as operators see them: their records, what of them is live and until when they are
 * promised. Any thread. */
#ifndef STORAGE_SURVEY_PACK_SURVEY_H
#define STORAGE_SURVEY_PACK_SURVEY_H

#include "storage/core/call.h"
#include "storage/packs/segment.h"

enum { PACK_SURVEY_MAX = 1000 };

struct surveyed_pack {
	int64_t number;
	struct pack_record record;
	/* An estimate, as if all chunks were of one size. Not known before gc has looked at the
	 * pack in this life, unless the pack was made in it. */
	bool knows_live;
	uint64_t live_bytes;
	int64_t promised_ms; /* when the last promise in it ends; 0: all have ended */
	uint64_t damaged;    /* chunks that are known to be damaged */
};
struct pack_page {
	struct surveyed_pack packs[PACK_SURVEY_MAX]; /* by number, rising */
	size_t count;
	bool more;
};

/* Reads up to `limit` (1 to PACK_SURVEY_MAX) packs above the number `after`. Waits for the
 * catalog. */
int pack_survey_read(
	struct store *store, int64_t after, size_t limit, struct pack_page *out, struct error *err);
/* A call (storage/core/call.h) that does so on a helper. */
struct call *pack_survey_call(struct store *store, int64_t after, size_t limit);
/* After its success; lives as long as the call. */
const struct pack_page *pack_survey_result(const struct call *call);

#endif
