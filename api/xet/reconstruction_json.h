/* Prints reconstructions as JSON, in the first form (one URL for each range) or the second (several
 * ranges to a URL). Makes the fetch URLs. */
#ifndef API_XET_RECONSTRUCTION_JSON_H
#define API_XET_RECONSTRUCTION_JSON_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"
#include "storage/xet/reconstruction_plan.h"

struct reconstruction_json {
	struct exchange *exchange;         /* its token names the bucket */
	const struct reconstruction *plan; /* after reconstruction_place */
	const char *base;                  /* URLs begin with it (base_url.h) */
	bool as_stored;
	bool grouped;             /* the second form */
	struct json_writer *json; /* inside an object */
};
/* Prints "<name>": [terms [from, to) of the plan]. */
void reconstruction_json_terms(
	const struct reconstruction_json *reply, const char *name, size_t from, size_t to);
/* Prints "fetch_info" or "xorbs". too_large when a range lies in more packs than a URL can name. */
int reconstruction_json_ranges(const struct reconstruction_json *reply, struct error *err);

#endif
