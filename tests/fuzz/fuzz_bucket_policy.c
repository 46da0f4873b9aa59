/* Any bytes as a bucket policy: what is taken makes grants of data alone, and gives to everyone
 * only what says '*'. */
#include <string.h>

#include "api/s3/bucket/policy_document.h"

enum { ARENA_BYTES = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct bucket_grant *grants;
	struct error err = {0};
	size_t count;
	if (policy_document_parse(
		    span_of(data, size), span_text("bkt"), arena, &grants, &count, &err) == 0) {
		const bool may_be_public =
			memchr(data, '*', size) != NULL || memchr(data, '\\', size) != NULL;
		ASSERT(count > 0 && count <= BUCKET_GRANTS_MAX);
		ASSERT(may_be_public || !policy_document_is_public(grants, count));
		for (size_t i = 0; i < count; i++)
			ASSERT(grants[i].permissions != 0 &&
				(grants[i].permissions & ~(unsigned)PERMISSIONS_ALL_DATA) == 0);
	} else {
		ASSERT(err.kind == ERROR_INVALID || err.kind == ERROR_UNSUPPORTED ||
			err.kind == ERROR_TOO_LARGE || err.kind == ERROR_NO_MEMORY);
	}
	arena_free(arena);
	return 0;
}
