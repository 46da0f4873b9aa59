/* The source of CopyObject and UploadPartCopy: which object the headers name, whether the caller
 * may read it, and whether their conditions hold. */
#ifndef API_S3_OBJECT_COPY_SOURCE_H
#define API_S3_OBJECT_COPY_SOURCE_H

#include "api/exchange/exchange.h"
#include "storage/versions/object.h"

/* Whether the request has x-amz-copy-source, which makes a PUT a copy. */
bool copy_source_is_given(struct exchange *exchange);
/* Returns false with 400 set when a request with x-amz-copy-source announces a body. */
bool copy_source_check_no_body(struct exchange *exchange, enum next *out_next);
/* Parses x-amz-copy-source: [/]bucket/key[?versionId=v], percent-encoded once, with '+' for a
 * space. The version is cut off before decoding, and the rest is decoded before it is split at its
 * first '/', so a key may contain any of these characters. invalid when the text is malformed or no
 * bucket can have the name. */
int copy_source_parse(
	struct span text, struct arena *arena, struct object_ref *out, struct error *err);
/* Parses the header. Returns false with 400 InvalidArgument set when it is malformed. */
bool copy_source_read(struct exchange *exchange, struct object_ref *out, enum next *out_next);
/* Checks that the caller may read the source (PERMISSION_READ, and PERMISSION_VERSIONS with a
 * version), checks x-amz-source-expected-bucket-owner, finds the version and judges
 * x-amz-copy-source-if-*. Returns false with the reply set otherwise: 412 when a condition does not
 * hold, also where a read would answer 304; 400 for a delete marker. */
bool copy_source_find(struct exchange *exchange, const struct object_ref *source,
	struct object *out, enum next *out_next);
/* invalid_request when more bytes are to be copied than one request may copy: 5 GiB. */
int copy_source_check_size(uint64_t bytes, struct error *err);
/* Adds x-amz-copy-source-version-id when the source's bucket has or had versioning. */
void copy_source_add_version(struct exchange *exchange, const struct object *source);

#endif
