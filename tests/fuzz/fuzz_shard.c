/* Shards as strangers send them: in the upload form, and as a client gets them for an answer. What
 * is accepted and written again from what was read comes back the same. */
#include <stdlib.h>

#include "base/memory.h"
#include "chunker/shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COPY_BYTES = 64 * 1024 * 1024 };

static void copy_file(const struct shard_file *file, struct buffer *out)
{
	struct shard_term *const terms =
		memory_new_array((size_t)file->term_count + 1, sizeof(*terms));
	struct chunk_id *const ranges =
		memory_new_array((size_t)file->term_count + 1, sizeof(*ranges));
	for (uint32_t i = 0; i < file->term_count; i++) {
		terms[i] = shard_file_term(file, i);
		if (file->has_ranges)
			ranges[i] = shard_file_range(file, i);
	}
	shard_write_file(out, &file->hash, terms, ranges, file->term_count);
	free(terms);
	free(ranges);
}

/* Sums of sizes that do not fit are no business of the writer's, which takes what it has stored. */
static void copy_xorb(const struct shard_xorb *xorb, struct buffer *out)
{
	struct chunk_entry *const chunks =
		memory_new_array((size_t)xorb->chunk_count + 1, sizeof(*chunks));
	for (uint32_t i = 0; i < xorb->chunk_count; i++) {
		const struct shard_chunk chunk = shard_xorb_chunk(xorb, i);
		chunks[i] = (struct chunk_entry){.id = chunk.id, .size = chunk.size % 131073};
	}
	shard_write_xorb(out, &xorb->hash, chunks, xorb->chunk_count % 8193);
	free(chunks);
}

static int copy(struct shard_reader *reader, struct buffer *out)
{
	struct error err = {0};
	struct shard_file file;
	struct shard_xorb xorb;
	int got;
	shard_write_header(out, 0);
	while ((got = shard_reader_file(reader, &file, &err)) == 1)
		copy_file(&file, out);
	shard_write_bookend(out);
	while (got == 0 && (got = shard_reader_xorb(reader, &xorb, &err)) == 1) {
		copy_xorb(&xorb, out);
		got = 0;
	}
	shard_write_bookend(out);
	ASSERT(got == 0 || err.kind == ERROR_INVALID);
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct shard_reader reader;
	struct shard_answer answer;
	struct buffer first;
	struct buffer second;
	if (shard_reader_open(&reader, span_of(data, size), &err) != 0) {
		ASSERT(err.kind == ERROR_INVALID);
		return 0;
	}
	buffer_init(&first, COPY_BYTES);
	buffer_init(&second, COPY_BYTES);
	struct shard_reader again = reader;
	if (copy(&reader, &first) == 0) {
		ASSERT(shard_reader_open(&reader, buffer_span(&first), &err) == 0);
		ASSERT(copy(&reader, &second) == 0 && shard_reader_end(&reader, &err) == 0);
		ASSERT(span_equal(buffer_span(&first), buffer_span(&second)));
	}
	if (shard_reader_answer(&again, &answer, &err) != 0)
		ASSERT(err.kind == ERROR_INVALID);
	buffer_release(&first);
	buffer_release(&second);
	return 0;
}
