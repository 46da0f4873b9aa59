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
#include "bench/shared/bench_pair.h"
#include "weights/delta/delta_patch.h"

enum {
	ROUNDS = 4,
	DEFAULT_MIB = 1024,
	MOST_MIB = 1 << 16,
	CHANGES_APART = 166 /* at most: 1.2 % change */
};

static void make_delta(const char *base, const char *next, const char *out)
{
	struct error err;
	struct delta_stats stats;
	const struct delta_diff_params params = {
		.base = bench_open(base), .next = bench_open(next), .out = out};
	if (delta_diff(&params, &stats, &err) != 0)
		bench_fail("diff", &err);
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
	char program[BENCH_PATH_BYTES];
	int status = 0;
	bench_join(program, build != NULL ? build : ".", "deltabucket");
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
	uint8_t *data[BENCH_PAIR_TENSORS];
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
	for (size_t i = 0; i < BENCH_PAIR_TENSORS; i++) {
		const struct span from = checkpoint_tensor(tensors->base, i);
		memcpy(tensors->data[i], from.data, from.len);
	}
	delta_changes_reset(tensors->changes);
	const struct cost begin = cost_now(RUSAGE_SELF);
	if (delta_patch(&params, &stats, &is_spoiled, &err) != 0)
		bench_fail("patch", &err);
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
	struct tensors tensors = {.base = bench_open(base)};
	struct cost apply = {0};
	struct cost patch[MODES] = {{0}};
	tensors.changes = delta_changes_new(checkpoint_schema(tensors.base));
	for (size_t i = 0; i < BENCH_PAIR_TENSORS; i++)
		tensors.data[i] = memory_new(checkpoint_tensor(tensors.base, i).len);
	for (unsigned round = 0; round < ROUNDS; round++) {
		measure_apply(base, delta, out, &apply);
		for (unsigned mode = 0; mode < MODES; mode++)
			measure_patch(&tensors, delta, (enum mode)mode, &patch[mode]);
	}
	show("deltabucket apply", apply, apply);
	for (unsigned mode = 0; mode < MODES; mode++)
		show(names[mode], patch[mode], apply);
	for (size_t i = 0; i < BENCH_PAIR_TENSORS; i++)
		free(tensors.data[i]);
	delta_changes_free(tensors.changes);
}

int main(int argc, char **argv)
{
	char *end = NULL;
	char base[BENCH_PATH_BYTES];
	char next[BENCH_PATH_BYTES];
	char delta[BENCH_PATH_BYTES];
	char out[BENCH_PATH_BYTES];
	char made[] = "/dev/shm/patch_rate.XXXXXX";
	struct error err;
	const unsigned long mib = argc > 1 ? strtoul(argv[1], &end, 10) : DEFAULT_MIB;
	const char *const folder = argc > 2 ? argv[2] : mkdtemp(made);
	if (argc > 3 || (end != NULL && *end != 0) || mib == 0 || mib > MOST_MIB ||
		folder == NULL) {
		fprintf(stderr, "usage: patch_rate [MIB [FOLDER]]\n");
		return EXIT_FAILURE;
	}
	bench_join(base, folder, "base.safetensors");
	bench_join(next, folder, "next.safetensors");
	bench_join(delta, folder, "delta");
	bench_join(out, folder, "out.safetensors");
	bench_pair_make(base, next, mib, CHANGES_APART);
	make_delta(base, next, delta);
	unlink(next);
	measure(base, delta, out);
	if (file_remove_tree(file_system(), argc > 2 ? delta : folder, &err) != 0)
		bench_fail(folder, &err);
	return EXIT_SUCCESS;
}
