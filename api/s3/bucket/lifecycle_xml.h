/* Lifecycle rules in the form of S3: reads a LifecycleConfiguration into the struct of
 * storage/buckets/lifecycle.h and prints it. Pure functions, except that a rule without an id gets
 * a random one. Any thread. */
#ifndef API_S3_BUCKET_LIFECYCLE_XML_H
#define API_S3_BUCKET_LIFECYCLE_XML_H

#include "base/arena.h"
#include "base/buffer.h"
#include "storage/buckets/lifecycle.h"

/* Texts lie in the arena. malformed_xml; invalid (InvalidArgument), invalid_request or bad_tag for
 * values that a rule must not have; unsupported for transitions; no_memory. */
int lifecycle_xml_parse(
	struct span xml, struct arena *arena, struct lifecycle *out, struct error *err);
void lifecycle_xml_print(const struct lifecycle *lifecycle, struct buffer *out);

#endif
