/* How fast a delta is found, written and applied on one core: the scan alone, delta_diff and
 * delta_apply as a whole, in GB of new weights per second of CPU time (the kernel's share included)
 * and as ratios to what the machine does best with the same bytes, memcpy and XXH3-128. Each is the
 * best of several rounds. Files go to memory where there is some, so that the codec is measured and
 * not the disk.
 *
 *   diff_rate [MIB [SERIES]]
 *
 * A synthetic BF16 pair of MIB mebibytes (512) with 1 % of changes, then the last two steps of a
 * real series: a folder with anchors/ and deltas/ as in tests/data (default: small in
 * $DELTABUCKET_TEST_DATA, where that is set). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "bench/shared/bench_pair.h"
#include "weights/codec/element_scan.h"
#include "weights/delta/delta.h"

enum {
	ROUNDS = 3,
	DEFAULT_MIB = 512,
	MOST_MIB = 1 << 16,
	CHANGES_APART = 199, /* at most: 1 % change */
	BLOCK_BYTES = 2 * ELEMENT_SCAN_BLOCK
};

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The measured pair, and where results go. */
struct pair {
	const struct checkpoint *base;
	const struct checkpoint *next;
	const char *folder;
	uint64_t sink; /* what keeps the work from being optimised away */
};

static void copy(struct pair *pair)
{
	uint8_t *const block = memory_new(BLOCK_BYTES);
	const struct span bytes = checkpoint_file(pair->next, 0)->bytes;
	for (size_t from = 0; from < bytes.len; from += BLOCK_BYTES) {
		const struct span piece = span_slice(bytes, from, BLOCK_BYTES);
		memcpy(block, piece.data, piece.len);
		pair->sink += block[from % 4096];
	}
	free(block);
}

static void hash(struct pair *pair)
{
	pair->sink += xxh3_128(checkpoint_file(pair->next, 0)->bytes).bytes[0];
}

static void scan(struct pair *pair)
{
	uint16_t *const positions = memory_new_array(ELEMENT_SCAN_BLOCK, sizeof(positions[0]));
	for (size_t i = 0; i < schema_count(checkpoint_schema(pair->next)); i++) {
		const struct span base = checkpoint_tensor(pair->base, i);
		const struct span next = checkpoint_tensor(pair->next, i);
		for (size_t from = 0; from < next.len; from += BLOCK_BYTES) {
			const size_t bytes = span_slice(next, from, BLOCK_BYTES).len;
			pair->sink += element_scan(
				base.data + from, next.data + from, bytes / 2, positions);
		}
	}
	free(positions);
}

static void diff(struct pair *pair)
{
	char out[BENCH_PATH_BYTES];
	struct error err;
	struct delta_stats stats;
	bench_join(out, pair->folder, "delta");
	const struct delta_diff_params params = {
		.base = pair->base, .next = pair->next, .threads = 1, .out = out};
	if (file_remove_tree(file_system(), out, &err) != 0 ||
		delta_diff(&params, &stats, &err) != 0)
		bench_fail("delta_diff", &err);
	pair->sink += stats.delta_bytes;
}

static void apply(struct pair *pair)
{
	char out[BENCH_PATH_BYTES];
	char delta[BENCH_PATH_BYTES];
	struct error err;
	struct delta_stats stats;
	bench_join(out, pair->folder, "back");
	bench_join(delta, pair->folder, "delta");
	const struct delta_apply_params params = {
		.base = pair->base, .delta = delta, .out = out, .threads = 1};
	if (file_remove_tree(file_system(), out, &err) != 0 ||
		delta_apply(&params, &stats, &err) != 0)
		bench_fail("delta_apply", &err);
	pair->sink += stats.delta_bytes;
}

struct row {
	const char *name;
	void (*run)(struct pair *pair);
};
/* The two yardsticks come first. */
static const struct row rows[] = {{"memcpy", copy}, {"xxh3", hash}, {"scan", scan},
	{"delta_diff", diff}, {"delta_apply", apply}};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static double best_rate(const struct row *row, struct pair *pair)
{
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		const double start = cpu_seconds();
		row->run(pair);
		const double took = cpu_seconds() - start;
		best = took < best ? took : best;
	}
	return (double)checkpoint_bytes(pair->next) / 1e9 / (best > 0 ? best : 1e-9);
}

static void measure(const char *title, const char *base, const char *next, const char *folder)
{
	double rates[ROW_COUNT];
	struct checkpoint *const left = bench_open(base);
	struct checkpoint *const right = bench_open(next);
	struct pair pair = {.base = left, .next = right, .folder = folder};
	for (size_t i = 0; i < ROW_COUNT; i++) {
		rates[i] = best_rate(&rows[i], &pair);
		printf("%s_%s %.2f GB/s, %.2f of memcpy", title, rows[i].name, rates[i],
			rates[i] / rates[0]);
		if (i > 1)
			printf(", %.2f of xxh3", rates[i] / rates[1]);
		printf("\n");
	}
	/* Read, so that none of the work above can be left out. */
	if (pair.sink == 0)
		printf("%s_sink 0\n", title);
	checkpoint_close(left);
	checkpoint_close(right);
}

/* Rebuilds a series from its anchor and deltas and measures its last two steps. */
static void measure_series(const char *series, const char *folder)
{
	char previous[BENCH_PATH_BYTES];
	char next[BENCH_PATH_BYTES];
	bench_join(next, series, "anchors/step_000000.safetensors");
	snprintf(previous, sizeof(previous), "%s", next);
	for (unsigned step = 1;; step++) {
		char name[64];
		char delta[BENCH_PATH_BYTES];
		struct error err;
		struct delta_stats stats;
		snprintf(name, sizeof(name), "deltas/step_%06u.safetensors", step);
		bench_join(delta, series, name);
		if (!file_exists(delta))
			break;
		snprintf(previous, sizeof(previous), "%s", next);
		bench_join(next, folder, name + strlen("deltas/"));
		struct checkpoint *const base = bench_open(previous);
		const struct delta_apply_params params = {
			.base = base, .delta = delta, .out = next};
		if (delta_apply(&params, &stats, &err) != 0)
			bench_fail(delta, &err);
		checkpoint_close(base);
	}
	measure("real", previous, next, folder);
}

int main(int argc, char **argv)
{
	const char *const parent = getenv("TMPDIR") != NULL ? getenv("TMPDIR")
		: file_exists("/dev/shm")                   ? "/dev/shm"
							    : "/tmp";
	const char *const data = getenv("DELTABUCKET_TEST_DATA");
	const long mib = argc > 1 ? strtol(argv[1], NULL, 10) : DEFAULT_MIB;
	char folder[BENCH_PATH_BYTES];
	char base[BENCH_PATH_BYTES];
	char next[BENCH_PATH_BYTES];
	char series[BENCH_PATH_BYTES];
	struct error err;
	bench_join(folder, parent, "diff_rate.XXXXXX");
	if (mib < 1 || mib > MOST_MIB || mkdtemp(folder) == NULL) {
		fprintf(stderr, "usage: diff_rate [MIB [SERIES]]\n");
		return EXIT_FAILURE;
	}
	bench_join(base, folder, "base");
	bench_join(next, folder, "next");
	bench_pair_make(base, next, (size_t)mib, CHANGES_APART);
	measure("synthetic", base, next, folder);
	bench_join(series, data != NULL ? data : "", "small");
	if (argc > 2 || data != NULL)
		measure_series(argc > 2 ? argv[2] : series, folder);
	if (file_remove_tree(file_system(), folder, &err) != 0)
		bench_fail(folder, &err);
	return EXIT_SUCCESS;
}
