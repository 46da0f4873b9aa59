/* GetObjectAcl and PutObjectAcl: GET and PUT /{bucket}/{key}?acl, of a version with versionId;
 * api/s3/request/acl.h says which ACLs there are. */
#ifndef API_S3_OBJECT_OBJECT_ACL_H
#define API_S3_OBJECT_OBJECT_ACL_H

#include "api/exchange/exchange.h"

enum next get_object_acl_begin(struct exchange *exchange);
enum next put_object_acl_begin(struct exchange *exchange);
enum next put_object_acl_finish(struct exchange *exchange);
enum next put_object_acl_resume(struct exchange *exchange);

#endif
