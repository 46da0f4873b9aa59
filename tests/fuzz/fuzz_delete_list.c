/* Any bytes as a DeleteObjects document: what is taken has 1 to 1,000 entries, each with a key or
 * an error of its own. */
#include "api/s3/object/delete_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 64 * 1024 * 1024 };
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct delete_list list;
	struct error err = {0};
	if (delete_list_read(span_of(data, size), arena, &list, &err) == 0) {
		ASSERT(list.count >= 1 && list.count <= OBJECT_DELETE_MAX);
		for (size_t i = 0; i < list.count; i++) {
			const struct object_delete_item *const item = &list.entries[i].item;
			ASSERT(item->key.len > 0 && span_is_utf8(item->key));
			ASSERT(item->key.len <= OBJECT_KEY_MAX_BYTES ||
				item->error.kind == ERROR_KEY_TOO_LONG);
		}
	} else {
		ASSERT(err.kind == ERROR_MALFORMED_XML || err.kind == ERROR_NO_MEMORY);
	}
	arena_free(arena);
	return 0;
}
