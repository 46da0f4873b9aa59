#include "storage/versions/header_blob.h"

#include <endian.h>
#include <string.h>

static void add_text(struct buffer *out, struct span text);
static bool take_text(struct span *rest, struct span *out);

void header_blob_write(const struct object_header *headers, size_t count, struct buffer *out)
{
	for (size_t i = 0; i < count; i++) {
		add_text(out, headers[i].name);
		add_text(out, headers[i].value);
	}
}

int header_blob_read(struct span blob, struct arena *arena,
	const struct object_header **out_headers, size_t *out_count, struct error *err)
{
	struct object_header header;
	struct span rest = blob;
	size_t count = 0;
	while (rest.len > 0 && take_text(&rest, &header.name) && take_text(&rest, &header.value))
		count++;
	if (rest.len > 0)
		return error_set(
			err, ERROR_CORRUPT, "The stored headers of an object are malformed.");
	struct object_header *const headers = arena_take_array(arena, count + 1, sizeof(*headers));
	if (headers == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"The request's memory ran out while reading an object's headers.");
	rest = blob;
	for (size_t i = 0; i < count; i++) {
		const bool taken =
			take_text(&rest, &headers[i].name) && take_text(&rest, &headers[i].value);
		ASSERT(taken);
	}
	*out_headers = headers;
	*out_count = count;
	return 0;
}

struct span header_blob_find(struct span blob, const char *name)
{
	struct object_header header;
	struct span rest = blob;
	while (take_text(&rest, &header.name) && take_text(&rest, &header.value))
		if (span_equal_text(header.name, name))
			return header.value;
	return (struct span){NULL, 0};
}

static void add_text(struct buffer *out, struct span text)
{
	const uint32_t len = htole32((uint32_t)text.len);
	buffer_add(out, &len, sizeof(len));
	buffer_add_span(out, text);
}

static bool take_text(struct span *rest, struct span *out)
{
	uint32_t len;
	if (rest->len < sizeof(len))
		return false;
	memcpy(&len, rest->data, sizeof(len));
	len = le32toh(len);
	if (len > rest->len - sizeof(len))
		return false;
	*out = span_slice(*rest, sizeof(len), len);
	*rest = span_slice(*rest, sizeof(len) + len, rest->len);
	return true;
}
