/* The conditions of a read: If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since, in
 * the order of RFC 9110 as S3 applies it (docs/protocol/s3.md, GetObject). Storage judges the
 * conditions of writes (object_conditions). Any thread. */
#ifndef API_OBJECTS_CONDITIONAL_H
#define API_OBJECTS_CONDITIONAL_H

#include "api/exchange/exchange.h"

struct conditional { /* header values as sent; empty: absent */
	struct span if_match;
	struct span if_unmodified_since;
	struct span if_none_match;
	struct span if_modified_since;
};

enum conditional_result { CONDITIONAL_GO_ON, CONDITIONAL_NOT_MODIFIED, CONDITIONAL_FAILED };

void conditional_read(struct exchange *exchange, struct conditional *out);
/* `etag` has no quotes. Dates are compared by the second. A malformed date counts as absent, and so
 * does an If-Modified-Since later than `now_ms`. */
enum conditional_result conditional_judge(const struct conditional *conditional, const char *etag,
	int64_t modified_ms, int64_t now_ms);
/* Whether `etag` is in a comma-separated list of tags (quotes and W/ are ignored), or the list is
 * "*". */
bool conditional_etag_listed(struct span list, const char *etag);
/* Whether If-Range allows serving a range of this version. True when the header is absent. A weak
 * tag never matches. */
bool conditional_range_holds(struct span if_range, const char *etag, int64_t modified_ms);

#endif
