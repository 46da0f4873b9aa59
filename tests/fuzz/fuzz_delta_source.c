/* Any bytes as a delta upon a base that it was not made from: opened, bound and decoded to the end.
 * A tensor comes out whole or ends in an error; never more, never less. fuzz_delta.h says how the
 * bytes are laid out. */
#include "fuzz_delta.h"
#include "weights/delta/delta_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tensor(struct tensor_source *source, size_t tensor)
{
	struct error err;
	struct span block;
	struct tensor_cursor *const cursor = tensor_source_open(source, tensor, &err);
	if (cursor == NULL)
		return;
	uint64_t total = 0;
	int got;
	while ((got = tensor_cursor_next(cursor, &block, &err)) == 1) {
		uint8_t sum = 0;
		for (size_t i = 0; i < block.len; i++)
			sum ^= block.data[i];
		total += block.len + (sum & 0);
	}
	ASSERT(got == -1 ? err.kind != ERROR_NONE : total == checkpoint_tensor(base, tensor).len);
	tensor_cursor_close(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	prepare();
	struct error err;
	const bool is_file = data[0] % 2 == 0;
	const char *const path = is_file ? NULL : write_delta(span_of(data, size));
	if (!is_file && path == NULL)
		return 0;
	struct delta_reader *const reader = is_file
		? delta_reader_from_bytes(span_of(data + 1, size - 1), "fuzz", &err)
		: delta_reader_open(path, &err);
	if (reader == NULL)
		return 0;
	struct tensor_source *const source = delta_source_new(reader, base_source, &err);
	for (size_t i = 0; source != NULL && i < schema_count(checkpoint_schema(base)); i++)
		read_tensor(source, i);
	tensor_source_free(source);
	delta_reader_close(reader);
	return 0;
}
