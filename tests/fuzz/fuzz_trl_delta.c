/* Any bytes as a delta: read, bound to a schema of its own names, and every position decoded. */
#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta/delta_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK = 65536, BLOCKS_MAX = 4 };

/* Decodes as for a tensor of a few blocks: positions must stay in their block and come in order. */
static void decode(const struct delta_entry *entry, uint16_t *positions)
{
	struct index_decoder decoder;
	struct error err;
	index_decoder_init(&decoder, &entry->code, entry->index, (uint64_t)BLOCK * BLOCKS_MAX);
	uint64_t total = 0;
	for (uint64_t block = 0; block < BLOCKS_MAX; block++) {
		size_t found = 0;
		if (index_decoder_take(&decoder, block * BLOCK, BLOCK, positions, &found, &err) !=
			0)
			return;
		for (size_t i = 1; i < found; i++)
			ASSERT(positions[i] > positions[i - 1]);
		total += found;
	}
	ASSERT(total == entry->count && total * 2 == entry->values.len);
}

/* A schema that has the entries' names as small BF16 vectors. */
static void bind(const struct delta_reader *reader)
{
	struct buffer text;
	struct error err;
	buffer_init(&text, 1 << 24);
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		buffer_add_span(&text, delta_reader_entry(reader, i)->name);
		buffer_add(&text,
			"\0BF16\0"
			"16\0",
			9);
	}
	struct schema *const schema = schema_parse(buffer_span(&text), &err);
	const struct delta_entry **entries = NULL;
	if (schema != NULL && delta_reader_bind(reader, schema, &entries, &err) == 0) {
		for (size_t i = 0; i < schema_count(schema); i++)
			ASSERT(entries[i] != NULL && entries[i]->values.len <= 32);
		free(entries);
	}
	schema_free(schema);
	buffer_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err;
	struct delta_reader *const reader =
		delta_reader_from_bytes(span_of(data, size), "fuzz", &err);
	if (reader == NULL)
		return 0;
	uint16_t *const positions = memory_new_array(BLOCK, sizeof(positions[0]));
	for (size_t i = 0; i < delta_reader_count(reader); i++)
		if (delta_reader_entry(reader, i)->kind == DELTA_ENTRY_SPARSE)
			decode(delta_reader_entry(reader, i), positions);
	bind(reader);
	free(positions);
	delta_reader_close(reader);
	return 0;
}
