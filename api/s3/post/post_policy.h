/* The policy of an upload form: until when the form may be used, and what its fields and the size
 * of its file must be. Pure functions; any thread. */
#ifndef API_S3_POST_POST_POLICY_H
#define API_S3_POST_POST_POLICY_H

#include "api/s3/post/post_form.h"

struct post_policy { /* the bounds of the file's size, to be judged as it comes */
	uint64_t least_bytes;
	uint64_t most_bytes;
};

/* Reads `text` (base64 of JSON) and judges `form` by it. A condition must name the bucket and every
 * field, except for the policy itself, the fields of its signature and x-ignore-*. invalid when the
 * text is not a policy, denied when it has expired or a condition does not hold. */
int post_policy_check(struct span text, const struct post_form *form, struct span bucket,
	int64_t now_ms, struct post_policy *out, struct error *err);

#endif
