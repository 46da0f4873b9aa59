/* Any bytes as x-amz-copy-source: what is taken has a bucket without '/', a key, and no NUL in
 * either. */
#include "api/s3/object/copy_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *const arena = arena_new(1024 * 1024);
	struct copy_source source;
	struct error err = {0};
	if (copy_source_parse(span_of(data, size), arena, &source, &err) == 0) {
		ASSERT(source.bucket.len > 0 && span_find(source.bucket, '/') < 0 &&
			span_find(source.bucket, 0) < 0);
		ASSERT(source.key.len > 0 && span_is_utf8(source.key) &&
			span_find(source.key, 0) < 0);
		ASSERT(source.has_version || source.version.kind == VERSION_REF_CURRENT);
	} else {
		ASSERT(err.kind == ERROR_INVALID);
	}
	arena_free(arena);
	return 0;
}
