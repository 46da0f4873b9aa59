/* The steps of the operations on objects, for the table in api/s3/s3_routes.c.
 * api/exchange/exchange.h says when and where each step runs. */
#ifndef API_S3_OBJECT_HANDLERS_H
#define API_S3_OBJECT_HANDLERS_H

#include "api/exchange/exchange.h"

/* PutObject: PUT /{bucket}/{key*}. */
enum next put_object_begin(struct exchange *exchange);
enum next put_object_finish(struct exchange *exchange);
enum next put_object_resume(struct exchange *exchange);
/* CopyObject: the same with x-amz-copy-source. The steps of PutObject call these. */
enum next copy_object_begin(struct exchange *exchange);
enum next copy_object_finish(struct exchange *exchange);
enum next copy_object_resume(struct exchange *exchange);

/* GetObject and HeadObject: GET and HEAD /{bucket}/{key*}. */
enum next get_object_begin(struct exchange *exchange);
enum next get_object_resume(struct exchange *exchange);

/* GetObjectAttributes: GET /{bucket}/{key*}?attributes. */
enum next object_attributes_begin(struct exchange *exchange);

/* DeleteObject: DELETE /{bucket}/{key*}. 204 whether or not the key existed. */
enum next delete_object_begin(struct exchange *exchange);
enum next delete_object_resume(struct exchange *exchange);

/* DeleteObjects: POST /{bucket}?delete. */
enum next delete_objects_begin(struct exchange *exchange);
enum next delete_objects_finish(struct exchange *exchange);
enum next delete_objects_resume(struct exchange *exchange);

/* GetObjectAcl and PutObjectAcl: /{bucket}/{key*}?acl, of a version with versionId.
 * api/s3/request/acl.h says which ACLs there are. */
enum next get_object_acl_begin(struct exchange *exchange);
enum next put_object_acl_begin(struct exchange *exchange);
enum next put_object_acl_finish(struct exchange *exchange);
enum next put_object_acl_resume(struct exchange *exchange);

/* GetObjectTagging, PutObjectTagging, DeleteObjectTagging: /{bucket}/{key*}?tagging, of any
 * version. */
enum next get_object_tagging_begin(struct exchange *exchange);
enum next put_object_tagging_begin(struct exchange *exchange);
enum next put_object_tagging_finish(struct exchange *exchange);
enum next put_object_tagging_resume(struct exchange *exchange);
enum next delete_object_tagging_begin(struct exchange *exchange);
enum next delete_object_tagging_resume(struct exchange *exchange);

#endif
