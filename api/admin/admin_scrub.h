/* POST /-/scrub, only for root: verifies all sealed packs on the disk now. docs/protocol/admin.md,
 * "Scrub". `deltabucketd scrub` uses the same route over DIR/control.sock. A round may take hours:
 * it runs on scrub's thread while the exchange waits. */
#ifndef API_ADMIN_ADMIN_SCRUB_H
#define API_ADMIN_ADMIN_SCRUB_H

#include "api/exchange/exchange.h"
#include "storage/scrub/scrub.h"

enum next admin_scrub_begin(struct exchange *exchange);
enum next admin_scrub_finish(struct exchange *exchange);
enum next admin_scrub_resume(struct exchange *exchange);

/* The bodies, which the command line uses too. The request is {"resume"?: bool, "rate"?: MiB/s};
 * parsing fails with invalid for other types and values. */
int admin_scrub_parse(struct span json, struct scrub_request *out, struct error *err);
void admin_scrub_print(const struct scrub_request *request, struct buffer *out);

#endif
