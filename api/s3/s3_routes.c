/* S3's rows. Markers of sub-resources stand before the plain rows and name what this server does not do yet, so that no such request is
 * ever taken for a plain object or bucket operation. */
#include "api/router.h"

#include "api/s3/create_bucket.h"
#include "api/s3/delete_bucket.h"
#include "api/s3/delete_object.h"
#include "api/s3/get_bucket_location.h"
#include "api/s3/get_object.h"
#include "api/s3/head_bucket.h"
#include "api/s3/list_buckets.h"
#include "api/s3/list_objects.h"
#include "api/s3/not_implemented.h"
#include "api/s3/put_object.h"

#define BUCKET "/{bucket}"
#define OBJECT "/{bucket}/{key*}"

enum { METHODS_ALL = METHOD_GET | METHOD_HEAD | METHOD_PUT | METHOD_POST | METHOD_DELETE };

/* methods, pattern, marker, name of what is refused */
#define REFUSED(methods, pattern, marker, name) \
	{methods, pattern, marker, ACCESS_SIGNED_IN, BODY_NONE, &face_s3, name, not_implemented_begin, NULL, NULL}

const struct route s3_routes[] = {
	{METHOD_GET, "/", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_s3, "ListBuckets", list_buckets_begin, NULL, NULL},

	{METHOD_GET, BUCKET, "location", ACCESS_SIGNED_IN, BODY_NONE, &face_s3, "GetBucketLocation", get_bucket_location_begin, NULL, NULL},
	REFUSED(METHODS_ALL, BUCKET, "accelerate", "BucketAccelerateConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "acl", "BucketAcl"),
	REFUSED(METHODS_ALL, BUCKET, "analytics", "BucketAnalyticsConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "cors", "BucketCors"),
	REFUSED(METHODS_ALL, BUCKET, "delete", "DeleteObjects"),
	REFUSED(METHODS_ALL, BUCKET, "encryption", "BucketEncryption"),
	REFUSED(METHODS_ALL, BUCKET, "intelligent-tiering", "BucketIntelligentTieringConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "inventory", "BucketInventoryConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "lifecycle", "BucketLifecycle"),
	REFUSED(METHODS_ALL, BUCKET, "location", "BucketLocation"),
	REFUSED(METHODS_ALL, BUCKET, "logging", "BucketLogging"),
	REFUSED(METHODS_ALL, BUCKET, "metadataConfiguration", "BucketMetadataConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "metadataTable", "BucketMetadataTableConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "metrics", "BucketMetricsConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "notification", "BucketNotificationConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "object-lock", "ObjectLockConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "ownershipControls", "BucketOwnershipControls"),
	REFUSED(METHODS_ALL, BUCKET, "policy", "BucketPolicy"),
	REFUSED(METHODS_ALL, BUCKET, "policyStatus", "BucketPolicyStatus"),
	REFUSED(METHODS_ALL, BUCKET, "publicAccessBlock", "PublicAccessBlock"),
	REFUSED(METHODS_ALL, BUCKET, "replication", "BucketReplication"),
	REFUSED(METHODS_ALL, BUCKET, "requestPayment", "BucketRequestPayment"),
	REFUSED(METHODS_ALL, BUCKET, "session", "CreateSession"),
	REFUSED(METHODS_ALL, BUCKET, "tagging", "BucketTagging"),
	REFUSED(METHODS_ALL, BUCKET, "uploads", "ListMultipartUploads"),
	REFUSED(METHODS_ALL, BUCKET, "versioning", "BucketVersioning"),
	REFUSED(METHODS_ALL, BUCKET, "versions", "ListObjectVersions"),
	REFUSED(METHODS_ALL, BUCKET, "website", "BucketWebsite"),
	{METHOD_GET, BUCKET, "list-type=2", ACCESS_BUCKET_LIST, BODY_NONE, &face_s3, "ListObjectsV2", list_objects_v2_begin, NULL, NULL},
	{METHOD_HEAD, BUCKET, NULL, ACCESS_BUCKET_LIST, BODY_NONE, &face_s3, "HeadBucket", head_bucket_begin, NULL, NULL},
	{METHOD_PUT, BUCKET, NULL, ACCESS_CREATE_BUCKET, BODY_SMALL, &face_s3, "CreateBucket", create_bucket_begin, create_bucket_finish,
		create_bucket_resume},
	{METHOD_DELETE, BUCKET, NULL, ACCESS_BUCKET_ADMIN, BODY_NONE, &face_s3, "DeleteBucket", delete_bucket_begin, NULL,
		delete_bucket_resume},
	{METHOD_GET, BUCKET, NULL, ACCESS_BUCKET_LIST, BODY_NONE, &face_s3, "ListObjects", list_objects_begin, NULL, NULL},
	REFUSED(METHOD_POST, BUCKET, NULL, "PostObject"),

	REFUSED(METHODS_ALL, OBJECT, "acl", "ObjectAcl"),
	REFUSED(METHODS_ALL, OBJECT, "attributes", "GetObjectAttributes"),
	REFUSED(METHODS_ALL, OBJECT, "encryption", "UpdateObjectEncryption"),
	REFUSED(METHODS_ALL, OBJECT, "legal-hold", "ObjectLegalHold"),
	REFUSED(METHODS_ALL, OBJECT, "partNumber", "MultipartUpload"),
	REFUSED(METHODS_ALL, OBJECT, "renameObject", "RenameObject"),
	REFUSED(METHODS_ALL, OBJECT, "restore", "RestoreObject"),
	REFUSED(METHODS_ALL, OBJECT, "retention", "ObjectRetention"),
	REFUSED(METHODS_ALL, OBJECT, "select", "SelectObjectContent"),
	REFUSED(METHODS_ALL, OBJECT, "tagging", "ObjectTagging"),
	REFUSED(METHODS_ALL, OBJECT, "torrent", "GetObjectTorrent"),
	REFUSED(METHODS_ALL, OBJECT, "uploadId", "MultipartUpload"),
	REFUSED(METHODS_ALL, OBJECT, "uploads", "CreateMultipartUpload"),
	REFUSED(METHODS_ALL, OBJECT, "versionId", "Versioning"),
	{METHOD_GET | METHOD_HEAD, OBJECT, NULL, ACCESS_OBJECT_READ, BODY_NONE, &face_s3, "GetObject", get_object_begin, NULL, NULL},
	{METHOD_PUT, OBJECT, NULL, ACCESS_OBJECT_WRITE, BODY_STREAM, &face_s3, "PutObject", put_object_begin, put_object_finish,
		put_object_resume},
	{METHOD_DELETE, OBJECT, NULL, ACCESS_OBJECT_WRITE, BODY_NONE, &face_s3, "DeleteObject", delete_object_begin, NULL,
		delete_object_resume},

	{.pattern = NULL},
};
