/* The source of a copy, as CopyObject and UploadPartCopy name it in headers: which object, what is
 * asked of it, may the caller read it. s3.md 5.6. */
#ifndef API_S3_OBJECT_COPY_SOURCE_H
#define API_S3_OBJECT_COPY_SOURCE_H

#include "api/exchange/exchange.h"
#include "storage/versions/object.h"

/* x-amz-copy-source: [/]bucket/key[?versionId=v], percent-encoded once, a space also as '+'. The
 * version is cut from the text as sent, then the rest is decoded and split at its first '/', so
 * that a key may hold any of these characters. invalid, also for what no bucket can be named. */
int copy_source_parse(
	struct span text, struct arena *arena, struct object_ref *out, struct error *err);
/* Parses the header: false and 400 InvalidArgument set when it is malformed. */
bool copy_source_read(struct exchange *exchange, struct object_ref *out, enum next *out_next);
/* Judges the caller (PERMISSION_READ, and PERMISSION_VERSIONS with a version) and
 * x-amz-source-expected-bucket-owner, finds the version, judges x-amz-copy-source-if-*. False and
 * the reply set otherwise: 412 where a read would say 304; 400 for a version that is a delete
 * marker. */
bool copy_source_find(struct exchange *exchange, const struct object_ref *source,
	struct object *out, enum next *out_next);
/* x-amz-copy-source-version-id, where the source's bucket has or had versioning. */
void copy_source_add_version(struct exchange *exchange, const struct object *source);

#endif
