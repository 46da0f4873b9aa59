/* Lifecycle rules as S3 writes them: LifecycleConfiguration, read into storage/buckets/lifecycle.h
 * and printed from it. Pure functions but for the ids that rules without one get, which are
 * random. */
#ifndef API_S3_BUCKET_LIFECYCLE_XML_H
#define API_S3_BUCKET_LIFECYCLE_XML_H

#include "base/arena.h"
#include "base/buffer.h"
#include "storage/buckets/lifecycle.h"

/* Texts in the arena. malformed_xml; invalid (InvalidArgument), invalid_request or bad_tag for
 * values that no rule may have; unsupported for transitions. */
int lifecycle_xml_parse(
	struct span xml, struct arena *arena, struct lifecycle *out, struct error *err);
void lifecycle_xml_print(const struct lifecycle *lifecycle, struct buffer *out);

#endif
