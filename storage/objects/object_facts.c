#include <string.h>

#include "storage/objects/object_row.h"

int object_facts_check(const struct object_facts *facts, struct span key, struct error *err)
{
	static const char meta[] = "x-amz-meta-";
	size_t user = 0;
	size_t total = 0;
	if (object_facts_check_key(key, err) != 0)
		return -1;
	for (size_t i = 0; i < facts->header_count; i++) {
		const struct object_header *const header = &facts->headers[i];
		total += header->name.len + header->value.len;
		if (span_starts(header->name, span_text(meta)))
			user += header->name.len - (sizeof(meta) - 1) + header->value.len;
	}
	if (user > OBJECT_METADATA_MAX_BYTES)
		return error_set(err, ERROR_METADATA_TOO_LARGE,
			"The user metadata has %zu bytes; at most %d are allowed.", user,
			OBJECT_METADATA_MAX_BYTES);
	if (total > OBJECT_HEADERS_MAX_BYTES)
		return error_set(err, ERROR_METADATA_TOO_LARGE,
			"The stored headers have %zu bytes; at most %d are allowed.", total,
			OBJECT_HEADERS_MAX_BYTES);
	if ((unsigned)facts->storage_class >= STORAGE_CLASSES)
		return error_set(err, ERROR_INVALID, "There is no such storage class.");
	return 0;
}

int object_facts_check_key(struct span key, struct error *err)
{
	if (key.len == 0)
		return error_set(err, ERROR_INVALID, "An object key cannot be empty.");
	if (key.len > OBJECT_KEY_MAX_BYTES)
		return error_set(err, ERROR_KEY_TOO_LONG,
			"The object key has %zu bytes; at most %d are allowed.", key.len,
			OBJECT_KEY_MAX_BYTES);
	return 0;
}

struct object_facts object_facts_copy(const struct object_facts *facts, struct arena *arena)
{
	struct object_facts copy = *facts;
	struct object_header *const headers =
		arena_take_array(arena, facts->header_count + 1, sizeof(*headers));
	for (size_t i = 0; headers != NULL && i < facts->header_count; i++) {
		headers[i].name = arena_copy(arena, facts->headers[i].name);
		headers[i].value = arena_copy(arena, facts->headers[i].value);
	}
	copy.headers = headers;
	copy.tags = arena_copy(arena, facts->tags);
	return copy;
}
