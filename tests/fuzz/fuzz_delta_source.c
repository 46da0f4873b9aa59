/* Any bytes as a delta upon a base that it was not made from: opened, bound and decoded to the end. A tensor comes out whole or ends in an error; never
 * more, never less. The first byte chooses: one file in memory, or a folder with an index (its length in the next two bytes) and one shard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "weights/checkpoint_source.h"
#include "weights/delta_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char HEADER[] =
	"{\"a\":{\"dtype\":\"BF16\",\"shape\":[20,30],\"data_offsets\":[0,1200]},\"b\":{\"dtype\":\"F32\",\"shape\":[50],\"data_offsets\":[1200,1400]},"
	"\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[300],\"data_offsets\":[1400,1700]},\"d\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[1700,1700]},"
	"\"e\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[1700,1704]}}     ";
enum { HEADER_BYTES = sizeof HEADER - 1, DATA_BYTES = 1704, PATH_BYTES = 256 };

static char folder[PATH_BYTES];
static struct checkpoint *base;
static struct tensor_source *base_source;

static void write_file(const char *const name, const struct span bytes)
{
	char path[2 * PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *const file = fopen(path, "wb");
	ASSERT(file != NULL && fwrite(bytes.data, 1, bytes.len, file) == bytes.len);
	fclose(file);
}

static void remove_folder(void)
{
	struct error err;
	tensor_source_free(base_source);
	checkpoint_close(base);
	(void)file_remove_tree(folder, &err);
}

static void prepare(void)
{
	if (base != NULL)
		return;
	const char *const parent = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/deltabucket-fuzz-XXXXXX", parent != NULL ? parent : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ASSERT(mkdtemp(folder) != NULL);
	uint8_t bytes[8 + HEADER_BYTES + DATA_BYTES] = {HEADER_BYTES & 255, HEADER_BYTES >> 8};
	memcpy(bytes + 8, HEADER, HEADER_BYTES);
	uint32_t state = 1;
	for (size_t i = 0; i < DATA_BYTES; i++) {
		state = state * 1664525U + 1013904223U;
		bytes[8 + HEADER_BYTES + i] = (uint8_t)(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 30));
	}
	write_file("base.safetensors", span_of(bytes, sizeof bytes));
	char path[2 * PATH_BYTES];
	struct error err;
	snprintf(path, sizeof path, "%s/base.safetensors", folder);
	base = checkpoint_open(path, &err);
	ASSERT(base != NULL);
	base_source = checkpoint_source_new(base);
	snprintf(path, sizeof path, "%s/delta", folder);
	ASSERT(file_make_folder(path, 0700, &err) == 0);
	atexit(remove_folder);
}

static struct delta_reader *open_folder(const struct span rest, struct error *const err)
{
	if (rest.len < 2)
		return NULL;
	const size_t index_len = (size_t)(rest.data[0] | rest.data[1] << 8);
	if (index_len > rest.len - 2)
		return NULL;
	write_file("delta/model.safetensors.index.json", span_slice(rest, 2, index_len));
	write_file("delta/model-00000-of-00001.safetensors", span_slice(rest, 2 + index_len, rest.len - 2 - index_len));
	char path[2 * PATH_BYTES];
	snprintf(path, sizeof path, "%s/delta", folder);
	return delta_reader_open(path, err);
}

static void read_tensor(struct tensor_source *const source, const size_t tensor)
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

int LLVMFuzzerTestOneInput(const uint8_t *const data, const size_t size)
{
	if (size == 0)
		return 0;
	prepare();
	struct error err;
	const struct span rest = span_of(data + 1, size - 1);
	struct delta_reader *const reader = data[0] % 2 == 0 ? delta_reader_from_bytes(rest, "fuzz", &err) : open_folder(rest, &err);
	if (reader == NULL)
		return 0;
	struct tensor_source *const source = delta_source_new(reader, base_source, &err);
	for (size_t i = 0; source != NULL && i < schema_count(checkpoint_schema(base)); i++)
		read_tensor(source, i);
	tensor_source_free(source);
	delta_reader_close(reader);
	return 0;
}
