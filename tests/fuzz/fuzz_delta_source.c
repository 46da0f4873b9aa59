/* Any bytes as a delta upon a base that it was not made from: opened, bound, decoded to the end, and
 * asked for the elements that it changes. A tensor comes out whole or ends in an error; never more,
 * never less. fuzz_delta.h says how the bytes are laid out. */
#include "fuzz_delta.h"
#include "weights/delta/delta_changes.h"
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

/* With the base and without. The changes are in the tensor, or there is an error. */
static void read_changes(const struct delta_reader *reader, struct tensor_source *from)
{
	static uint64_t positions[DATA_BYTES];
	struct error err;
	const struct schema *const schema = checkpoint_schema(base);
	struct delta_changes *const changes = delta_changes_new(schema);
	for (size_t i = 0; i < schema_count(schema); i++) {
		(void)delta_changes_read(changes, reader, from, i, &err);
		const uint64_t count = delta_changes_count(changes, i);
		ASSERT(count <= schema_tensor(schema, i)->bytes);
		delta_changes_positions(changes, i, positions);
		for (uint64_t k = 0; k < count; k++)
			ASSERT(positions[k] < schema_tensor(schema, i)->bytes &&
				(k == 0 || positions[k - 1] < positions[k]));
	}
	delta_changes_free(changes);
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
	read_changes(reader, base_source);
	read_changes(reader, NULL);
	delta_reader_close(reader);
	return 0;
}
