/* What reading full checkpoints costs that are stored as deltas, beside one that lies as it was
 * uploaded, and what making them so costs; in process, without a network, reads of 256 KiB as a
 * connection makes them. Weights are made up: normal ones, of which 1.35 % change by one ulp a
 * step.
 *
 *   derived_rate FOLDER [MIB]      FOLDER is made and filled; MIB of weights defaults to 256 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "storage/derive/derive_work.h"
#include "storage/objects/object_read.h"
#include "storage/objects/scratch.h"
#include "storage/open/store_open.h"
#include "storage/versions/version.h"
#include "weights/model/safetensors.h"

enum { DEFAULT_MIB = 256, READ_BYTES = 256 * 1024, TENSORS = 16, READS = 5, STEPS = 3 };

struct derived_rate {
	struct store *store;
	const char *folder;
	struct buffer file;
	uint64_t header;
	uint64_t state;
};

static double rate_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void rate_check(int result, const struct error *err)
{
	if (result == 0)
		return;
	fprintf(stderr, "derived_rate: %s\n", err->text);
	exit(1);
}

static double rate_random(struct derived_rate *rate)
{
	rate->state ^= rate->state << 13;
	rate->state ^= rate->state >> 7;
	rate->state ^= rate->state << 17;
	return (double)(rate->state >> 11) * 0x1p-53;
}

/* A bf16 out of a normal distribution of deviation 0.02. */
static uint16_t rate_weight(struct derived_rate *rate)
{
	const double radius = sqrt(-2 * log(1 - rate_random(rate)));
	const float value = (float)(0.02 * radius * cos(6.283185307179586 * rate_random(rate)));
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

static void rate_make(struct derived_rate *rate, uint64_t elements)
{
	struct safetensors_tensor tensors[TENSORS];
	char names[TENSORS][16];
	struct error err = {0};
	for (size_t i = 0; i < TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "tensor%02zu", i);
		tensors[i] = (struct safetensors_tensor){.name = span_text(names[i]),
			.dtype = DTYPE_BF16,
			.rank = 1,
			.shape = &elements,
			.elements = elements};
	}
	buffer_init(&rate->file, 2 * elements * TENSORS + 100000);
	rate_check(safetensors_write_header(tensors, TENSORS, NULL, 0, &rate->file, &err), &err);
	rate->header = rate->file.len;
	uint8_t *const data = buffer_reserve(&rate->file, 2 * elements * TENSORS);
	for (uint64_t i = 0; i < elements * TENSORS; i++) {
		const uint16_t weight = rate_weight(rate);
		memcpy(data + 2 * i, &weight, sizeof(weight));
	}
	buffer_commit(&rate->file, 2 * elements * TENSORS);
}

static void rate_train(struct derived_rate *rate)
{
	for (uint64_t at = rate->header; at < rate->file.len; at += 2) {
		uint16_t weight;
		if (rate_random(rate) >= 0.0135)
			continue;
		memcpy(&weight, rate->file.data + at, sizeof(weight));
		weight = (uint16_t)(rate->state & 1 ? weight + 1 : weight - 1);
		memcpy(rate->file.data + at, &weight, sizeof(weight));
	}
}

static int64_t rate_put(struct derived_rate *rate, const char *key)
{
	char path[4096];
	struct error err = {0};
	int64_t version = 0;
	snprintf(path, sizeof(path), "%s/file", rate->folder);
	rate_check(file_place(file_system(), path, buffer_span(&rate->file), 0600, &err), &err);
	rate_check(scratch_store(rate->store, path, bucket_named(span_text("bucket")),
			   span_text(key), &version, &err),
		&err);
	return version;
}

static double rate_read(struct derived_rate *rate, int64_t version)
{
	struct arena *const arena = arena_new(100000);
	uint8_t *const into = memory_new(READ_BYTES);
	struct error err = {0};
	struct object object;
	double best = 0;
	rate_check(object_find_sequence(rate->store, version, arena, &object, &err), &err);
	for (int i = 0; i < READS; i++) {
		const double begun = rate_now();
		struct body_source *const source =
			object_open(rate->store, &object, 0, object.size, &err);
		rate_check(source == NULL ? -1 : 0, &err);
		ptrdiff_t got;
		while ((got = source->read(source, into, READ_BYTES, &err)) > 0)
			;
		rate_check((int)got, &err);
		source->close(source);
		const double rate_of_this = (double)object.size / (rate_now() - begun) * 1e-9;
		best = rate_of_this > best ? rate_of_this : best;
	}
	free(into);
	arena_free(arena);
	return best;
}

static bool rate_goes_on(void *owner, size_t bytes)
{
	(void)owner;
	(void)bytes;
	return true;
}

static void rate_derive(struct derived_rate *rate, int64_t version, const char *what)
{
	const struct work_pace pace = {.spend = rate_goes_on};
	struct derive_outcome outcome;
	struct error err = {0};
	const double begun = rate_now();
	rate_check(derive_work(rate->store, version, &pace, &outcome, &err), &err);
	if (outcome.is_swapped)
		printf("%-52s %10.3f GB/s, to %.2f %% of its size\n", what,
			(double)rate->file.len / (rate_now() - begun) * 1e-9,
			100 - 100 * (double)outcome.bytes_saved / (double)rate->file.len);
}

static void rate_run(struct derived_rate *rate)
{
	static const char *const keys[STEPS] = {
		"ckpt/0.safetensors", "ckpt/1.safetensors", "ckpt/2.safetensors"};
	static const char *const names[STEPS] = {"", "derived once", "derived twice"};
	const double plain = rate_read(rate, rate_put(rate, "plain"));
	printf("%-52s %10.3f GB/s\n", "reading a plain checkpoint", plain);
	for (int i = 0; i < STEPS; i++) {
		char what[100];
		const int64_t version = rate_put(rate, keys[i]);
		snprintf(what, sizeof(what), "making one that is %s", names[i]);
		rate_derive(rate, version, what);
		rate_train(rate);
		if (i == 0)
			continue;
		const double derived = rate_read(rate, version);
		snprintf(what, sizeof(what), "reading one that is %s", names[i]);
		printf("%-52s %10.3f GB/s, %.3f of the plain one (limit 0.5)\n", what, derived,
			derived / plain);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	struct derived_rate rate = {.folder = argv[1], .state = 88172645463325252U};
	struct error err = {0};
	const uint64_t mib = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_MIB;
	const struct store_options options = {.folder = argv[1]};
	rate.store = store_open(&options, &err);
	rate_check(rate.store == NULL ? -1 : 0, &err);
	struct call *const create =
		bucket_create_call(rate.store, span_text("bucket"), span_text("main"), NULL);
	(void)call_run(create, &err); /* it is there already in a folder of before */
	call_free(create);
	rate_make(&rate, mib * 1024 * 1024 / 2 / TENSORS);
	rate_run(&rate);
	store_close(rate.store);
	buffer_release(&rate.file);
	return 0;
}
