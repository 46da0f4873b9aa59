/* When a publish uploads an anchor beside the delta. */
#ifndef CLIENT_PUBLISH_ANCHOR_POLICY_H
#define CLIENT_PUBLISH_ANCHOR_POLICY_H

#include "base/error.h"
#include "base/span.h"

struct anchor_policy {
	enum { ANCHOR_AUTO, ANCHOR_ALWAYS, ANCHOR_NEVER, ANCHOR_EVERY } when;
	uint64_t every; /* with ANCHOR_EVERY: in steps, at least 1 */
};
/* Reads "auto", "always", "never" or a number of at least 1; NULL means auto. */
int anchor_policy_parse(const char *text, struct anchor_policy *out, struct error *err);

/* Whether a step that has a delta gets an anchor too. `due` is the server's judgement: the server
 * knows what readers would have to fetch, including the anchors that it made itself. */
bool anchor_policy_wants(const struct anchor_policy *policy, uint64_t step, bool due);

#endif
