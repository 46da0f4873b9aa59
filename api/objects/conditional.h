/* Conditions of a read: If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since, in the
 * order of RFC 9110 as S3 applies it (docs/parts-protocol-s3.md, "Conditional reads"). Conditions
 * of writes are storage's (object_conditions). Any thread. */
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
/* `etag` without quotes. Dates are compared by the second; one that cannot be read, and an
 * If-Modified-Since after `now_ms`, count as absent. */
enum conditional_result conditional_judge(const struct conditional *conditional, const char *etag,
	int64_t modified_ms, int64_t now_ms);
/* Is `etag` in a comma-separated list of tags (quotes and W/ ignored), or is the list "*"? */
bool conditional_etag_listed(struct span list, const char *etag);
/* If-Range: may a range of this version be served? True when the header is absent. A weak tag never
 * is a match. */
bool conditional_range_holds(struct span if_range, const char *etag, int64_t modified_ms);

#endif
