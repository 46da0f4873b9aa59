/* GetBucketPolicy, PutBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus: /{bucket}?policy and
 * ?policyStatus; api/s3/bucket/policy_document.h says which policies there are. */
#ifndef API_S3_BUCKET_BUCKET_POLICY_H
#define API_S3_BUCKET_BUCKET_POLICY_H

#include "api/exchange/exchange.h"

enum next get_bucket_policy_begin(struct exchange *exchange);
enum next put_bucket_policy_finish(struct exchange *exchange); /* behind bucket_setting_put_begin */
enum next delete_bucket_policy_begin(struct exchange *exchange);
enum next get_bucket_policy_status_begin(struct exchange *exchange);

#endif
