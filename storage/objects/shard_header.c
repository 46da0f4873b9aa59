#include "storage/objects/shard_header.h"

#include "storage/objects/object_read.h"

#include <string.h>

enum { LENGTH_BYTES = 8 };

static int read_range(struct store *store, const struct object *object, uint64_t offset, size_t len,
	struct buffer *out, struct error *err);

int shard_header_read(struct store *store, const struct object *object, const char *name,
	struct shard_header *out, struct error *err)
{
	uint64_t json_bytes = 0;
	const size_t first = object->size < LENGTH_BYTES ? (size_t)object->size : LENGTH_BYTES;
	memset(out, 0, sizeof(*out));
	buffer_init(&out->bytes, LENGTH_BYTES + SAFETENSORS_HEADER_MAX_BYTES);
	if (read_range(store, object, 0, first, &out->bytes, err) != 0 ||
		safetensors_header_size(buffer_span(&out->bytes), object->size, &json_bytes, err) !=
			0 ||
		read_range(store, object, LENGTH_BYTES, (size_t)json_bytes, &out->bytes, err) != 0)
		return -1;
	out->tensors = safetensors_parse(
		span_slice(buffer_span(&out->bytes), LENGTH_BYTES, (size_t)json_bytes),
		object->size - LENGTH_BYTES - json_bytes, name, err);
	return out->tensors == NULL ? -1 : 0;
}

void shard_header_release(struct shard_header *header)
{
	safetensors_free(header->tensors);
	header->tensors = NULL;
	buffer_release(&header->bytes);
}

static int read_range(struct store *store, const struct object *object, uint64_t offset, size_t len,
	struct buffer *out, struct error *err)
{
	if (len == 0)
		return 0;
	uint8_t *const into = buffer_reserve(out, len);
	if (into == NULL)
		return error_set(err, ERROR_TOO_LARGE,
			"A safetensors header of %zu bytes is too large.", len);
	struct body_source *const source = object_open(store, object, offset, len, err);
	if (source == NULL)
		return -1;
	const int result = body_source_read_whole(source, into, len, err);
	source->close(source);
	if (result == 0)
		buffer_commit(out, len);
	return result;
}
