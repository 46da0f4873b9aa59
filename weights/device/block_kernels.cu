/* Applies the blocks of an `ulp-class` delta to tensors in device memory, in place, and proves each
 * result by its hash. docs/FORMAT.md, "ulp-class blocks", has the layout of a block.
 *
 * Three kernels. device_read decodes the bit streams: one thread for each block, because a stream
 * is serial. device_apply makes one pass over the words, one thread block for each block: it counts
 * classes to turn ranks into positions, changes words, and hashes what is there then. device_undo
 * takes the changes back from the lists that device_apply leaves, when any block has failed.
 *
 * A tile is what a thread block handles at a time: 128 stripes of 64 bytes, a stripe for each
 * thread. XXH3 takes the same stripes: within a KiB their sums do not depend on each other, so only
 * a scramble for each KiB is serial. bench/gpu_instructions.py counts what each part costs.
 *
 * Plain C but for the words of CUDA, and right for any number of threads in a thread block: so a
 * test compiles it for the host, with one thread or with many. A class of words is called a bin,
 * because `class` is a word of C++. Nothing that a payload says leads outside of its block's words
 * and lists. */
#include "device_block.h"

#ifndef KERNEL
#define KERNEL extern "C" __global__
#define ALIAS
#define IS_GLOBAL(address) __builtin_assume(__isGlobal(address))
#define ROLLED             _Pragma("unroll 1") /* a loop of few rounds, as many as the data say */
#endif

/* Parts of memory that is also read in whole eights. */
typedef uint16_t ALIAS shared_word;

enum {
	STRIPE = 64,
	STRIPES = 128,
	TILE_BYTES = STRIPE * STRIPES,
	PITCH = STRIPE + 8, /* bytes between stripes in shared memory: eights meet in no bank */
	LANES = 8,          /* of XXH3 */
	KIB_STRIPES = 16,
	KIBS = STRIPES / KIB_STRIPES,
	SECRET_BYTES = 192,
	SHORT_MOST = 240, /* bytes that XXH3 hashes in another way */
	PARTS = 2 * KIBS, /* of a tile, whose sums are made side by side */
	PART_STRIPES = STRIPES / PARTS,
	EIGHTS = STRIPE / 8,                     /* of a stripe */
	LOADS = TILE_BYTES / 8 / DEVICE_THREADS, /* eights of a tile for each of so many threads */
	BINS = DEVICE_CLASSES,
	BIN_BITS = 5,   /* of a counter in a packed word */
	BIN_WORDS = 16, /* that such a counter counts before it is emptied */
	SEGMENTS = 8,   /* of a tile, with sums of their own */
	SEGMENT_STRIPES = STRIPES / SEGMENTS,
	EXPONENTS = 256,
	GAP_BITS = 21,
	GAP_ESCAPE = 24,
	LENGTH_BITS = 15,
	MEAN_WINDOW = 16,
	SIGNS_AT_ONCE = 32
};

#define FOUR_ONES  0x0001000100010001ull
#define EIGHT_ONES 0x0101010101010101ull
#define BINS_EVEN  0x007c1f07c1f07c1full /* counters of bins 0, 2, ... in a packed word */
#define NOWHERE    0xffffffffu           /* stands in a list for a change that was not made */

#define PRIME32_1 0x9E3779B1ull
#define PRIME32_2 0x85EBCA77ull
#define PRIME32_3 0xC2B2AE3Dull
#define PRIME64_1 0x9E3779B185EBCA87ull
#define PRIME64_2 0xC2B2AE3D27D4EB4Full
#define PRIME64_3 0x165667B19E3779F9ull
#define PRIME64_4 0x85EBCA77C2B2AE63ull
#define PRIME64_5 0x27D4EB2F165667C5ull

/* XXH3's default secret as little-endian words. */
static __device__ const uint64_t secret_words[SECRET_BYTES / 8] = {
	0xbe4ba423396cfeb8ull,
	0x1cad21f72c81017cull,
	0xdb979083e96dd4deull,
	0x1f67b3b7a4a44072ull,
	0x78e5c0cc4ee679cbull,
	0x2172ffcc7dd05a82ull,
	0x8e2443f7744608b8ull,
	0x4c263a81e69035e0ull,
	0xcb00c391bb52283cull,
	0xa32e531b8b65d088ull,
	0x4ef90da297486471ull,
	0xd8acdea946ef1938ull,
	0x3f349ce33f76faa8ull,
	0x1d4f0bc7c7bbdcf9ull,
	0x3159b4cd4be0518aull,
	0x647378d9c97e9fc8ull,
	0xc3ebd33483acc5eaull,
	0xeb6313faffa081c5ull,
	0x49daf0b751dd0d17ull,
	0x9e68d429265516d3ull,
	0xfca1477d58be162bull,
	0xce31d07ad1b8f88full,
	0x280416958f3acb45ull,
	0x7e404bbbcafbd7afull,
};

/* The lists of all blocks: a place for each change of a block of steps. Ranks and steps first, and
 * after device_apply positions in the block and base XOR result. */
struct lists {
	uint32_t *places;
	uint16_t *steps;
};

/* --- bits --- */

struct bits {
	const uint32_t *words;
	uint32_t next;
	uint32_t count; /* words that hold a byte of the payload */
	uint32_t ahead; /* word number `next`, asked for early: memory is far */
	uint64_t held;  /* `ready` bits; above them zeros */
	unsigned ready;
};

/* Shows at least 32 bits; behind the end they are zeros. */
static __device__ void bits_fill(struct bits *bits)
{
	if (bits->ready > 32)
		return;
	bits->held |= (uint64_t)bits->ahead << bits->ready;
	bits->ready += 32;
	bits->next++;
	bits->ahead = bits->next < bits->count ? bits->words[bits->next] : 0;
}

static __device__ void bits_skip(struct bits *bits, unsigned count)
{
	bits->held >>= count;
	bits->ready -= count;
}

static __device__ uint32_t bits_taken(const struct bits *bits)
{
	return 32 * bits->next - bits->ready;
}

/* `count` is at most 32. */
static __device__ uint32_t bits_take(struct bits *bits, unsigned count)
{
	if (bits->ready < count)
		bits_fill(bits);
	const uint32_t value = (uint32_t)(bits->held & ((1ull << count) - 1));
	bits_skip(bits, count);
	return value;
}

/* The payload begins at a whole word of the upload. */
static __device__ struct bits bits_open(const uint8_t *payload, uint32_t bytes)
{
	const uint32_t *const words = (const uint32_t *)payload;
	const struct bits bits = {words, 0, (bytes + 3) / 4, bytes > 0 ? words[0] : 0, 0, 0};
	return bits;
}

/* Zeros before the next one, which is taken too; `most` when there are as many or more, and then
 * `most` bits are taken. */
static __device__ unsigned bits_zeros(struct bits *bits, unsigned most)
{
	bits_fill(bits);
	const unsigned zeros = (unsigned)__ffs((int)((uint32_t)bits->held | 1u << most)) - 1;
	bits_skip(bits, zeros < most ? zeros + 1 : most);
	return zeros;
}

static __device__ uint32_t gap_take(struct bits *bits, unsigned parameter)
{
	const unsigned quotient = bits_zeros(bits, GAP_ESCAPE);
	if (quotient == GAP_ESCAPE)
		return bits_take(bits, GAP_BITS);
	return quotient << parameter | bits_take(bits, parameter);
}

/* --- the first kernel: streams to ranks and steps --- */

static __device__ int read_ranks(
	const struct device_block *block, struct bits *bits, uint32_t *ranks)
{
	const uint32_t elements = block->elements;
	for (unsigned bin = block->classes; bin-- > 0;) {
		const unsigned parameter = block->parameters[bin];
		const uint32_t *const end = ranks + block->counts[bin];
		for (uint32_t next = 0; ranks < end; next++) {
			next += gap_take(bits, parameter);
			if (next >= elements)
				return -1;
			*ranks++ = next;
		}
	}
	return 0;
}

static __device__ void read_signs(struct bits *bits, uint32_t count, uint16_t *steps)
{
	for (uint32_t i = 0; i < count;) {
		const uint32_t taken = count - i < SIGNS_AT_ONCE ? count - i : SIGNS_AT_ONCE;
		const uint32_t signs = bits_take(bits, taken);
		for (uint32_t bit = 0; bit < taken; bit++)
			steps[i++] = (uint16_t)(1 - 2 * (int)(signs >> bit & 1));
	}
}

/* The smallest parameter that makes count << parameter at least sum. */
static __device__ unsigned mean_parameter(uint32_t sum, uint32_t count)
{
	unsigned parameter = 0;
	while ((uint64_t)count << parameter < sum)
		parameter++;
	return parameter;
}

static __device__ int read_long_steps(struct bits *bits, uint32_t count, uint16_t *steps)
{
	uint32_t sum = 4;
	uint32_t gaps = 1;
	for (uint32_t at = 0;; at++) {
		const uint32_t gap = gap_take(bits, mean_parameter(sum, gaps));
		at += gap;
		if (at >= count)
			return at == count ? 0 : -1;
		sum += gap;
		if (++gaps == MEAN_WINDOW) {
			sum /= 2;
			gaps /= 2;
		}
		const unsigned zeros = bits_zeros(bits, LENGTH_BITS);
		if (zeros == LENGTH_BITS)
			return -1;
		const uint32_t length = (1u << zeros | bits_take(bits, zeros)) + 1;
		steps[at] = (uint16_t)(steps[at] >> 15 ? -(int)length : (int)length);
	}
}

KERNEL void device_read(const struct device_block *blocks, uint32_t count, const uint8_t *upload,
	uint32_t *places, uint16_t *steps, uint32_t *failures)
{
	const uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
	if (number >= count)
		return;
	const struct device_block *const block = &blocks[number];
	failures[number] = DEVICE_FINE;
	if (block->kind != DEVICE_STEPS)
		return;
	struct bits bits = bits_open(upload + block->payload, block->payload_bytes);
	uint16_t *const own_steps = steps + block->changes_at;
	int result = read_ranks(block, &bits, places + block->changes_at);
	if (result == 0) {
		read_signs(&bits, block->changes, own_steps);
		result = read_long_steps(&bits, block->changes, own_steps);
	}
	if (result != 0 || (bits_taken(&bits) + 7) / 8 != block->payload_bytes)
		failures[number] = DEVICE_MALFORMED;
}

/* --- the second kernel: tiles --- */

/* Which words of eight bytes are in a bin: their sign bits say so. Exponents are compared side by
 * side, with the place of the sign as room for what is borrowed. */
struct filter {
	uint64_t exponents; /* these bits of each word */
	uint64_t lowest;
	uint64_t highest; /* with the sign bits */
	uint64_t signs;
};

struct tile {
	uint64_t secret[SECRET_BYTES / 8];
	uint64_t parts[PARTS][LANES]; /* what the stripes of each part add to each lane */
	uint64_t lanes[LANES];
	uint64_t stripes[STRIPES][PITCH / 8];
	uint64_t ones[EXPONENTS]; /* 1 in the counter of the exponent's bin */
	struct filter filters[BINS];
	uint32_t seen[BINS];    /* words of the bin in the tiles before */
	uint32_t totals[BINS];  /* in this tile */
	uint32_t cursors[BINS]; /* place of the bin's first change that is not made yet */
	uint32_t nexts[BINS];
	uint32_t ends[BINS];
	uint32_t segments[BINS][SEGMENTS];  /* words of the bin before each segment */
	uint64_t before[BINS][STRIPES / 4]; /* 16 bits a stripe: before it in its segment */
	uint8_t bins[DEVICE_THREADS];       /* whose changes a thread makes */
	uint8_t firsts[BINS + 1];           /* the first thread of each bin */
};

/* What one thread block works on. */
struct work {
	const struct device_block *block;
	uint8_t *words;
	uint8_t *payload;
	struct lists lists;
	uint32_t bytes; /* of all words */
	uint32_t from;  /* first byte of the tile */
	uint32_t count; /* bytes of the tile */
};

/* The same address, of which the compiler knows then that it is not in shared memory. */
static __device__ uint8_t *device_memory(uint8_t *at)
{
	IS_GLOBAL(at);
	return at;
}

static __device__ uint8_t *tile_at(struct tile *tile, uint32_t at)
{
	return (uint8_t *)tile->stripes + at / STRIPE * PITCH + at % STRIPE;
}

static __device__ uint16_t word_load(const uint8_t *at, unsigned width)
{
	return width == 1 ? *at : *(const shared_word *)at;
}

static __device__ void word_store(uint8_t *at, unsigned width, uint16_t word)
{
	if (width == 1)
		*at = (uint8_t)word;
	else
		*(shared_word *)at = word;
}

/* Puts words on a line on which neighbours are one ulp apart, and back. */
static __device__ uint16_t word_place(uint16_t word, unsigned width)
{
	return (uint16_t)(width == 1 ? word ^ (word >> 7) * 0x7f : word ^ (word >> 15) * 0x7fff);
}

static __device__ uint16_t word_moved(uint16_t word, uint16_t step, unsigned width)
{
	const uint16_t place = (uint16_t)(word_place(word, width) + step);
	return word_place(width == 1 ? (uint8_t)place : place, width);
}

static __device__ unsigned exponent_bin(const struct device_block *block, unsigned exponent)
{
	const unsigned below = exponent < block->top ? block->top - exponent : 0;
	return below < block->classes ? below : block->classes - 1u;
}

/* A whole tile by a full thread block: all of it is on its way before the first of it is there. */
static __device__ void load_whole(struct tile *tile, const uint64_t *from)
{
	const uint32_t stripe = threadIdx.x / EIGHTS;
	uint64_t eights[LOADS];
	for (unsigned i = 0; i < LOADS; i++)
		eights[i] = from[threadIdx.x + i * DEVICE_THREADS];
	for (unsigned i = 0; i < LOADS; i++)
		tile->stripes[stripe + i * (DEVICE_THREADS / EIGHTS)][threadIdx.x % EIGHTS] =
			eights[i];
}

/* Eight bytes at a time where they lie so. Zeros fill the last stripe. */
static __device__ void load_part(struct tile *tile, const struct work *work, const uint8_t *from)
{
	const uint32_t eights = (uint64_t)from % 8 == 0 ? work->count / 8 : 0;
	for (uint32_t i = threadIdx.x; i < eights; i += blockDim.x)
		tile->stripes[i / EIGHTS][i % EIGHTS] = ((const uint64_t *)from)[i];
	const uint32_t filled = (work->count + STRIPE - 1) / STRIPE * STRIPE;
	for (uint32_t i = 8 * eights + threadIdx.x; i < filled; i += blockDim.x)
		*tile_at(tile, i) = i < work->count ? from[i] : 0;
}

static __device__ void tile_load(struct tile *tile, const struct work *work)
{
	const uint8_t *const from = device_memory(work->words + work->from);
	if (work->count == TILE_BYTES && (uint64_t)from % 8 == 0 && blockDim.x == DEVICE_THREADS)
		load_whole(tile, (const uint64_t *)from);
	else
		load_part(tile, work, from);
}

/* --- steps --- */

/* Adds packed counters of at most BIN_WORDS words to wider ones: of even bins, and of odd ones. */
static __device__ void widen(uint64_t ones, uint64_t counts[2])
{
	counts[0] += ones & BINS_EVEN;
	counts[1] += ones >> BIN_BITS & BINS_EVEN;
}

/* The words of 16 bits in a whole stripe, by bin. */
static __device__ void count_halves(const struct tile *tile, const struct device_block *block,
	const uint64_t *eights, uint64_t counts[2])
{
	const unsigned shift = block->shift;
	const unsigned mask = block->mask;
	for (unsigned from = 0; from < EIGHTS; from += BIN_WORDS / 4) {
		uint64_t ones = 0;
		for (unsigned i = from; i < from + BIN_WORDS / 4; i++) {
			const uint32_t low = (uint32_t)eights[i];
			const uint32_t high = (uint32_t)(eights[i] >> 32);
			ones += tile->ones[low >> shift & mask];
			ones += tile->ones[low >> (shift + 16) & mask];
			ones += tile->ones[high >> shift & mask];
			ones += tile->ones[high >> (shift + 16) & mask];
		}
		widen(ones, counts);
	}
}

/* The same with words of 8 bits. */
static __device__ void count_bytes(const struct tile *tile, const struct device_block *block,
	const uint64_t *eights, uint64_t counts[2])
{
	for (unsigned from = 0; from < EIGHTS; from += BIN_WORDS / 8) {
		uint64_t ones = 0;
		for (unsigned at = 0; at < 8 * BIN_WORDS / 8; at++) {
			const uint32_t word = (uint32_t)(eights[from + at / 8] >> at % 8 * 8);
			ones += tile->ones[word >> block->shift & block->mask];
		}
		widen(ones, counts);
	}
}

/* Words from `at` on that are in the tile, to the end of the stripe: its last one. */
static __device__ void count_few(
	struct tile *tile, const struct work *work, uint32_t at, uint64_t counts[2])
{
	const struct device_block *const block = work->block;
	const uint32_t end = at + STRIPE < work->count ? at + STRIPE : work->count;
	for (; at < end; at += block->width) {
		const uint16_t word = word_load(tile_at(tile, at), block->width);
		widen(tile->ones[word >> block->shift & block->mask], counts);
	}
}

/* Counts the words of each bin in each stripe. */
static __device__ void count_bins(struct tile *tile, const struct work *work)
{
	for (uint32_t stripe = threadIdx.x; stripe < STRIPES; stripe += blockDim.x) {
		uint64_t counts[2] = {0, 0};
		if ((stripe + 1) * STRIPE > work->count)
			count_few(tile, work, stripe * STRIPE, counts);
		else if (work->block->width == 2)
			count_halves(tile, work->block, tile->stripes[stripe], counts);
		else
			count_bytes(tile, work->block, tile->stripes[stripe], counts);
		for (unsigned bin = 0; bin < BINS; bin++)
			((shared_word *)tile->before[bin])[stripe] =
				(uint16_t)(counts[bin % 2] >> bin / 2 * 2 * BIN_BITS &
					(2 * STRIPE - 1));
	}
}

/* Turns the counts into sums of the stripes before in the segment, four at a time: a product with
 * FOUR_ONES has in each 16 bits the sum up to there. */
static __device__ void sum_segments(struct tile *tile)
{
	for (unsigned t = threadIdx.x; t < BINS * SEGMENTS; t += blockDim.x) {
		const unsigned segment = t % SEGMENTS;
		uint64_t *const row = &tile->before[t / SEGMENTS][segment * (SEGMENT_STRIPES / 4)];
		uint64_t total = 0;
		for (unsigned i = 0; i < SEGMENT_STRIPES / 4; i++) {
			const uint64_t counts = row[i];
			const uint64_t sums = counts * FOUR_ONES;
			row[i] = sums - counts + total * FOUR_ONES;
			total += sums >> 48;
		}
		tile->segments[t / SEGMENTS][segment] = (uint32_t)total;
	}
}

static __device__ void sum_bins(struct tile *tile)
{
	for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
		uint32_t total = 0;
		for (unsigned segment = 0; segment < SEGMENTS; segment++) {
			const uint32_t words = tile->segments[bin][segment];
			tile->segments[bin][segment] = total;
			total += words;
		}
		tile->totals[bin] = total;
		tile->nexts[bin] = NOWHERE;
	}
}

/* The stripe that has the word with this rank among the bin's words of the tile, and its rank
 * there. */
static __device__ uint32_t find_stripe(const struct tile *tile, unsigned bin, uint32_t *rank)
{
	const uint32_t *const segments = tile->segments[bin];
	uint32_t segment = 0;
	for (uint32_t step = SEGMENTS / 2; step > 0; step /= 2)
		if (segments[segment + step] <= *rank)
			segment += step;
	*rank -= segments[segment];
	const shared_word *const stripes =
		(const shared_word *)tile->before[bin] + segment * SEGMENT_STRIPES;
	uint32_t stripe = 0;
	for (uint32_t step = SEGMENT_STRIPES / 2; step > 0; step /= 2)
		if (stripes[stripe + step] <= *rank)
			stripe += step;
	*rank -= stripes[stripe];
	return segment * SEGMENT_STRIPES + stripe;
}

static __device__ uint64_t filter_words(const struct filter *filter, uint64_t eight)
{
	const uint64_t exponents = eight & filter->exponents;
	return ((exponents | filter->signs) - filter->lowest) & (filter->highest - exponents) &
		filter->signs;
}

/* Where in eight bytes the word of this rank lies among those whose sign bits are set. */
static __device__ uint32_t find_bit(uint64_t words, uint32_t rank)
{
	ROLLED
	for (; rank > 0; rank--)
		words &= words - 1;
	return (uint32_t)__ffsll((long long)words) - 1;
}

/* The offset in the tile of the word with this rank among the bin's words of the tile. */
static __device__ uint32_t find_word(
	const struct tile *tile, unsigned bin, unsigned width, uint32_t rank)
{
	const struct filter filter = tile->filters[bin];
	const uint32_t stripe = find_stripe(tile, bin, &rank);
	uint32_t i = 0;
	uint64_t words = 0;
	ROLLED
	for (; i < EIGHTS; i++) {
		words = filter_words(&filter, tile->stripes[stripe][i]);
		const uint32_t count = (uint32_t)__popcll(words);
		if (rank < count)
			break;
		rank -= count;
	}
	return stripe * STRIPE + 8 * i + (find_bit(words, rank) / 8 & ~(width - 1));
}

/* Puts positions in place of ranks and differences in place of steps, for the changes of the tile.
 * Changes nothing yet: bins depend on the old words. */
static __device__ void find_changes(struct tile *tile, const struct work *work)
{
	const unsigned width = work->block->width;
	for (uint32_t t = threadIdx.x; t < tile->firsts[0]; t += blockDim.x) {
		const unsigned bin = tile->bins[t];
		const uint32_t stride = tile->firsts[bin] - tile->firsts[bin + 1];
		const uint32_t seen = tile->seen[bin];
		const uint32_t limit = seen + tile->totals[bin];
		uint32_t i = tile->cursors[bin] + t - tile->firsts[bin + 1];
		for (; i < tile->ends[bin]; i += stride) {
			const uint32_t rank = work->lists.places[i];
			if (rank >= limit)
				break;
			const uint32_t at = find_word(tile, bin, width, rank - seen);
			const uint16_t old = word_load(tile_at(tile, at), width);
			const uint16_t moved = word_moved(old, work->lists.steps[i], width);
			work->lists.places[i] = (work->from + at) >> (width - 1);
			work->lists.steps[i] = old ^ moved;
		}
		atomicMin(&tile->nexts[bin], i);
	}
}

static __device__ void make_changes(struct tile *tile, const struct work *work)
{
	const unsigned width = work->block->width;
	uint8_t *const words = device_memory(work->words);
	for (uint32_t t = threadIdx.x; t < tile->firsts[0]; t += blockDim.x) {
		const unsigned bin = tile->bins[t];
		const uint32_t stride = tile->firsts[bin] - tile->firsts[bin + 1];
		uint32_t i = tile->cursors[bin] + t - tile->firsts[bin + 1];
		for (; i < tile->nexts[bin]; i += stride) {
			const uint32_t at = work->lists.places[i] * width;
			uint8_t *const word = tile_at(tile, at - work->from);
			const uint16_t now = word_load(word, width) ^ work->lists.steps[i];
			word_store(word, width, now);
			word_store(words + at, width, now);
		}
	}
}

static __device__ void change_steps(struct tile *tile, const struct work *work)
{
	count_bins(tile, work);
	__syncthreads();
	sum_segments(tile);
	__syncthreads();
	sum_bins(tile);
	__syncthreads();
	find_changes(tile, work);
	__syncthreads();
	make_changes(tile, work);
	__syncthreads();
	for (unsigned bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
		tile->seen[bin] += tile->totals[bin];
		if (tile->nexts[bin] != NOWHERE)
			tile->cursors[bin] = tile->nexts[bin];
	}
}

/* --- the other kinds --- */

/* Exchanges payload and words, or adds one to the other, of a block that crosses whole. */
static __device__ void change_whole(struct tile *tile, const struct work *work)
{
	const int is_swap = work->block->kind == DEVICE_SWAP;
	for (uint32_t i = threadIdx.x; i < work->count; i += blockDim.x) {
		uint8_t *const byte = tile_at(tile, i);
		uint8_t *const other = work->payload + work->from + i;
		const uint8_t old = *byte;
		*byte = is_swap ? *other : (uint8_t)(old ^ *other);
		if (is_swap)
			*other = old;
		work->words[work->from + i] = *byte;
	}
}

static __device__ const uint8_t *pair_words(const struct work *work)
{
	const uint32_t bytes = 4 * work->block->changes;
	return work->payload + (bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
}

/* The first cursor counts the pairs. */
static __device__ void change_pairs(struct tile *tile, const struct work *work)
{
	const uint32_t *const positions = (const uint32_t *)work->payload;
	const uint8_t *const differences = pair_words(work);
	const unsigned width = work->block->width;
	uint32_t i = tile->cursors[0] + threadIdx.x;
	for (; i < work->block->changes; i += blockDim.x) {
		const uint64_t at = (uint64_t)positions[i] * width;
		if (at < work->from || at >= work->from + work->count)
			break;
		for (unsigned byte = 0; byte < width; byte++) {
			uint8_t *const changed = tile_at(tile, (uint32_t)at - work->from + byte);
			*changed ^= differences[(uint64_t)i * width + byte];
			work->words[at + byte] = *changed;
		}
	}
	atomicMin(&tile->nexts[0], i);
	__syncthreads();
	if (threadIdx.x == 0) {
		tile->cursors[0] = tile->nexts[0];
		tile->nexts[0] = NOWHERE;
	}
}

static __device__ void change_tile(struct tile *tile, const struct work *work)
{
	switch (work->block->kind) {
	case DEVICE_STEPS:
		change_steps(tile, work);
		break;
	case DEVICE_PAIRS:
		change_pairs(tile, work);
		break;
	case DEVICE_SWAP:
	case DEVICE_XOR:
		change_whole(tile, work);
		break;
	default:
		break;
	}
	__syncthreads();
}

/* --- XXH3-64 --- */

static __device__ uint64_t load64(const uint8_t *at)
{
	uint64_t value = 0;
	for (int byte = 7; byte >= 0; byte--)
		value = value << 8 | at[byte];
	return value;
}

static __device__ uint32_t load32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static __device__ uint64_t fold128(uint64_t a, uint64_t b)
{
	return a * b ^ __umul64hi(a, b);
}

static __device__ uint64_t avalanche(uint64_t hash)
{
	hash = (hash ^ hash >> 37) * 0x165667919E3779F9ull;
	return hash ^ hash >> 32;
}

static __device__ uint64_t old_avalanche(uint64_t hash)
{
	hash = (hash ^ hash >> 33) * PRIME64_2;
	hash = (hash ^ hash >> 29) * PRIME64_3;
	return hash ^ hash >> 32;
}

static __device__ uint64_t rotated(uint64_t value, unsigned bits)
{
	return value << bits | value >> (64 - bits);
}

static __device__ uint64_t reversed(uint64_t value)
{
	uint64_t result = 0;
	for (unsigned byte = 0; byte < 8; byte++, value >>= 8)
		result = result << 8 | (value & 0xff);
	return result;
}

static __device__ uint64_t mixed(const uint8_t *at, const uint8_t *secret)
{
	return fold128(load64(at) ^ load64(secret), load64(at + 8) ^ load64(secret + 8));
}

static __device__ uint64_t hash_to_16(const uint8_t *at, uint32_t len, const uint8_t *secret)
{
	if (len > 8) {
		const uint64_t low = load64(at) ^ load64(secret + 24) ^ load64(secret + 32);
		const uint64_t high =
			load64(at + len - 8) ^ load64(secret + 40) ^ load64(secret + 48);
		return avalanche(len + reversed(low) + high + fold128(low, high));
	}
	if (len > 3) {
		uint64_t hash = load32(at + len - 4) + ((uint64_t)load32(at) << 32);
		hash ^= load64(secret + 8) ^ load64(secret + 16);
		hash ^= rotated(hash, 49) ^ rotated(hash, 24);
		hash *= 0x9FB21C651E98DF25ull;
		hash = (hash ^ ((hash >> 35) + len)) * 0x9FB21C651E98DF25ull;
		return hash ^ hash >> 28;
	}
	const uint32_t few =
		(uint32_t)at[0] << 16 | (uint32_t)at[len / 2] << 24 | at[len - 1] | len << 8;
	return old_avalanche(few ^ (uint64_t)(load32(secret) ^ load32(secret + 4)));
}

static __device__ uint64_t hash_to_128(const uint8_t *at, uint32_t len, const uint8_t *secret)
{
	uint64_t hash = len * PRIME64_1;
	for (uint32_t i = 0; i <= (len - 1) / 32; i++) {
		hash += mixed(at + 16 * i, secret + 32 * i);
		hash += mixed(at + len - 16 * (i + 1), secret + 32 * i + 16);
	}
	return avalanche(hash);
}

static __device__ uint64_t hash_to_240(const uint8_t *at, uint32_t len, const uint8_t *secret)
{
	uint64_t hash = len * PRIME64_1;
	for (uint32_t i = 0; i < 8; i++)
		hash += mixed(at + 16 * i, secret + 16 * i);
	hash = avalanche(hash);
	for (uint32_t i = 8; i < len / 16; i++)
		hash += mixed(at + 16 * i, secret + 16 * (i - 8) + 3);
	return avalanche(hash + mixed(at + len - 16, secret + 136 - 17));
}

static __device__ uint64_t hash_short(const uint8_t *at, uint32_t len, const uint8_t *secret)
{
	return len <= 16     ? hash_to_16(at, len, secret)
		: len <= 128 ? hash_to_128(at, len, secret)
			     : hash_to_240(at, len, secret);
}

/* Stripes that are added as they stand; the last 64 bytes are added once more at the end. */
static __device__ uint32_t plain_stripes(const struct work *work)
{
	return (work->bytes - 1) / STRIPE;
}

/* What a stripe of a part adds to a lane. */
static __device__ uint64_t sum_stripe(
	const struct tile *tile, unsigned part, unsigned lane, unsigned stripe)
{
	const uint64_t *const data = tile->stripes[part * PART_STRIPES + stripe];
	const uint64_t keyed = data[lane] ^ tile->secret[part % 2 * PART_STRIPES + stripe + lane];
	return data[lane ^ 1] + (keyed & 0xffffffffu) * (keyed >> 32);
}

static __device__ uint64_t sum_whole_part(const struct tile *tile, unsigned part, unsigned lane)
{
	uint64_t sum = 0;
	for (unsigned stripe = 0; stripe < PART_STRIPES; stripe++)
		sum += sum_stripe(tile, part, lane, stripe);
	return sum;
}

static __device__ uint64_t sum_last_part(
	const struct tile *tile, unsigned part, unsigned lane, uint32_t count)
{
	uint64_t sum = 0;
	for (uint32_t stripe = 0; stripe < count; stripe++)
		sum += sum_stripe(tile, part, lane, stripe);
	return sum;
}

static __device__ void sum_parts(struct tile *tile, const struct work *work)
{
	const uint32_t plain = plain_stripes(work);
	for (uint32_t t = threadIdx.x; t < PARTS * LANES; t += blockDim.x) {
		const unsigned part = t / LANES;
		const uint32_t from = work->from / STRIPE + part * PART_STRIPES;
		tile->parts[part][t % LANES] = plain >= from + PART_STRIPES
			? sum_whole_part(tile, part, t % LANES)
			: sum_last_part(tile, part, t % LANES, plain > from ? plain - from : 0);
	}
}

static __device__ void add_kibs(struct tile *tile, const struct work *work)
{
	const uint32_t whole = plain_stripes(work) / KIB_STRIPES;
	const uint32_t first = work->from / (STRIPE * KIB_STRIPES);
	for (uint32_t lane = threadIdx.x; lane < LANES; lane += blockDim.x) {
		uint64_t sum = tile->lanes[lane];
		for (uint32_t kib = 0; kib < KIBS; kib++) {
			sum += tile->parts[2 * kib][lane] + tile->parts[2 * kib + 1][lane];
			if (first + kib < whole)
				sum = (sum ^ sum >> 47 ^
					      tile->secret[SECRET_BYTES / 8 - LANES + lane]) *
					PRIME32_1;
		}
		tile->lanes[lane] = sum;
	}
}

static __device__ void hash_tile(struct tile *tile, const struct work *work)
{
	if (work->bytes <= SHORT_MOST)
		return;
	sum_parts(tile, work);
	__syncthreads();
	add_kibs(tile, work);
}

/* By one thread. */
static __device__ uint64_t hash_end(struct tile *tile, const struct work *work)
{
	const uint8_t *const secret = (const uint8_t *)tile->secret;
	if (work->bytes <= SHORT_MOST)
		return hash_short(work->words, work->bytes, secret);
	const uint8_t *const last = work->words + work->bytes - STRIPE;
	for (unsigned lane = 0; lane < LANES; lane++) {
		const uint64_t keyed = load64(last + 8 * lane) ^
			load64(secret + SECRET_BYTES - STRIPE - 7 + 8 * lane);
		tile->lanes[lane] +=
			load64(last + 8 * (lane ^ 1)) + (keyed & 0xffffffffu) * (keyed >> 32);
	}
	uint64_t hash = work->bytes * PRIME64_1;
	for (unsigned lane = 0; lane < LANES; lane += 2)
		hash += fold128(tile->lanes[lane] ^ load64(secret + 11 + 8 * lane),
			tile->lanes[lane + 1] ^ load64(secret + 11 + 8 * lane + 8));
	return avalanche(hash);
}

/* --- the second kernel --- */

/* By one thread: each bin gets threads by its share of the block's changes, at least one if it has
 * any. */
static __device__ void share_threads(struct tile *tile, const struct device_block *block)
{
	unsigned first = 0;
	tile->firsts[BINS] = 0;
	for (unsigned bin = BINS; bin-- > 0;) {
		const uint32_t count = block->kind == DEVICE_STEPS ? block->counts[bin] : 0;
		const unsigned end = count == 0
			? first
			: first + 1 + (DEVICE_THREADS - BINS) * count / block->changes;
		for (; first < end; first++)
			tile->bins[first] = (uint8_t)bin;
		tile->firsts[bin] = (uint8_t)first;
	}
}

static __device__ struct filter filter_of(const struct device_block *block, unsigned bin)
{
	const uint64_t ones = block->width == 2 ? FOUR_ONES : EIGHT_ONES;
	const uint64_t signs = ones << (8 * block->width - 1);
	const unsigned at = block->top > bin ? block->top - bin : 0;
	const unsigned lowest = bin + 1 == block->classes ? 0 : at;
	const unsigned highest = bin == 0 || at > block->mask ? block->mask : at;
	const struct filter filter = {ones * ((unsigned)block->mask << block->shift),
		ones * (lowest << block->shift), ones * (highest << block->shift) | signs, signs};
	return filter;
}

static __device__ void start_bins(struct tile *tile, const struct device_block *block)
{
	uint32_t place = block->changes_at;
	for (unsigned bin = BINS; bin-- > 0;) {
		tile->seen[bin] = 0;
		tile->nexts[bin] = NOWHERE;
		tile->cursors[bin] = block->kind == DEVICE_STEPS ? place : 0;
		place += block->counts[bin];
		tile->ends[bin] = place;
		tile->filters[bin] = filter_of(block, bin);
	}
}

static __device__ void tile_start(struct tile *tile, const struct device_block *block)
{
	const uint64_t lanes[LANES] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4,
		PRIME32_2, PRIME64_5, PRIME32_1};
	for (uint32_t i = threadIdx.x; i < SECRET_BYTES / 8; i += blockDim.x)
		tile->secret[i] = secret_words[i];
	if (block->kind == DEVICE_STEPS)
		for (uint32_t i = threadIdx.x; i < EXPONENTS; i += blockDim.x)
			tile->ones[i] = 1ull << BIN_BITS * exponent_bin(block, i);
	if (threadIdx.x != 0)
		return;
	for (unsigned lane = 0; lane < LANES; lane++)
		tile->lanes[lane] = lanes[lane];
	start_bins(tile, block);
	share_threads(tile, block);
}

/* Changes that no word was found for must not be undone. */
static __device__ void drop_changes(const struct work *work, uint32_t from, uint32_t to)
{
	for (uint32_t i = from + threadIdx.x; i < to; i += blockDim.x)
		work->lists.places[i] = NOWHERE;
}

static __device__ void drop_left_changes(const struct tile *tile, const struct work *work)
{
	if (work->block->kind != DEVICE_STEPS)
		return;
	for (unsigned bin = 0; bin < work->block->classes; bin++)
		drop_changes(work, tile->cursors[bin], tile->ends[bin]);
}

static __device__ struct work work_of(
	const struct device_block *block, uint8_t *upload, uint32_t *places, uint16_t *steps)
{
	struct work work = {block, (uint8_t *)block->words, upload + block->payload,
		{places, steps}, block->elements * block->width, 0, 0};
	return work;
}

static __device__ void change_tiles(struct tile *tile, struct work *work)
{
	for (; work->from < work->bytes; work->from += TILE_BYTES) {
		const uint32_t left = work->bytes - work->from;
		work->count = left < TILE_BYTES ? left : TILE_BYTES;
		tile_load(tile, work);
		__syncthreads();
		change_tile(tile, work);
		hash_tile(tile, work);
		__syncthreads();
	}
}

/* A thread block for each block. `hashes` gets the XXH3-64 of each result, but for a malformed
 * block. */
KERNEL void device_apply(const struct device_block *blocks, uint8_t *upload, uint32_t *places,
	uint16_t *steps, uint32_t *failures, uint64_t *hashes)
{
	__shared__ struct tile tile;
	struct work work = work_of(&blocks[blockIdx.x], upload, places, steps);
	if (failures[blockIdx.x] != DEVICE_FINE) {
		drop_changes(&work, work.block->changes_at,
			work.block->changes_at + work.block->changes);
		return;
	}
	tile_start(&tile, work.block);
	__syncthreads();
	change_tiles(&tile, &work);
	drop_left_changes(&tile, &work);
	if (threadIdx.x != 0)
		return;
	hashes[blockIdx.x] = hash_end(&tile, &work);
	if (hashes[blockIdx.x] != work.block->result_hash)
		failures[blockIdx.x] = DEVICE_MISMATCH;
}

/* --- the third kernel --- */

static __device__ void undo_steps(const struct work *work)
{
	const unsigned width = work->block->width;
	const uint32_t end = work->block->changes_at + work->block->changes;
	for (uint32_t i = work->block->changes_at + threadIdx.x; i < end; i += blockDim.x) {
		if (work->lists.places[i] == NOWHERE)
			continue;
		uint8_t *const word = work->words + (uint64_t)work->lists.places[i] * width;
		word_store(word, width, word_load(word, width) ^ work->lists.steps[i]);
	}
}

static __device__ void undo_pairs(const struct work *work)
{
	const uint32_t *const positions = (const uint32_t *)work->payload;
	const uint8_t *const differences = pair_words(work);
	const unsigned width = work->block->width;
	for (uint32_t i = threadIdx.x; i < work->block->changes; i += blockDim.x)
		for (unsigned byte = 0; byte < width; byte++)
			work->words[(uint64_t)positions[i] * width + byte] ^=
				differences[(uint64_t)i * width + byte];
}

static __device__ void undo_whole(const struct work *work)
{
	const int is_swap = work->block->kind == DEVICE_SWAP;
	for (uint32_t i = threadIdx.x; i < work->bytes; i += blockDim.x)
		work->words[i] =
			is_swap ? work->payload[i] : (uint8_t)(work->words[i] ^ work->payload[i]);
}

/* Brings the words back that device_apply changed, with the same arguments; once only. */
KERNEL void device_undo(
	const struct device_block *blocks, uint8_t *upload, uint32_t *places, uint16_t *steps)
{
	const struct work work = work_of(&blocks[blockIdx.x], upload, places, steps);
	switch (work.block->kind) {
	case DEVICE_STEPS:
		undo_steps(&work);
		break;
	case DEVICE_PAIRS:
		undo_pairs(&work);
		break;
	case DEVICE_SWAP:
	case DEVICE_XOR:
		undo_whole(&work);
		break;
	default:
		break;
	}
}
