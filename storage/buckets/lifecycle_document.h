/* Lifecycle rules as they are stored (BUCKET_LIFECYCLE): JSON, docs/FORMAT.md, "Catalog". Pure
 * functions; any thread. */
#ifndef STORAGE_BUCKETS_LIFECYCLE_DOCUMENT_H
#define STORAGE_BUCKETS_LIFECYCLE_DOCUMENT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "storage/buckets/lifecycle.h"

void lifecycle_document_print(const struct lifecycle *lifecycle, struct buffer *out);
/* Texts lie in the arena. corrupt when the JSON is not such a document. Empty JSON gives no
 * rules. */
int lifecycle_document_parse(
	struct span json, struct arena *arena, struct lifecycle *out, struct error *err);

#endif
