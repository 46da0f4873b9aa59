/* Any bytes as a safetensors file, and any bytes as an index.json. What parses must hold what the
 * contract says. */
#include <stdlib.h>

#include "weights/model/safetensors.h"
#include "weights/model/schema.h"
#include "weights/model/shard_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensors(const struct safetensors *header, uint64_t data_size)
{
	uint64_t position = 0;
	for (size_t i = 0; i < safetensors_count(header); i++) {
		const struct safetensors_tensor *const tensor = safetensors_tensor(header, i);
		ASSERT(tensor->begin == position && tensor->end <= data_size);
		ASSERT(safetensors_find(header, tensor->name) == tensor);
		position = tensor->end;
	}
	ASSERT(position == data_size);
}

/* A schema's text form must come back as the same text. */
static void check_schema(const struct safetensors *header)
{
	struct error err;
	struct buffer text;
	struct buffer again;
	struct schema *const schema = schema_new();
	buffer_init(&text, 1 << 26);
	buffer_init(&again, 1 << 26);
	if (schema_add(schema, header, &err) == 0) {
		schema_finish(schema);
		schema_print(schema, &text);
		struct schema *const back = schema_parse(buffer_span(&text), &err);
		ASSERT(back != NULL);
		schema_print(back, &again);
		ASSERT(span_equal(buffer_span(&text), buffer_span(&again)));
		ASSERT(schema_check(schema, back, &err) == 0);
		schema_free(back);
	}
	schema_free(schema);
	buffer_release(&text);
	buffer_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span bytes = span_of(data, size);
	struct error err;
	uint64_t header_size = 0;
	if (safetensors_header_size(span_slice(bytes, 0, 8), size, &header_size, &err) == 0) {
		ASSERT(header_size + 8 <= size);
		const uint64_t data_size = size - 8 - header_size;
		struct safetensors *const header = safetensors_parse(
			span_slice(bytes, 8, (size_t)header_size), data_size, "fuzz", &err);
		if (header != NULL) {
			check_tensors(header, data_size);
			check_schema(header);
		}
		safetensors_free(header);
	}
	shard_index_free(shard_index_parse(bytes, "fuzz", &err));
	schema_free(schema_parse(bytes, &err));
	return 0;
}
