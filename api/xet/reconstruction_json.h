/* Reconstructions as JSON, in the first form (one URL for each range) and the second (several
 * ranges to a URL), with fetch URLs that are signed here. */
#ifndef API_XET_RECONSTRUCTION_JSON_H
#define API_XET_RECONSTRUCTION_JSON_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/xet/reconstruction_plan.h"

struct reconstruction_json {
	struct exchange *exchange;         /* whose token names the bucket */
	const struct reconstruction *plan; /* with its offsets */
	const char *base;                  /* URLs begin with it (base_url.h) */
	bool as_stored;
	bool grouped;             /* the second form */
	struct json_writer *json; /* inside an object */
};
/* "<name>": [terms [from, to) of the plan]. */
void reconstruction_json_terms(
	const struct reconstruction_json *reply, const char *name, size_t from, size_t to);
/* "fetch_info" or "xorbs". too_large when a range lies in more packs than a URL can name. */
int reconstruction_json_ranges(const struct reconstruction_json *reply, struct error *err);

#endif
