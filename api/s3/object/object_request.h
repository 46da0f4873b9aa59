/* The common part of requests for one stored object: which version they name, and the reply when
 * that is a delete marker. */
#ifndef API_S3_OBJECT_OBJECT_REQUEST_H
#define API_S3_OBJECT_OBJECT_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/objects/object_view.h"

/* The object of the route, in the bucket that the caller was let into, with the version of the
 * query parameter versionId (absent: VERSION_REF_CURRENT). Returns false with 400 InvalidArgument
 * set when versionId is not the id of a version, and with 400 KeyTooLongError when no key is so
 * long. */
bool object_request_ref(struct exchange *exchange, struct object_ref *out, enum next *out_next);
/* Finds the version that `ref` names. no_bucket, no_key, no_version; method (405) when `ref` names
 * a delete marker. For a delete marker, named or current, the reply gets x-amz-delete-marker and
 * x-amz-version-id, and with 405 Last-Modified and Allow. */
int object_request_find(struct exchange *exchange, const struct object_ref *ref, struct object *out,
	struct error *err);
/* The same, through a view. */
int object_request_view(struct exchange *exchange, struct object_view *view,
	const struct object_ref *ref, struct object *out, struct error *err);
/* Whether the caller may learn that there is no such key, which it may read: 0, or the refusal to
 * list it. Callers that a policy or an ACL lets read must not find out which keys exist unless it
 * lets them list too. */
int object_request_judge_absence(
	struct exchange *exchange, struct bucket_ref bucket, struct span key, struct error *err);
/* Replies with a failure to find the object that the request reads: in place of no_key with the
 * refusal above. */
enum next object_request_fail(struct exchange *exchange, const struct error *err);
/* Adds x-amz-version-id of a version that was just written, when the bucket's versioning is
 * enabled; a suspended one does not count. */
void object_request_add_written(struct exchange *exchange, const struct object *object);
/* Adds x-amz-version-id when the bucket has or had versioning. */
void object_request_add_version(struct exchange *exchange, const struct object *object);

#endif
