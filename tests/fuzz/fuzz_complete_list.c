/* Any bytes as the body of CompleteMultipartUpload: what is taken for a list keeps to its limits,
 * and its texts end. */
#include "api/s3/upload/complete_list.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 16 * 1024 * 1024 };
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct upload_listed_part *parts = NULL;
	size_t count = 0;
	struct error err = {0};
	if (complete_list_parse(span_of(data, size), arena, &parts, &count, &err) == 0) {
		ASSERT(count > 0 && count <= UPLOAD_PARTS_MAX);
		for (size_t i = 0; i < count; i++) {
			ASSERT(memchr(parts[i].etag, 0, sizeof(parts[i].etag)) != NULL);
			ASSERT(parts[i].checksum.len == 0 ||
				parts[i].checksum.len ==
					checksum_length(parts[i].checksum.algorithm));
		}
	} else {
		ASSERT(err.kind == ERROR_MALFORMED_XML || err.kind == ERROR_INVALID ||
			err.kind == ERROR_NO_MEMORY);
	}
	arena_free(arena);
	return 0;
}
