/* What a patch of tensors in memory costs beside `deltabucket apply` of the same delta, which reads
 * and writes files in memory: seconds of the clock and of the processors, best of several rounds
 * that take turns, and their ratios.
 *
 *   patch_rate [MIB [FOLDER]]
 *
 * A synthetic BF16 pair of MIB mebibytes (1024) with 1.2 % of changes; files go to FOLDER, or to
 * /dev/shm where there is one. $DELTABUCKET_BUILD has the command line (default: the working
 * folder). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "weights/delta/delta_patch.h"

enum { TENSORS = 16, ROUNDS = 4, DEFAULT_MIB = 1024, MOST_MIB = 1 << 16, PATH_BYTES = 1024 };

static void fail(const char *what, const struct error *err)
{
	fprintf(stderr, "patch_rate: %s: %s\n", what, err->text);
	exit(EXIT_FAILURE);
}

static void join(char out[PATH_BYTES], const char *folder, const char *name)
{
	const int len = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
	if (len < 0 || len >= PATH_BYTES) {
		fprintf(stderr, "patch_rate: the path %s/%s is too long\n", folder, name);
		exit(EXIT_FAILURE);
	}
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* 1.2 % of the elements one step up or down. */
static void change(uint16_t *values, size_t count, uint64_t *state)
{
	for (size_t i = next_random(state) % 166; i < count; i += 1 + next_random(state) % 166)
		values[i] = (uint16_t)(values[i] + (next_random(state) % 2 == 0 ? 1 : -1));
}

static void write_checkpoint(const char *path, const uint16_t *values, uint64_t per_tensor)
{
	struct safetensors_tensor tensors[TENSORS];
	char names[TENSORS][16];
	struct buffer header;
	struct error err;
	for (unsigned i = 0; i < TENSORS; i++) {
		snprintf(names[i], sizeof(names[i]), "layer.%02u", i);
		tensors[i] = (struct safetensors_tensor){.name = span_text(names[i]),
			.dtype = DTYPE_BF16,
			.rank = 1,
			.shape = &per_tensor};
	}
	buffer_init(&header, 1 << 20);
	if (safetensors_write_header(tensors, TENSORS, NULL, 0, &header, &err) != 0)
		fail("header", &err);
	FILE *const file = fopen(path, "wb");
	if (file == NULL || fwrite(header.data, 1, header.len, file) != header.len ||
		fwrite(values, 2 * TENSORS, per_tensor, file) != per_tensor || fclose(file) != 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	buffer_release(&header);
}

static void make_pair(const char *base, const char *next, size_t mib)
{
	const uint64_t per_tensor = mib * (1 << 20) / 2 / TENSORS;
	const size_t count = (size_t)per_tensor * TENSORS;
	uint16_t *const values = memory_new_array(count, sizeof(values[0]));
	uint64_t state = 88172645463325252;
	for (size_t i = 0; i < count; i++)
		values[i] = (uint16_t)(0x3c00 | (next_random(&state) & 0x83ff));
	write_checkpoint(base, values, per_tensor);
	change(values, count, &state);
	write_checkpoint(next, values, per_tensor);
	free(values);
}

static struct checkpoint *open_checkpoint(const char *path)
{
	struct error err;
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	if (checkpoint == NULL)
		fail(path, &err);
	return checkpoint;
}

static void make_delta(const char *base, const char *next, const char *out)
{
	struct error err;
	struct delta_stats stats;
	const struct delta_diff_params params = {
		.base = open_checkpoint(base), .next = open_checkpoint(next), .out = out};
	if (delta_diff(&params, &stats, &err) != 0)
		fail("diff", &err);
	printf("%.2f %% of %.2f GB changed, the delta has %.1f MB\n",
		100.0 * (double)stats.changed_elements / (double)stats.elements,
		(double)stats.full_bytes / 1e9, (double)stats.delta_bytes / 1e6);
}

/* What is measured: seconds of the clock, and of the processors with the kernel's share. */
struct cost {
	double wall;
	double cpu;
};

static struct cost cost_now(int who)
{
	struct rusage usage;
	struct timespec now;
	getrusage(who, &usage);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (struct cost){(double)now.tv_sec + (double)now.tv_nsec / 1e9,
		(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6};
}

static void keep_best(struct cost *best, struct cost begin, struct cost end)
{
	const struct cost cost = {end.wall - begin.wall, end.cpu - begin.cpu};
	best->wall = best->wall == 0 || cost.wall < best->wall ? cost.wall : best->wall;
	best->cpu = best->cpu == 0 || cost.cpu < best->cpu ? cost.cpu : best->cpu;
}

static void measure_apply(const char *base, const char *delta, const char *out, struct cost *best)
{
	const char *const build = getenv("DELTABUCKET_BUILD");
	char program[PATH_BYTES];
	int status = 0;
	join(program, build != NULL ? build : ".", "deltabucket");
	const struct cost begin = cost_now(RUSAGE_CHILDREN);
	const pid_t child = fork();
	if (child == 0) {
		execl(program, program, "apply", base, delta, out, "--quiet", (char *)NULL);
		perror(program);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "patch_rate: '%s apply' ended with %d\n", program, status);
		exit(EXIT_FAILURE);
	}
	keep_best(best, begin, cost_now(RUSAGE_CHILDREN));
	unlink(out);
}

/* The tensors in memory, and the checkpoint that they are filled from before each round. */
struct tensors {
	const struct checkpoint *base;
	uint8_t *data[TENSORS];
	struct delta_changes *changes;
};

enum mode { ONE_PASS, GATHERS, PROVES_FIRST, MODES };

static void measure_patch(
	const struct tensors *tensors, const char *delta, enum mode mode, struct cost *best)
{
	struct error err;
	struct delta_stats stats;
	bool is_spoiled = false;
	const struct delta_patch_params params = {
		.schema = checkpoint_schema(tensors->base),
		.tensors = tensors->data,
		.deltas = &delta,
		.delta_count = 1,
		.proves_first = mode == PROVES_FIRST,
		.changes = mode == GATHERS ? tensors->changes : NULL,
	};
	for (size_t i = 0; i < TENSORS; i++) {
		const struct span from = checkpoint_tensor(tensors->base, i);
		memcpy(tensors->data[i], from.data, from.len);
	}
	delta_changes_reset(tensors->changes);
	const struct cost begin = cost_now(RUSAGE_SELF);
	if (delta_patch(&params, &stats, &is_spoiled, &err) != 0)
		fail("patch", &err);
	keep_best(best, begin, cost_now(RUSAGE_SELF));
}

static void show(const char *what, struct cost cost, struct cost yardstick)
{
	printf("%-20s %7.3f s  %7.3f s of processors", what, cost.wall, cost.cpu);
	printf("   / apply %5.2f, %5.2f\n", cost.wall / yardstick.wall, cost.cpu / yardstick.cpu);
}

static void measure(const char *base, const char *delta, const char *out)
{
	static const char *const names[MODES] = {
		"patch, one pass", "... gathers changes", "patch, proves first"};
	struct tensors tensors = {.base = open_checkpoint(base)};
	struct cost apply = {0};
	struct cost patch[MODES] = {{0}};
	tensors.changes = delta_changes_new(checkpoint_schema(tensors.base));
	for (size_t i = 0; i < TENSORS; i++)
		tensors.data[i] = memory_new(checkpoint_tensor(tensors.base, i).len);
	for (unsigned round = 0; round < ROUNDS; round++) {
		measure_apply(base, delta, out, &apply);
		for (unsigned mode = 0; mode < MODES; mode++)
			measure_patch(&tensors, delta, (enum mode)mode, &patch[mode]);
	}
	show("deltabucket apply", apply, apply);
	for (unsigned mode = 0; mode < MODES; mode++)
		show(names[mode], patch[mode], apply);
	for (size_t i = 0; i < TENSORS; i++)
		free(tensors.data[i]);
	delta_changes_free(tensors.changes);
}

int main(int argc, char **argv)
{
	char *end = NULL;
	char base[PATH_BYTES];
	char next[PATH_BYTES];
	char delta[PATH_BYTES];
	char out[PATH_BYTES];
	char made[] = "/dev/shm/patch_rate.XXXXXX";
	struct error err;
	const unsigned long mib = argc > 1 ? strtoul(argv[1], &end, 10) : DEFAULT_MIB;
	const char *const folder = argc > 2 ? argv[2] : mkdtemp(made);
	if (argc > 3 || (end != NULL && *end != 0) || mib == 0 || mib > MOST_MIB ||
		folder == NULL) {
		fprintf(stderr, "usage: patch_rate [MIB [FOLDER]]\n");
		return EXIT_FAILURE;
	}
	join(base, folder, "base.safetensors");
	join(next, folder, "next.safetensors");
	join(delta, folder, "delta");
	join(out, folder, "out.safetensors");
	make_pair(base, next, mib);
	make_delta(base, next, delta);
	unlink(next);
	measure(base, delta, out);
	if (file_remove_tree(file_system(), argc > 2 ? delta : folder, &err) != 0)
		fail(folder, &err);
	return EXIT_SUCCESS;
}
