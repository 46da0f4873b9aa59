/* GetBucketVersioning and PutBucketVersioning: GET and PUT /{bucket}?versioning. */
#ifndef API_S3_BUCKET_BUCKET_VERSIONING_H
#define API_S3_BUCKET_BUCKET_VERSIONING_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

enum next get_bucket_versioning_begin(struct exchange *exchange);
/* behind bucket_setting_put_begin */
enum next put_bucket_versioning_finish(struct exchange *exchange);

/* "Enabled", "Suspended", or NULL when it never was. Static text. */
const char *bucket_versioning_name(enum bucket_versioning versioning);
/* Reads a VersioningConfiguration: malformed_xml, invalid (no Status), unsupported (MfaDelete). */
int bucket_versioning_parse(
	struct span xml, struct arena *arena, enum bucket_versioning *out, struct error *err);

#endif
