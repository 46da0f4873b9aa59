/* A bucket's versioning, as S3 writes it. */
#ifndef API_S3_BUCKET_BUCKET_VERSIONING_H
#define API_S3_BUCKET_BUCKET_VERSIONING_H

#include "storage/buckets/bucket.h"

/* "Enabled", "Suspended", or NULL when the bucket never had versioning. Static text. */
const char *bucket_versioning_name(enum bucket_versioning versioning);
/* Reads a VersioningConfiguration. invalid without a Status, unsupported for MfaDelete,
 * malformed_xml. */
int bucket_versioning_parse(
	struct span xml, struct arena *arena, enum bucket_versioning *out, struct error *err);

#endif
