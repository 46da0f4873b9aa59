/* When a publish uploads a full copy beside the delta. */
#ifndef CLIENT_PUBLISH_ANCHOR_POLICY_H
#define CLIENT_PUBLISH_ANCHOR_POLICY_H

#include "base/error.h"
#include "base/span.h"

struct anchor_policy {
	enum { ANCHOR_AUTO, ANCHOR_ALWAYS, ANCHOR_NEVER, ANCHOR_EVERY } when;
	uint64_t every; /* steps, with ANCHOR_EVERY */
};
/* "auto", "always", "never" or a number from 1 on; NULL is auto. */
int anchor_policy_parse(const char *text, struct anchor_policy *out, struct error *err);

/* Whether a step that has a delta gets an anchor too; `due`: the server said so. It knows what
 * readers would have to fetch, the anchors it made itself included. */
bool anchor_policy_wants(const struct anchor_policy *policy, uint64_t step, bool due);

#endif
