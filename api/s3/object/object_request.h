/* What requests for one stored object share: which version they name, and what becomes of one that
 * is a delete marker. */
#ifndef API_S3_OBJECT_OBJECT_REQUEST_H
#define API_S3_OBJECT_OBJECT_REQUEST_H

#include "api/exchange/exchange.h"
#include "storage/objects/object_view.h"

/* The query parameter versionId: VERSION_REF_CURRENT when absent. False and 400 InvalidArgument set
 * when it is no version's id. */
bool object_request_version(
	struct exchange *exchange, struct version_ref *out, enum next *out_next);
/* The version that the path and `ref` name: no_bucket, no_key, no_version; method (405) when `ref`
 * names a delete marker. The headers that say of a marker that it is one are added to the reply:
 * x-amz-delete-marker, x-amz-version-id, and Allow with 405. */
int object_request_find(struct exchange *exchange, const struct version_ref *ref,
	struct object *out, struct error *err);
/* The same, through a view. */
int object_request_view(struct exchange *exchange, struct object_view *view,
	const struct version_ref *ref, struct object *out, struct error *err);
/* x-amz-version-id of a version that was just written: in buckets that have versioning, and that is
 * not suspended. */
void object_request_add_written(struct exchange *exchange, const struct object *object);
/* x-amz-version-id, in buckets that have or had versioning. */
void object_request_add_version(struct exchange *exchange, const struct object *object);

#endif
