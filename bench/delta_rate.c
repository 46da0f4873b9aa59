/* How fast and how small the ulp-class codec is in memory, on one core, beside XOR + zstd-1 on the
 * same tensors: GB of weights per second of CPU time, best of several rounds.
 *
 *   delta_rate [MIB [PERCENT]]   a generated BF16 tensor of MIB mebibytes (128): fp32 master weights moved by an Adam-like step so far that PERCENT (1.35)
 *                                of the BF16 casts change
 *   delta_rate BASE NEXT         two checkpoints, files or folders
 *
 * Encoding includes finding the changes. Decoding includes the XXH3-128 of base and of result for
 * ulp-class, of the result alone for the rival, which also gets its frames in pieces that fit the
 * cache. Sizes are bits per changed element; `entropy` is that of the change given the class of the
 * old weight, a direction, and the length in ulps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/digest/xxh3.h"
#include "base/format/compress.h"
#include "base/memory.h"
#include "weights/codec/block_code.h"
#include "weights/codec/ulp_word.h"
#include "weights/model/checkpoint.h"

enum {
	ROUNDS = 3,
	DEFAULT_MIB = 128,
	MOST_MIB = 1 << 14,
	LEVEL = 1,
	CLASSES = 12,
	LENGTHS = 32769,
	ROW_BYTES = 1 << 30
};
static const double default_percent = 1.35;

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void fail(const char *what, const struct error *err)
{
	fprintf(stderr, "delta_rate: %s: %s\n", what, err->text);
	exit(EXIT_FAILURE);
}

struct tensor {
	enum dtype dtype;
	struct span base;
	struct span next;
};

/* What is measured, and the room for it. */
struct pair {
	struct tensor *tensors;
	size_t count;
	uint64_t bytes;
	struct block_code_context *context;
	struct compressor *compressor;
	struct xxh3_stream *base_digest;
	struct xxh3_stream *result_digest;
	struct buffer encoded;
	size_t *sizes;   /* of the pieces in `encoded` */
	uint8_t *result; /* one piece */
	uint8_t *packed;
	struct block_code_stats stats;
};

static void pair_init(struct pair *pair, struct tensor *tensors, size_t count)
{
	const size_t most = (size_t)8 * BLOCK_CODE_ELEMENTS;
	uint64_t pieces = 0;
	*pair = (struct pair){.tensors = tensors,
		.count = count,
		.context = block_code_context_new(),
		.compressor = compressor_new()};
	for (size_t i = 0; i < count; i++) {
		pair->bytes += tensors[i].next.len;
		pieces += tensors[i].next.len / block_code_bytes(tensors[i].dtype) + 1;
	}
	pair->base_digest = xxh3_stream_new();
	pair->result_digest = xxh3_stream_new();
	pair->sizes = memory_new_array(pieces, sizeof *pair->sizes);
	pair->result = memory_new(most);
	pair->packed = memory_new(compress_bound(most));
	buffer_init(&pair->encoded, ROW_BYTES);
}

static void pair_release(struct pair *pair)
{
	block_code_context_free(pair->context);
	compressor_free(pair->compressor);
	xxh3_stream_free(pair->base_digest);
	xxh3_stream_free(pair->result_digest);
	buffer_release(&pair->encoded);
	free(pair->sizes);
	free(pair->result);
	free(pair->packed);
}

typedef void piece_fn(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece);

static void each_piece(struct pair *pair, piece_fn *run)
{
	size_t piece = 0;
	for (size_t i = 0; i < pair->count; i++) {
		const struct tensor *const tensor = &pair->tensors[i];
		const size_t step = (size_t)block_code_bytes(tensor->dtype);
		for (size_t from = 0; from < tensor->next.len; from += step)
			run(pair, tensor->dtype, span_slice(tensor->base, from, step),
				span_slice(tensor->next, from, step), piece++);
	}
}

static void check(struct pair *pair, struct span next, int failed, const struct error *err)
{
	if (failed != 0)
		fail("decode", err);
	if (memcmp(pair->result, next.data, next.len) != 0) {
		fprintf(stderr, "delta_rate: the result is wrong\n");
		exit(EXIT_FAILURE);
	}
}

static void encode_ulp(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	const size_t before = pair->encoded.len;
	block_code_encode(pair->context, dtype, base, next, &pair->encoded, &pair->stats);
	pair->sizes[piece] = pair->encoded.len - before;
}

static size_t decode_at; /* where the next piece begins in `encoded` */

static int decode_ulp_piece(
	struct pair *pair, enum dtype dtype, struct span base, size_t piece, struct error *err)
{
	struct block_code_facts facts;
	const struct span block =
		span_slice(buffer_span(&pair->encoded), decode_at, pair->sizes[piece]);
	decode_at += pair->sizes[piece];
	if (block_code_parse(block, dtype, base.len, &facts, err) != 0)
		return -1;
	return block_code_decode(pair->context, dtype, block, base, pair->result, err);
}

static void decode_ulp(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	struct error err;
	(void)next;
	block_code_context_watch(pair->context, pair->base_digest, pair->result_digest);
	if (decode_ulp_piece(pair, dtype, base, piece, &err) != 0)
		fail("decode", &err);
	block_code_context_watch(pair->context, NULL, NULL);
}

static void check_ulp(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	struct error err;
	check(pair, next, decode_ulp_piece(pair, dtype, base, piece, &err), &err);
}

static void xor_into(uint8_t *into, const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i = 0;
	for (; i + 8 <= len; i += 8) {
		uint64_t left;
		uint64_t right;
		memcpy(&left, a + i, 8);
		memcpy(&right, b + i, 8);
		left ^= right;
		memcpy(into + i, &left, 8);
	}
	for (; i < len; i++)
		into[i] = a[i] ^ b[i];
}

static void encode_xor(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	(void)dtype;
	xor_into(pair->result, base.data, next.data, next.len);
	const size_t bound = compress_bound(next.len);
	pair->sizes[piece] = compress_zstd(
		pair->compressor, span_of(pair->result, next.len), pair->packed, bound, LEVEL);
	buffer_add(&pair->encoded, pair->packed, pair->sizes[piece]);
}

static int decode_xor_piece(struct pair *pair, struct span base, size_t piece, struct error *err)
{
	const struct span frame =
		span_slice(buffer_span(&pair->encoded), decode_at, pair->sizes[piece]);
	decode_at += pair->sizes[piece];
	if (decompress_zstd(pair->compressor, frame, pair->result, base.len, err) != 0)
		return -1;
	xor_into(pair->result, pair->result, base.data, base.len);
	return 0;
}

static void decode_xor(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	struct error err;
	(void)dtype;
	if (decode_xor_piece(pair, base, piece, &err) != 0)
		fail("decode", &err);
	xxh3_stream_add(pair->result_digest, span_of(pair->result, next.len));
}

static void check_xor(
	struct pair *pair, enum dtype dtype, struct span base, struct span next, size_t piece)
{
	struct error err;
	(void)dtype;
	check(pair, next, decode_xor_piece(pair, base, piece, &err), &err);
}

struct row {
	const char *name;
	enum block_code_path path;
	piece_fn *encode;
	piece_fn *decode;
	piece_fn *check;
};
/* The rival comes first: the others are told as multiples of it. */
static const struct row rows[] = {
	{"xor_zstd1", BLOCK_CODE_PORTABLE, encode_xor, decode_xor, check_xor},
	{"ulp_portable", BLOCK_CODE_PORTABLE, encode_ulp, decode_ulp, check_ulp},
	{"ulp_avx2", BLOCK_CODE_AVX2, encode_ulp, decode_ulp, check_ulp},
	{"ulp_avx512", BLOCK_CODE_AVX512, encode_ulp, decode_ulp, check_ulp},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static double best_rate(struct pair *pair, piece_fn *run, bool encodes)
{
	double best = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		decode_at = 0;
		if (encodes) {
			buffer_reset(&pair->encoded);
			pair->stats = (struct block_code_stats){0};
		}
		const double start = cpu_seconds();
		each_piece(pair, run);
		const double took = cpu_seconds() - start;
		best = took < best ? took : best;
	}
	return (double)pair->bytes / 1e9 / (best > 0 ? best : 1e-9);
}

static double binary_entropy_bits(uint64_t changed, uint64_t of)
{
	const double p = of == 0 ? 0 : (double)changed / (double)of;
	return p <= 0 || p >= 1 ? 0 : -(double)of * (p * log2(p) + (1 - p) * log2(1 - p));
}

/* The largest exponent that, with those above it, a thousandth of the elements have. */
static unsigned top_exponent(const struct tensor *tensor, struct ulp_format format)
{
	uint64_t counts[256] = {0};
	uint64_t above = 0;
	unsigned top = format.mask;
	for (size_t i = 0; i < tensor->base.len; i += format.width)
		counts[(ulp_word_load(tensor->base.data + i, format.width) >> format.shift) &
			format.mask]++;
	for (; top > 0; top--) {
		above += counts[top];
		if (above * format.width * 1000 >= tensor->base.len)
			break;
	}
	return top;
}

/* Adds one tensor's bits for the places of its changes, and counts the lengths. */
static double place_bits(const struct tensor *tensor, uint64_t lengths[LENGTHS])
{
	const struct ulp_format format = ulp_format_of(tensor->dtype);
	uint64_t all[CLASSES] = {0};
	uint64_t changed[CLASSES] = {0};
	double bits = 0;
	if (format.width == 0)
		return 0;
	const unsigned top = top_exponent(tensor, format);
	for (size_t i = 0; i < tensor->base.len; i += format.width) {
		const uint16_t old = ulp_word_load(tensor->base.data + i, format.width);
		const int step = ulp_word_step(
			old, ulp_word_load(tensor->next.data + i, format.width), format.width);
		const unsigned class = ulp_word_class(old, format, top, CLASSES);
		all[class]++;
		changed[class] += step != 0;
		lengths[step < 0 ? -step : step] += step != 0;
	}
	for (unsigned class = 0; class < CLASSES; class ++)
		bits += binary_entropy_bits(changed[class], all[class]);
	return bits;
}

static double entropy_bits(const struct pair *pair)
{
	uint64_t *const lengths = memory_new_array(LENGTHS, sizeof *lengths);
	uint64_t changed = 0;
	double bits = 0;
	for (size_t i = 0; i < pair->count; i++)
		bits += place_bits(&pair->tensors[i], lengths);
	for (size_t i = 0; i < LENGTHS; i++)
		changed += lengths[i];
	for (size_t i = 0; i < LENGTHS; i++)
		if (lengths[i] != 0)
			bits += (double)lengths[i] *
				(1.0 * (i != 0) + log2((double)changed / (double)lengths[i]));
	free(lengths);
	return changed == 0 ? 0 : bits / (double)changed;
}

/* What one row came to. */
struct figures {
	double encode;
	double decode;
	double bytes;
};

static void measure_row(struct pair *pair, const struct row *row, struct figures *out_figures)
{
	out_figures->encode = best_rate(pair, row->encode, true);
	out_figures->bytes = (double)pair->encoded.len;
	out_figures->decode = best_rate(pair, row->decode, false);
	decode_at = 0;
	each_piece(pair, row->check);
}

static void measure(const char *title, struct tensor *tensors, size_t count)
{
	struct pair pair;
	struct figures rival = {0};
	double own_bytes = 0;
	pair_init(&pair, tensors, count);
	/* counts nothing, warms the context */
	encode_ulp(&pair, tensors[0].dtype, span_of(NULL, 0), span_of(NULL, 0), 0);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		struct figures own;
		if (!block_code_context_use(pair.context, rows[i].path))
			continue;
		measure_row(&pair, &rows[i], &own);
		rival = i == 0 ? own : rival;
		printf("%s_%s encode %.2f GB/s (%.2f of xor_zstd1), decode %.2f GB/s (%.2f), %.0f bytes (%.4f)\n",
			title, rows[i].name, own.encode, own.encode / rival.encode, own.decode,
			own.decode / rival.decode, own.bytes, own.bytes / rival.bytes);
		own_bytes = own.bytes;
	}
	const double changed = (double)pair.stats.changed;
	const double entropy = entropy_bits(&pair);
	printf("%s_size changed %.0f of %.0f (%.3f %%), xor_zstd1 %.3f, ulp %.3f, entropy %.3f bits per change; ulp is %.4f of entropy, %.4f of trl_raw\n",
		title, changed, (double)pair.stats.elements,
		100 * changed / (double)pair.stats.elements, 8 * rival.bytes / changed,
		8 * own_bytes / changed, entropy, 8 * own_bytes / changed / entropy,
		own_bytes / changed / 6);
	pair_release(&pair);
}

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Close to normal, of variance 1: four uniform numbers added up. */
static float next_normal(uint64_t *state)
{
	const uint64_t bits = next_random(state);
	const double sum = (double)(bits & 65535) + (double)(bits >> 16 & 65535) +
		(double)(bits >> 32 & 65535) + (double)(bits >> 48);
	return (float)((sum - 4 * 32767.5) / 65536 * 1.7320508);
}

static uint16_t bf16_of(float number)
{
	uint32_t bits;
	memcpy(&bits, &number, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Gives how many of the casts changed under steps of about `rate`. */
static size_t make_tensor(uint16_t *base, uint16_t *next, size_t count, double rate)
{
	const float deviation = 0.028f;
	uint64_t state = 7;
	size_t changed = 0;
	for (size_t i = 0; i < count; i++) {
		const float weight = deviation * next_normal(&state);
		base[i] = bf16_of(weight);
		next[i] = bf16_of(weight + (float)rate * next_normal(&state));
		changed += base[i] != next[i];
	}
	return changed;
}

static void measure_generated(size_t mib, double percent)
{
	enum { TRIES = 12, SAMPLE = 1 << 18 };
	const size_t count = mib << 19;
	uint16_t *const base = memory_new_array(count, sizeof *base);
	uint16_t *const next = memory_new_array(count, sizeof *next);
	double rate = 1e-6;
	for (int i = 0; i < TRIES; i++) /* small changes grow with the rate */
		rate *= percent / 100 * SAMPLE /
			(double)(make_tensor(base, next, SAMPLE, rate) + 1);
	make_tensor(base, next, count, rate);
	struct tensor tensor = {.dtype = DTYPE_BF16,
		.base = span_of(base, 2 * count),
		.next = span_of(next, 2 * count)};
	measure("generated", &tensor, 1);
	free(base);
	free(next);
}

static struct checkpoint *open_checkpoint(const char *path)
{
	struct error err;
	struct checkpoint *const checkpoint = checkpoint_open(path, &err);
	if (checkpoint == NULL)
		fail(path, &err);
	return checkpoint;
}

static void measure_files(const char *base_path, const char *next_path)
{
	struct checkpoint *const base = open_checkpoint(base_path);
	struct checkpoint *const next = open_checkpoint(next_path);
	const size_t count = schema_count(checkpoint_schema(next));
	struct tensor *const tensors = memory_new_array(count, sizeof *tensors);
	for (size_t i = 0; i < count; i++) {
		tensors[i] =
			(struct tensor){.dtype = schema_tensor(checkpoint_schema(next), i)->dtype,
				.base = checkpoint_tensor(base, i),
				.next = checkpoint_tensor(next, i)};
		if (tensors[i].base.len != tensors[i].next.len) {
			fprintf(stderr,
				"delta_rate: the two checkpoints differ in their tensors\n");
			exit(EXIT_FAILURE);
		}
	}
	measure("files", tensors, count);
	free(tensors);
	checkpoint_close(base);
	checkpoint_close(next);
}

int main(int argc, char **argv)
{
	char *end = NULL;
	const long mib = argc > 1 ? strtol(argv[1], &end, 10) : DEFAULT_MIB;
	if (argc == 3 && *end != '\0') {
		measure_files(argv[1], argv[2]);
		return EXIT_SUCCESS;
	}
	if (argc > 3 || mib < 1 || mib > MOST_MIB) {
		fprintf(stderr, "usage: delta_rate [MIB [PERCENT]] | delta_rate BASE NEXT\n");
		return EXIT_FAILURE;
	}
	measure_generated((size_t)mib, argc > 2 ? strtod(argv[2], NULL) : default_percent);
	return EXIT_SUCCESS;
}
