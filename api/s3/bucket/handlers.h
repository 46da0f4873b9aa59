/* The steps of the operations on buckets, for the table in api/s3/s3_routes.c.
 * api/exchange/exchange.h says when and where each step runs. */
#ifndef API_S3_BUCKET_HANDLERS_H
#define API_S3_BUCKET_HANDLERS_H

#include "api/exchange/exchange.h"

/* ListBuckets: GET /. Lists the account's own buckets. A key with grants sees the buckets that its
 * grants name; the root key sees all. */
enum next list_buckets_begin(struct exchange *exchange);

/* CreateBucket: PUT /{bucket}; the body may be a CreateBucketConfiguration. Creating a bucket that
 * the caller's account has already is 200. */
enum next create_bucket_begin(struct exchange *exchange);
enum next create_bucket_finish(struct exchange *exchange);
enum next create_bucket_resume(struct exchange *exchange);

/* HeadBucket: HEAD /{bucket}. */
enum next head_bucket_begin(struct exchange *exchange);

/* DeleteBucket: DELETE /{bucket}. 409 while the bucket holds objects or runs. */
enum next delete_bucket_begin(struct exchange *exchange);
enum next delete_bucket_resume(struct exchange *exchange);

/* ListObjects: GET /{bucket}, version 1 with `marker`; and GET /{bucket}?list-type=2, version 2
 * with `start-after` and `continuation-token`. The versions differ in how a page says where it
 * begins and where the next one does. */
enum next list_objects_begin(struct exchange *exchange);
enum next list_objects_v2_begin(struct exchange *exchange);

/* ListObjectVersions: GET /{bucket}?versions. */
enum next list_versions_begin(struct exchange *exchange);

/* GetBucketLocation: GET /{bucket}?location. s3cmd and MinIO's clients ask it before anything
 * else. */
enum next get_bucket_location_begin(struct exchange *exchange);

/* The first step of each PUT of a setting: checks x-amz-expected-bucket-owner and accepts the body,
 * which `finish` gets from xml_body_check (api/s3/request/xml_body.h). */
enum next bucket_setting_put_begin(struct exchange *exchange);
/* The last step of each PUT and DELETE: replies with the status that bucket_setting_start was
 * given. */
enum next bucket_setting_resume(struct exchange *exchange);

/* GetBucketAcl, PutBucketAcl: /{bucket}?acl. api/s3/request/acl.h says which ACLs there are. */
enum next get_bucket_acl_begin(struct exchange *exchange);
enum next put_bucket_acl_finish(struct exchange *exchange);

/* GetBucketCors, PutBucketCors, DeleteBucketCors: /{bucket}?cors. */
enum next get_bucket_cors_begin(struct exchange *exchange);
enum next put_bucket_cors_finish(struct exchange *exchange);
enum next delete_bucket_cors_begin(struct exchange *exchange);
/* Preflight: OPTIONS /{bucket} and /{bucket}/{key}, without credentials. 200, or 403
 * AccessForbidden when no rule fits. */
enum next preflight_begin(struct exchange *exchange);

/* GetBucketLifecycleConfiguration, PutBucketLifecycleConfiguration, DeleteBucketLifecycle:
 * /{bucket}?lifecycle. storage/upkeep/lifecycle_worker.h carries the rules out. */
enum next get_bucket_lifecycle_begin(struct exchange *exchange);
enum next put_bucket_lifecycle_finish(struct exchange *exchange);
enum next delete_bucket_lifecycle_begin(struct exchange *exchange);

/* GetBucketOwnershipControls, PutBucketOwnershipControls, DeleteBucketOwnershipControls:
 * /{bucket}?ownershipControls. */
enum next get_ownership_controls_begin(struct exchange *exchange);
enum next put_ownership_controls_finish(struct exchange *exchange);
enum next delete_ownership_controls_begin(struct exchange *exchange);

/* GetBucketPolicy, PutBucketPolicy, DeleteBucketPolicy: /{bucket}?policy.
 * api/s3/bucket/policy_document.h says which policies there are. */
enum next get_bucket_policy_begin(struct exchange *exchange);
enum next put_bucket_policy_finish(struct exchange *exchange);
enum next delete_bucket_policy_begin(struct exchange *exchange);
/* GetBucketPolicyStatus: GET /{bucket}?policyStatus. */
enum next get_bucket_policy_status_begin(struct exchange *exchange);

/* GetPublicAccessBlock, PutPublicAccessBlock, DeletePublicAccessBlock:
 * /{bucket}?publicAccessBlock. */
enum next get_public_access_block_begin(struct exchange *exchange);
enum next put_public_access_block_finish(struct exchange *exchange);
enum next delete_public_access_block_begin(struct exchange *exchange);

/* GetBucketTagging, PutBucketTagging, DeleteBucketTagging: /{bucket}?tagging. */
enum next get_bucket_tagging_begin(struct exchange *exchange);
enum next put_bucket_tagging_finish(struct exchange *exchange);
enum next delete_bucket_tagging_begin(struct exchange *exchange);

/* GetBucketVersioning, PutBucketVersioning: /{bucket}?versioning. */
enum next get_bucket_versioning_begin(struct exchange *exchange);
enum next put_bucket_versioning_finish(struct exchange *exchange);

/* GET, PUT and DELETE of the settings in api/s3/bucket/bucket_fixed.h, which this server does not
 * have; also of such settings of an object. */
enum next bucket_fixed_get_begin(struct exchange *exchange);
enum next bucket_fixed_put_finish(struct exchange *exchange);
enum next bucket_fixed_delete_begin(struct exchange *exchange);

#endif
