/* When a publish uploads a full copy beside the delta. */
#ifndef CLIENT_ANCHOR_POLICY_H
#define CLIENT_ANCHOR_POLICY_H

#include "base/error.h"
#include "base/span.h"

struct anchor_policy {
	enum { ANCHOR_AUTO, ANCHOR_ALWAYS, ANCHOR_NEVER, ANCHOR_EVERY } when;
	uint64_t every; /* steps, with ANCHOR_EVERY */
};
/* "auto", "always", "never" or a number from 1 on; NULL is auto. */
int anchor_policy_parse(const char *text, struct anchor_policy *out, struct error *err);

/* What was published since the last anchor. */
struct anchor_history {
	bool has_anchor;
	uint64_t anchor_bytes;
	uint64_t delta_bytes; /* of the deltas since */
	uint64_t links;       /* how many */
};
enum { ANCHOR_LINKS_MAX = 64, ANCHOR_SHARE_PERCENT = 30 };

/* Whether the next step, whose delta has `delta_bytes`, wants an anchor. A run without one always does. */
bool anchor_policy_wants(const struct anchor_policy *policy, const struct anchor_history *history, uint64_t step, uint64_t delta_bytes);
/* Books a published step; `anchor_bytes` 0: it had no anchor. */
void anchor_history_add(struct anchor_history *history, uint64_t anchor_bytes, uint64_t delta_bytes);

#endif
