#include "bench/shared/bench_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "weights/model/safetensors.h"

static void change(uint16_t *values, size_t count, uint64_t distance, uint64_t *state);
static void write_checkpoint(const char *path, const uint16_t *values, uint64_t per_tensor);
static uint64_t next_random(uint64_t *state);

void bench_fail(const char *what, const struct error *err)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, err->text);
	exit(EXIT_FAILURE);
}

void bench_join(char out[BENCH_PATH_BYTES], const char *folder, const char *name)
{
	struct error err;
	const int len = snprintf(out, BENCH_PATH_BYTES, "%s/%s", folder, name);
	if (len >= 0 && len < BENCH_PATH_BYTES)
		return;
	error_set(&err, ERROR_INVALID, "the path is longer than %d bytes", BENCH_PATH_BYTES - 1);
	bench_fail(folder, &err);
}

struct checkpoint *bench_open(const char *path)
{
	struct error err;
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	if (checkpoint == NULL)
		bench_fail(path, &err);
	return checkpoint;
}

void bench_pair_make(const char *base, const char *next, size_t mib, uint64_t distance)
{
	const uint64_t per_tensor = mib * (1 << 20) / 2 / BENCH_PAIR_TENSORS;
	const size_t count = (size_t)per_tensor * BENCH_PAIR_TENSORS;
	uint16_t *const values = memory_new_array(count, sizeof(values[0]));
	uint64_t state = 88172645463325252;
	for (size_t i = 0; i < count; i++)
		values[i] = (uint16_t)(0x3c00 | (next_random(&state) & 0x83ff));
	write_checkpoint(base, values, per_tensor);
	change(values, count, distance, &state);
	write_checkpoint(next, values, per_tensor);
	free(values);
}

static void change(uint16_t *values, size_t count, uint64_t distance, uint64_t *state)
{
	size_t i = next_random(state) % distance;
	for (; i < count; i += 1 + next_random(state) % distance)
		values[i] = (uint16_t)(values[i] + (next_random(state) % 2 == 0 ? 1 : -1));
}

static void write_checkpoint(const char *path, const uint16_t *values, uint64_t per_tensor)
{
	struct safetensors_tensor tensors[BENCH_PAIR_TENSORS];
	char names[BENCH_PAIR_TENSORS][16];
	struct buffer header;
	struct error err;
	for (unsigned i = 0; i < BENCH_PAIR_TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "layer.%02u", i);
		tensors[i] = (struct safetensors_tensor){.name = span_text(names[i]),
			.dtype = DTYPE_BF16,
			.rank = 1,
			.shape = &per_tensor};
	}
	buffer_init(&header, 1 << 20);
	if (safetensors_write_header(tensors, BENCH_PAIR_TENSORS, NULL, 0, &header, &err) != 0)
		bench_fail("header", &err);
	FILE *const file = fopen(path, "wb");
	if (file == NULL || fwrite(header.data, 1, header.len, file) != header.len ||
		fwrite(values, 2 * BENCH_PAIR_TENSORS, per_tensor, file) != per_tensor ||
		fclose(file) != 0) {
		error_set(&err, ERROR_IO, "it cannot be written (error %d)", errno);
		bench_fail(path, &err);
	}
	buffer_release(&header);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
