/* Turns bucket policies into grants. Grants can express Allow statements with actions on data, for
 * everyone or for named accounts, on the bucket and on keys by prefix. All other policies are
 * refused, and nothing in a policy is ignored: an accepted policy allows what it says, or less
 * where docs/protocol/s3.md says so. Pure functions; any thread. */
#ifndef API_S3_BUCKET_POLICY_DOCUMENT_H
#define API_S3_BUCKET_POLICY_DOCUMENT_H

#include "base/arena.h"
#include "storage/buckets/bucket_grant.h"

enum { POLICY_DOCUMENT_MAX_BYTES = 20 * 1024 };

/* The grants of the policy of `bucket`; texts in the arena. invalid (a reply of MalformedPolicy)
 * when it is not a policy of this bucket, unsupported when grants cannot express it, too_large over
 * BUCKET_GRANTS_MAX grants, no_memory. */
int policy_document_parse(struct span json, struct span bucket, struct arena *arena,
	struct bucket_grant **out, size_t *out_count, struct error *err);
/* Whether any of these grants is public. */
bool policy_document_is_public(const struct bucket_grant *grants, size_t count);

#endif
