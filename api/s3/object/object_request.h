/* What requests for one stored object share: which version they name, and what becomes of one that
 * is a delete marker. */
#ifndef API_S3_OBJECT_OBJECT_REQUEST_H
#define API_S3_OBJECT_OBJECT_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/objects/object_view.h"

/* The object of the route: what the caller was let into, and the version of the query parameter
 * versionId (absent: VERSION_REF_CURRENT). False and 400 InvalidArgument set when that is not a
 * version's id. */
bool object_request_ref(struct exchange *exchange, struct object_ref *out, enum next *out_next);
/* The version that `ref` names: no_bucket, no_key, no_version; method (405) when it names a delete
 * marker. The headers that say of a marker that it is one are added to the reply:
 * x-amz-delete-marker, x-amz-version-id, and Allow with 405. */
int object_request_find(struct exchange *exchange, const struct object_ref *ref, struct object *out,
	struct error *err);
/* The same, through a view. */
int object_request_view(struct exchange *exchange, struct object_view *view,
	const struct object_ref *ref, struct object *out, struct error *err);
/* x-amz-version-id of a version that was just written: in buckets that have versioning, and that is
 * not suspended. */
void object_request_add_written(struct exchange *exchange, const struct object *object);
/* x-amz-version-id, in buckets that have or had versioning. */
void object_request_add_version(struct exchange *exchange, const struct object *object);

#endif
