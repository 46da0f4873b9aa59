/* Bucket policies, as far as grants can say them: Allow statements of data actions, for everyone or
 * for accounts by name, on the bucket and on keys by prefix. What is beyond that is refused, never
 * passed over: a policy that was taken means what it says, or less where noted in
 * docs/protocol/s3.md. Pure functions; any thread. */
#ifndef API_S3_BUCKET_POLICY_DOCUMENT_H
#define API_S3_BUCKET_POLICY_DOCUMENT_H

#include "base/arena.h"
#include "storage/buckets/bucket_grant.h"

enum { POLICY_DOCUMENT_MAX_BYTES = 20 * 1024 };

/* The grants that the policy of `bucket` makes; texts in the arena. invalid (code MalformedPolicy)
 * when it is no policy of this bucket, unsupported when it asks for what grants cannot say,
 * too_large over BUCKET_GRANTS_MAX grants. */
int policy_document_parse(struct span json, struct span bucket, struct arena *arena,
	struct bucket_grant **out, size_t *out_count, struct error *err);
/* Whether any of these is to everyone. */
bool policy_document_is_public(const struct bucket_grant *grants, size_t count);

#endif
