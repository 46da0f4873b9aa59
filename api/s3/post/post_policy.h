/* The policy of an upload form: until when it holds, and what the fields and the file must be
 * (s3.md 2.6). Pure functions; any thread. */
#ifndef API_S3_POST_POST_POLICY_H
#define API_S3_POST_POST_POLICY_H

#include "api/s3/post/post_form.h"

struct post_policy { /* what is left to be judged when the file is there */
	uint64_t least_bytes;
	uint64_t most_bytes;
};

/* Reads `text` (base64 of JSON) and judges `form` by it. Every field but the policy, what belongs
 * to its signature and x-ignore-* must be named by a condition, the bucket too. 0; invalid: no
 * policy; denied: expired, or a condition does not hold. */
int post_policy_check(struct span text, const struct post_form *form, struct span bucket,
	int64_t now_ms, struct post_policy *out, struct error *err);

#endif
