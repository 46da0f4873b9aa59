/* Any bytes as x-amz-copy-source: what is taken has a bucket without '/', a key, and no NUL in
 * either. */
#include "api/s3/object/copy_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *const arena = arena_new(1024 * 1024);
	struct object_ref source;
	struct error err = {0};
	if (copy_source_parse(span_of(data, size), arena, &source, &err) == 0) {
		const struct span bucket = source.bucket.name;
		ASSERT(bucket.len > 0 && span_find(bucket, '/') < 0 && span_find(bucket, 0) < 0);
		ASSERT(source.key.len > 0 && span_is_utf8(source.key) &&
			span_find(source.key, 0) < 0);
		ASSERT(source.bucket.id == 0 && source.judged_version == 0);
	} else {
		ASSERT(err.kind == ERROR_INVALID);
	}
	arena_free(arena);
	return 0;
}
