/* S3's rows. The router takes the first row that fits, so rows with a marker, which are
 * sub-resources, stand before the plain rows. Rows of sub-resources that this server does not have
 * refuse them by name. A request for an unknown sub-resource reaches a plain row, where
 * api/s3/request/plain_query.h refuses it, so it is never taken for a plain request. */
#include "api/route/router.h"

#include "api/s3/bucket/bucket_cors.h"
#include "api/s3/bucket/handlers.h"
#include "api/s3/object/handlers.h"
#include "api/s3/post/handlers.h"
#include "api/s3/request/minio.h"
#include "api/s3/request/misplaced.h"
#include "api/s3/request/not_implemented.h"
#include "api/s3/request/plain_query.h"
#include "api/s3/request/s3_error.h"
#include "api/s3/upload/handlers.h"

const struct face face_s3 = {.name = "s3",
	.write_error = s3_error_write,
	.prepare = bucket_cors_prepare,
	.check = plain_query_check};

#define BUCKET "/{bucket}"
#define OBJECT "/{bucket}/{key*}"

enum { METHODS_ALL = METHOD_GET | METHOD_HEAD | METHOD_PUT | METHOD_POST | METHOD_DELETE };

/* A sub-resource that this server does not have. */
#define REFUSED(methods, pattern, marker, name)                                        \
	{                                                                              \
		methods, pattern, marker, ACCESS_SIGNED_IN, BODY_NONE, &face_s3, name, \
			not_implemented_begin, NULL, NULL                              \
	}

/* A sub-resource on the wrong kind of path: api/s3/request/misplaced.h. */
#define OFF_KEY(methods, marker)                                                         \
	{                                                                                \
		methods, OBJECT, marker, ACCESS_ANYONE, BODY_NONE, &face_s3, "OfBucket", \
			misplaced_on_key_begin, NULL, NULL                               \
	}
#define OFF_BUCKET(methods, marker)                                                   \
	{                                                                             \
		methods, BUCKET, marker, ACCESS_ANYONE, BODY_NONE, &face_s3, "OfKey", \
			misplaced_on_bucket_begin, NULL, NULL                         \
	}

/* Settings of a bucket: callers that may list all of it may read them, and its administrators may
 * change them. */
#define SETTING_GET(marker, name, begin)                                                       \
	{                                                                                      \
		METHOD_GET, BUCKET, marker, ACCESS_BUCKET_SETTINGS, BODY_NONE, &face_s3, name, \
			begin, NULL, NULL                                                      \
	}
#define SETTING_PUT(marker, name, finish)                                                    \
	{                                                                                    \
		METHOD_PUT, BUCKET, marker, ACCESS_BUCKET_ADMIN, BODY_SMALL, &face_s3, name, \
			bucket_setting_put_begin, finish, bucket_setting_resume              \
	}
#define SETTING_DELETE(marker, name, begin)                                                    \
	{                                                                                      \
		METHOD_DELETE, BUCKET, marker, ACCESS_BUCKET_ADMIN, BODY_NONE, &face_s3, name, \
			begin, NULL, bucket_setting_resume                                     \
	}
/* Settings that this server does not have: api/s3/bucket/bucket_fixed.h. */
#define FIXED(marker, name)                                               \
	SETTING_GET(marker, "Get" name, bucket_fixed_get_begin),          \
		SETTING_PUT(marker, "Put" name, bucket_fixed_put_finish), \
		SETTING_DELETE(marker, "Delete" name, bucket_fixed_delete_begin)
#define OBJECT_FIXED(marker, name)                                                                 \
	{METHOD_GET, OBJECT, marker, ACCESS_OBJECT_TAGS_READ, BODY_NONE, &face_s3, "Get" name,     \
		bucket_fixed_get_begin, NULL, NULL},                                               \
	{                                                                                          \
		METHOD_PUT, OBJECT, marker, ACCESS_OBJECT_ADMIN, BODY_SMALL, &face_s3, "Put" name, \
			bucket_setting_put_begin, bucket_fixed_put_finish, bucket_setting_resume   \
	}

/* The paths outside S3 that MinIO's client asks for. */
#define MINIO_HEALTH(path, name, begin)                                                          \
	{                                                                                        \
		METHOD_GET | METHOD_HEAD, "/minio/health/" path, NULL, ACCESS_ANYONE, BODY_NONE, \
			&face_s3, name, begin, NULL, NULL                                        \
	}
#define MINIO_ADMIN(version)                                                             \
	{                                                                                \
		METHODS_ALL, "/minio/admin/" version "/{rest*}", NULL, ACCESS_SIGNED_IN, \
			BODY_NONE, &face_s3, "MinioAdmin", minio_admin_begin, NULL, NULL \
	}

const struct route s3_routes[] = {
	MINIO_HEALTH("live", "MinioLive", minio_live_begin),
	MINIO_HEALTH("ready", "MinioReady", minio_ready_begin),
	MINIO_HEALTH("cluster", "MinioCluster", minio_cluster_begin),
	MINIO_HEALTH("cluster/read", "MinioClusterRead", minio_ready_begin),
	MINIO_ADMIN("v3"),
	MINIO_ADMIN("v4"),
	{METHOD_GET, "/minio/v2/metrics/{rest*}", NULL, ACCESS_ANYONE, BODY_NONE, &face_s3,
		"MinioMetrics", minio_metrics_begin, NULL, NULL},
	REFUSED(METHOD_GET, "/", "events", "ListenNotification"),
	REFUSED(METHOD_GET, "/", "max-directory-buckets", "ListDirectoryBuckets"),
	REFUSED(METHOD_GET, "/", "x-id=ListDirectoryBuckets", "ListDirectoryBuckets"),
	{METHOD_GET, "/", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_s3, "ListBuckets",
		list_buckets_begin, NULL, NULL},

	{METHOD_GET, BUCKET, "location", ACCESS_BUCKET_KNOWN, BODY_NONE, &face_s3,
		"GetBucketLocation", get_bucket_location_begin, NULL, NULL},
	SETTING_GET("acl", "GetBucketAcl", get_bucket_acl_begin),
	SETTING_PUT("acl", "PutBucketAcl", put_bucket_acl_finish),
	SETTING_GET("cors", "GetBucketCors", get_bucket_cors_begin),
	SETTING_PUT("cors", "PutBucketCors", put_bucket_cors_finish),
	SETTING_DELETE("cors", "DeleteBucketCors", delete_bucket_cors_begin),
	{METHOD_OPTIONS, BUCKET, NULL, ACCESS_ANYONE, BODY_NONE, &face_s3, "Preflight",
		preflight_begin, NULL, NULL},
	{METHOD_OPTIONS, OBJECT, NULL, ACCESS_ANYONE, BODY_NONE, &face_s3, "Preflight",
		preflight_begin, NULL, NULL},
	SETTING_GET("lifecycle", "GetBucketLifecycleConfiguration", get_bucket_lifecycle_begin),
	SETTING_PUT("lifecycle", "PutBucketLifecycleConfiguration", put_bucket_lifecycle_finish),
	SETTING_DELETE("lifecycle", "DeleteBucketLifecycle", delete_bucket_lifecycle_begin),
	SETTING_GET(
		"ownershipControls", "GetBucketOwnershipControls", get_ownership_controls_begin),
	SETTING_PUT(
		"ownershipControls", "PutBucketOwnershipControls", put_ownership_controls_finish),
	SETTING_DELETE("ownershipControls", "DeleteBucketOwnershipControls",
		delete_ownership_controls_begin),
	SETTING_GET("policy", "GetBucketPolicy", get_bucket_policy_begin),
	SETTING_PUT("policy", "PutBucketPolicy", put_bucket_policy_finish),
	SETTING_DELETE("policy", "DeleteBucketPolicy", delete_bucket_policy_begin),
	SETTING_GET("policyStatus", "GetBucketPolicyStatus", get_bucket_policy_status_begin),
	SETTING_GET("publicAccessBlock", "GetPublicAccessBlock", get_public_access_block_begin),
	SETTING_PUT("publicAccessBlock", "PutPublicAccessBlock", put_public_access_block_finish),
	SETTING_DELETE(
		"publicAccessBlock", "DeletePublicAccessBlock", delete_public_access_block_begin),
	SETTING_GET("tagging", "GetBucketTagging", get_bucket_tagging_begin),
	SETTING_PUT("tagging", "PutBucketTagging", put_bucket_tagging_finish),
	SETTING_DELETE("tagging", "DeleteBucketTagging", delete_bucket_tagging_begin),
	SETTING_GET("versioning", "GetBucketVersioning", get_bucket_versioning_begin),
	SETTING_PUT("versioning", "PutBucketVersioning", put_bucket_versioning_finish),
	FIXED("accelerate", "BucketAccelerateConfiguration"),
	FIXED("analytics", "BucketAnalyticsConfiguration"),
	FIXED("encryption", "BucketEncryption"),
	FIXED("intelligent-tiering", "BucketIntelligentTieringConfiguration"),
	FIXED("inventory", "BucketInventoryConfiguration"),
	FIXED("logging", "BucketLogging"),
	FIXED("metrics", "BucketMetricsConfiguration"),
	FIXED("notification", "BucketNotificationConfiguration"),
	FIXED("object-lock", "ObjectLockConfiguration"),
	FIXED("replication", "BucketReplication"),
	FIXED("requestPayment", "BucketRequestPayment"),
	FIXED("website", "BucketWebsite"),
	/* The other methods of these settings, and settings without rows of their own. */
	REFUSED(METHODS_ALL, BUCKET, "accelerate", "BucketAccelerateConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "acl", "BucketAcl"),
	REFUSED(METHODS_ALL, BUCKET, "analytics", "BucketAnalyticsConfiguration"),
	REFUSED(METHODS_ALL, BUCKET, "cors", "BucketCors"),
	/* The handler judges each key by itself. */
	{METHOD_POST, BUCKET, "delete", ACCESS_BUCKET_CHANGES, BODY_SMALL, &face_s3,
		"DeleteObjects", delete_objects_begin, delete_objects_finish,
		delete_objects_resume},
	REFUSED(METHODS_ALL, BUCKET, "delete", "DeleteObjects"),
	REFUSED(METHODS_ALL, BUCKET, "encryption", "BucketEncryption"),
	REFUSED(METHODS_ALL, BUCKET, "events", "ListenBucketNotification"),
	REFUSED(METHODS_ALL, BUCKET, "intelligent-tiering",
		"BucketIntelligentTieringConfiguration"),
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
	{METHOD_GET, BUCKET, "uploads", ACCESS_BUCKET_LIST, BODY_NONE, &face_s3,
		"ListMultipartUploads", list_uploads_begin, NULL, NULL},
	REFUSED(METHODS_ALL, BUCKET, "uploads", "ListMultipartUploads"),
	REFUSED(METHODS_ALL, BUCKET, "versioning", "BucketVersioning"),
	{METHOD_GET, BUCKET, "versions", ACCESS_BUCKET_LIST, BODY_NONE, &face_s3,
		"ListObjectVersions", list_versions_begin, NULL, NULL},
	REFUSED(METHODS_ALL, BUCKET, "versions", "ListObjectVersions"),
	REFUSED(METHODS_ALL, BUCKET, "website", "BucketWebsite"),
	OFF_BUCKET(METHODS_ALL, "attributes"),
	OFF_BUCKET(METHODS_ALL, "legal-hold"),
	OFF_BUCKET(METHODS_ALL, "partNumber"),
	OFF_BUCKET(METHODS_ALL, "renameObject"),
	OFF_BUCKET(METHODS_ALL, "restore"),
	OFF_BUCKET(METHODS_ALL, "retention"),
	OFF_BUCKET(METHODS_ALL, "select"),
	OFF_BUCKET(METHODS_ALL, "torrent"),
	OFF_BUCKET(METHODS_ALL, "uploadId"),
	OFF_BUCKET(METHOD_PUT | METHOD_POST | METHOD_DELETE, "versionId"),
	{METHOD_GET, BUCKET, "list-type=2", ACCESS_BUCKET_LIST, BODY_NONE, &face_s3,
		"ListObjectsV2", list_objects_v2_begin, NULL, NULL},
	{METHOD_HEAD, BUCKET, NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_s3, "HeadBucket",
		head_bucket_begin, NULL, NULL},
	{METHOD_PUT, BUCKET, NULL, ACCESS_CREATE_BUCKET, BODY_SMALL, &face_s3, "CreateBucket",
		create_bucket_begin, create_bucket_finish, create_bucket_resume},
	{METHOD_DELETE, BUCKET, NULL, ACCESS_BUCKET_ADMIN, BODY_NONE, &face_s3, "DeleteBucket",
		delete_bucket_begin, NULL, delete_bucket_resume},
	{METHOD_GET, BUCKET, NULL, ACCESS_BUCKET_LIST, BODY_NONE, &face_s3, "ListObjects",
		list_objects_begin, NULL, NULL},
	/* The form says who the caller is, so the handler judges. */
	{METHOD_POST, BUCKET, NULL, ACCESS_ANYONE, BODY_STREAM, &face_s3, "PostObject",
		post_object_begin, post_object_finish, post_object_resume},

	{METHOD_GET, OBJECT, "acl", ACCESS_OBJECT_ADMIN, BODY_NONE, &face_s3, "GetObjectAcl",
		get_object_acl_begin, NULL, NULL},
	{METHOD_PUT, OBJECT, "acl", ACCESS_OBJECT_ADMIN, BODY_SMALL, &face_s3, "PutObjectAcl",
		put_object_acl_begin, put_object_acl_finish, put_object_acl_resume},
	OBJECT_FIXED("legal-hold", "ObjectLegalHold"),
	OBJECT_FIXED("retention", "ObjectRetention"),
	REFUSED(METHODS_ALL, OBJECT, "acl", "ObjectAcl"),
	{METHOD_GET, OBJECT, "attributes", ACCESS_OBJECT_READ, BODY_NONE, &face_s3,
		"GetObjectAttributes", object_attributes_begin, NULL, NULL},
	REFUSED(METHODS_ALL, OBJECT, "attributes", "GetObjectAttributes"),
	REFUSED(METHODS_ALL, OBJECT, "encryption", "UpdateObjectEncryption"),
	REFUSED(METHODS_ALL, OBJECT, "legal-hold", "ObjectLegalHold"),
	/* With an upload's id, partNumber is a part of the upload. Without one, GetObject and
	 * HeadObject read it as a part of the object. */
	{METHOD_PUT, OBJECT, "uploadId", ACCESS_OBJECT_WRITE, BODY_STREAM, &face_s3, "UploadPart",
		upload_part_begin, upload_part_finish, upload_part_resume},
	{METHOD_GET, OBJECT, "uploadId", ACCESS_OBJECT_WRITE, BODY_NONE, &face_s3, "ListParts",
		list_parts_begin, NULL, NULL},
	{METHOD_POST, OBJECT, "uploadId", ACCESS_OBJECT_WRITE, BODY_SMALL, &face_s3,
		"CompleteMultipartUpload", complete_upload_begin, complete_upload_finish,
		complete_upload_resume},
	{METHOD_DELETE, OBJECT, "uploadId", ACCESS_OBJECT_WRITE, BODY_NONE, &face_s3,
		"AbortMultipartUpload", abort_upload_begin, NULL, abort_upload_resume},
	REFUSED(METHODS_ALL, OBJECT, "uploadId", "MultipartUpload"),
	OFF_KEY(METHOD_PUT | METHOD_POST | METHOD_DELETE, "partNumber"),
	REFUSED(METHODS_ALL, OBJECT, "renameObject", "RenameObject"),
	REFUSED(METHODS_ALL, OBJECT, "restore", "RestoreObject"),
	REFUSED(METHODS_ALL, OBJECT, "retention", "ObjectRetention"),
	REFUSED(METHODS_ALL, OBJECT, "select", "SelectObjectContent"),
	{METHOD_GET, OBJECT, "tagging", ACCESS_OBJECT_TAGS_READ, BODY_NONE, &face_s3,
		"GetObjectTagging", get_object_tagging_begin, NULL, NULL},
	{METHOD_PUT, OBJECT, "tagging", ACCESS_OBJECT_TAGS_WRITE, BODY_SMALL, &face_s3,
		"PutObjectTagging", put_object_tagging_begin, put_object_tagging_finish,
		put_object_tagging_resume},
	{METHOD_DELETE, OBJECT, "tagging", ACCESS_OBJECT_TAGS_WRITE, BODY_NONE, &face_s3,
		"DeleteObjectTagging", delete_object_tagging_begin, NULL,
		delete_object_tagging_resume},
	REFUSED(METHODS_ALL, OBJECT, "tagging", "ObjectTagging"),
	REFUSED(METHODS_ALL, OBJECT, "torrent", "GetObjectTorrent"),
	{METHOD_POST, OBJECT, "uploads", ACCESS_OBJECT_WRITE, BODY_NONE, &face_s3,
		"CreateMultipartUpload", create_upload_begin, NULL, create_upload_resume},
	OFF_KEY(METHOD_GET | METHOD_HEAD, "uploads"),
	REFUSED(METHODS_ALL, OBJECT, "uploads", "CreateMultipartUpload"),
	OFF_KEY(METHODS_ALL, "versions"),
	OFF_KEY(METHODS_ALL, "accelerate"),
	OFF_KEY(METHODS_ALL, "analytics"),
	OFF_KEY(METHODS_ALL, "cors"),
	OFF_KEY(METHODS_ALL, "delete"),
	OFF_KEY(METHODS_ALL, "intelligent-tiering"),
	OFF_KEY(METHODS_ALL, "inventory"),
	OFF_KEY(METHODS_ALL, "lifecycle"),
	OFF_KEY(METHODS_ALL, "list-type"),
	OFF_KEY(METHODS_ALL, "location"),
	OFF_KEY(METHODS_ALL, "logging"),
	OFF_KEY(METHODS_ALL, "metadataConfiguration"),
	OFF_KEY(METHODS_ALL, "metadataTable"),
	OFF_KEY(METHODS_ALL, "metrics"),
	OFF_KEY(METHODS_ALL, "notification"),
	OFF_KEY(METHODS_ALL, "object-lock"),
	OFF_KEY(METHODS_ALL, "ownershipControls"),
	OFF_KEY(METHODS_ALL, "policy"),
	OFF_KEY(METHODS_ALL, "policyStatus"),
	OFF_KEY(METHODS_ALL, "publicAccessBlock"),
	OFF_KEY(METHODS_ALL, "replication"),
	OFF_KEY(METHODS_ALL, "requestPayment"),
	OFF_KEY(METHODS_ALL, "session"),
	OFF_KEY(METHODS_ALL, "versioning"),
	OFF_KEY(METHODS_ALL, "website"),
	REFUSED(METHOD_PUT | METHOD_POST, OBJECT, "versionId",
		"Writing an object under a version's id"),
	{METHOD_GET | METHOD_HEAD, OBJECT, NULL, ACCESS_OBJECT_READ, BODY_NONE, &face_s3,
		"GetObject", get_object_begin, NULL, get_object_resume},
	{METHOD_PUT, OBJECT, NULL, ACCESS_OBJECT_WRITE, BODY_STREAM, &face_s3, "PutObject",
		put_object_begin, put_object_finish, put_object_resume},
	{METHOD_DELETE, OBJECT, NULL, ACCESS_OBJECT_DELETE, BODY_NONE, &face_s3, "DeleteObject",
		delete_object_begin, NULL, delete_object_resume},
	OFF_KEY(METHOD_POST, NULL),

	{.pattern = NULL},
};
