/* One small checkpoint of several dtypes in a scratch folder, and a fuzzed delta beside it: for the
 * targets that decode deltas of every format. */
#ifndef TESTS_FUZZ_FUZZ_DELTA_H
#define TESTS_FUZZ_FUZZ_DELTA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "weights/model/checkpoint_source.h"

static const char HEADER[] =
	"{\"a\":{\"dtype\":\"BF16\",\"shape\":[20,30],\"data_offsets\":[0,1200]},\"b\":{\"dtype\":\"F32\",\"shape\":[50],\"data_offsets\":[1200,1400]},"
	"\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[300],\"data_offsets\":[1400,1700]},\"d\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[1700,1700]},"
	"\"e\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[1700,1704]}}     ";
enum { HEADER_BYTES = sizeof HEADER - 1, DATA_BYTES = 1704, PATH_BYTES = 256 };

static char folder[PATH_BYTES];
static struct checkpoint *base;
static struct tensor_source *base_source;

static void write_file(const char *name, struct span bytes)
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
	(void)file_remove_tree(file_system(), folder, &err);
}

static void prepare(void)
{
	if (base != NULL)
		return;
	const char *const parent = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/deltabucket-fuzz-XXXXXX",
		parent != NULL                          ? parent
			: access("/dev/shm", W_OK) == 0 ? "/dev/shm"
							: "/tmp");
	ASSERT(mkdtemp(folder) != NULL);
	uint8_t bytes[8 + HEADER_BYTES + DATA_BYTES] = {HEADER_BYTES & 255, HEADER_BYTES >> 8};
	memcpy(bytes + 8, HEADER, HEADER_BYTES);
	uint32_t state = 1;
	for (size_t i = 0; i < DATA_BYTES; i++) {
		state = state * 1664525U + 1013904223U;
		bytes[8 + HEADER_BYTES + i] =
			(uint8_t)(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 30));
	}
	write_file("base.safetensors", span_of(bytes, sizeof bytes));
	char path[2 * PATH_BYTES];
	struct error err;
	snprintf(path, sizeof path, "%s/base.safetensors", folder);
	base = checkpoint_open(path, &err);
	ASSERT(base != NULL);
	base_source = checkpoint_source_new(base);
	snprintf(path, sizeof path, "%s/delta", folder);
	ASSERT(file_make_folder(file_system(), path, 0700, &err) == 0);
	atexit(remove_folder);
}

/* The delta that the bytes say: the first one's lowest bit chooses one file, or a folder with an
 * index (its length in the next two bytes) and one shard; with its lowest three bits set, SkyRL's
 * manifest is in the index's place. Gives its path, or NULL. */
static inline const char *write_delta(struct span bytes)
{
	static char path[2 * PATH_BYTES];
	const struct span rest = span_slice(bytes, 1, bytes.len - 1);
	if ((bytes.data[0] & 1) == 0) {
		snprintf(path, sizeof path, "%s/delta.safetensors", folder);
		write_file("delta.safetensors", rest);
		return path;
	}
	if (rest.len < 2)
		return NULL;
	const size_t index_len = (size_t)(rest.data[0] | rest.data[1] << 8);
	if (index_len > rest.len - 2)
		return NULL;
	const bool has_manifest = (bytes.data[0] & 7) == 7;
	snprintf(path, sizeof path, "%s/delta/model.safetensors.index.json", folder);
	(void)unlink(path); /* it would come before a manifest */
	snprintf(path, sizeof path, "%s/delta", folder);
	write_file(has_manifest ? "delta/manifest.json" : "delta/model.safetensors.index.json",
		span_slice(rest, 2, index_len));
	write_file("delta/model-00000-of-00001.safetensors",
		span_slice(rest, 2 + index_len, rest.len - 2 - index_len));
	return path;
}

#endif
