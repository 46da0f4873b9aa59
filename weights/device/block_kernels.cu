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
 * a scramble for each KiB is serial.
 *
 * Plain C but for the words of CUDA, and right for any number of threads in a thread block: so a
 * test compiles it for the host, with one thread or with many. A class of words is called a bin,
 * because `class` is a word of C++. Nothing that a payload says leads outside of its block's words
 * and lists. */
#include "device_block.h"

#ifndef KERNEL
#define KERNEL extern "C" __global__
#define ALIAS
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
	BINS = DEVICE_CLASSES,
	BIN_SLOTS = 16, /* BINS filled up to a power of two */
	BIN_BITS = 8,   /* of a counter in a packed word */
	BINS_PACKED = 6,
	GAP_BITS = 21,
	GAP_ESCAPE = 24,
	LENGTH_BITS = 15,
	MEAN_WINDOW = 16,
	SIGNS_AT_ONCE = 32
};

#define FOUR_ONES 0x0001000100010001ull
#define NOWHERE   0xffffffffu /* stands in a list for a change that was not made */

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
	uint64_t held;  /* `ready` bits; above them zeros */
	unsigned ready;
	uint32_t taken; /* bits */
};

/* Shows at least 32 bits; behind the end they are zeros. */
static __device__ void bits_fill(struct bits *bits)
{
	if (bits->ready > 32)
		return;
	if (bits->next < bits->count)
		bits->held |= (uint64_t)bits->words[bits->next] << bits->ready;
	bits->next++;
	bits->ready += 32;
}

static __device__ void bits_skip(struct bits *bits, unsigned count)
{
	bits->held >>= count;
	bits->ready -= count;
	bits->taken += count;
}

/* `count` is at most 32. */
static __device__ uint32_t bits_take(struct bits *bits, unsigned count)
{
	bits_fill(bits);
	const uint32_t value = (uint32_t)(bits->held & ((1ull << count) - 1));
	bits_skip(bits, count);
	return value;
}

/* The payload begins at a whole word of the upload. */
static __device__ struct bits bits_open(const uint8_t *payload, uint32_t bytes)
{
	const struct bits bits = {(const uint32_t *)payload, 0, (bytes + 3) / 4, 0, 0, 0};
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
	for (unsigned bin = block->classes; bin-- > 0;) {
		uint32_t next = 0;
		for (uint32_t i = 0; i < block->counts[bin]; i++) {
			const uint32_t rank = next + gap_take(bits, block->parameters[bin]);
			if (rank >= block->elements)
				return -1;
			*ranks++ = rank;
			next = rank + 1;
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
	if (result != 0 || (bits.taken + 7) / 8 != block->payload_bytes)
		failures[number] = DEVICE_MALFORMED;
}

/* --- the second kernel: tiles --- */

struct tile {
	uint64_t secret[SECRET_BYTES / 8];
	uint64_t sums[STRIPES][LANES + 1]; /* what each stripe adds to each lane */
	uint64_t parts[KIBS][LANES];
	uint64_t lanes[LANES];
	uint64_t stripes[STRIPES][PITCH / 8];
	uint32_t seen[BINS];    /* words of the bin in the tiles before */
	uint32_t totals[BINS];  /* in this tile */
	uint32_t cursors[BINS]; /* place of the bin's first change that is not made yet */
	uint32_t nexts[BINS];
	uint32_t ends[BINS];
	uint64_t before[BINS][STRIPES / 4]; /* 16 bits a stripe: words of the bin before it */
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

static __device__ unsigned word_bin(const struct device_block *block, uint16_t word)
{
	const unsigned exponent = (unsigned)(word >> block->shift) & block->mask;
	const unsigned below = exponent < block->top ? block->top - exponent : 0;
	return below < block->classes ? below : block->classes - 1u;
}

/* Reads the tile's words, eight bytes at a time where they lie so. Zeros fill the last stripe. */
static __device__ void tile_load(struct tile *tile, const struct work *work)
{
	const uint8_t *const from = work->words + work->from;
	const uint32_t eights = (uint64_t)from % 8 == 0 ? work->count / 8 : 0;
	for (uint32_t i = threadIdx.x; i < eights; i += blockDim.x)
		tile->stripes[i / (STRIPE / 8)][i % (STRIPE / 8)] = ((const uint64_t *)from)[i];
	const uint32_t filled = (work->count + STRIPE - 1) / STRIPE * STRIPE;
	for (uint32_t i = 8 * eights + threadIdx.x; i < filled; i += blockDim.x)
		*tile_at(tile, i) = i < work->count ? from[i] : 0;
}

/* --- steps --- */

/* Adds the words in up to eight bytes to packed counters. With constants for `bytes` and `width` the
 * compiler makes code for them. */
static __device__ void count_words(const struct device_block *block, uint64_t eight, unsigned bytes,
	unsigned width, uint64_t packed[2])
{
	for (unsigned at = 0; at < bytes; at += width) {
		const uint16_t word = (uint16_t)(eight >> 8 * at);
		const unsigned bin = word_bin(block, width == 1 ? (uint8_t)word : word);
		const unsigned high = bin >= BINS_PACKED;
		const uint64_t one = 1ull << BIN_BITS * (bin - high * BINS_PACKED);
		packed[0] += high ? 0 : one;
		packed[1] += high ? one : 0;
	}
}

/* Counts the words of each bin in each stripe, in two packed words of six counters. */
static __device__ void count_bins(struct tile *tile, const struct work *work)
{
	const struct device_block *const block = work->block;
	for (uint32_t stripe = threadIdx.x; stripe < STRIPES; stripe += blockDim.x) {
		uint64_t packed[2] = {0, 0};
		for (uint32_t i = 0; i < STRIPE / 8; i++) {
			const uint32_t at = stripe * STRIPE + 8 * i;
			const uint32_t left = at < work->count ? work->count - at : 0;
			const unsigned bytes = left < 8 ? left : 8;
			const uint64_t eight = tile->stripes[stripe][i];
			if (bytes == 8 && block->width == 2)
				count_words(block, eight, 8, 2, packed);
			else if (bytes == 8)
				count_words(block, eight, 8, 1, packed);
			else
				count_words(block, eight, bytes, block->width, packed);
		}
		for (unsigned bin = 0; bin < block->classes; bin++)
			((shared_word *)tile->before[bin])[stripe] =
				(uint16_t)(packed[bin / BINS_PACKED] >>
						BIN_BITS * (bin % BINS_PACKED) &
					((1u << BIN_BITS) - 1));
	}
}

/* Turns the counts into sums of the stripes before, four at a time: a product with FOUR_ONES has in
 * each 16 bits the sum up to there. */
static __device__ void sum_bins(struct tile *tile, const struct device_block *block)
{
	for (unsigned bin = threadIdx.x; bin < block->classes; bin += blockDim.x) {
		uint64_t *const row = tile->before[bin];
		uint64_t total = 0;
		for (unsigned i = 0; i < STRIPES / 4; i++) {
			const uint64_t counts = row[i];
			const uint64_t sums = counts * FOUR_ONES;
			row[i] = sums - counts + total * FOUR_ONES;
			total += sums >> 48;
		}
		tile->totals[bin] = (uint32_t)total;
		tile->nexts[bin] = NOWHERE;
	}
}

/* Words of the bin in the stripes of the tile before this one. */
static __device__ uint32_t words_before(const struct tile *tile, unsigned bin, uint32_t stripe)
{
	return ((const shared_word *)tile->before[bin])[stripe];
}

/* The offset in the tile of the word with this rank among the bin's words of the tile. */
static __device__ uint32_t find_word(
	struct tile *tile, const struct device_block *block, unsigned bin, uint32_t rank)
{
	uint32_t stripe = 0;
	for (uint32_t step = STRIPES / 2; step > 0; step /= 2)
		if (words_before(tile, bin, stripe + step) <= rank)
			stripe += step;
	uint32_t left = rank - words_before(tile, bin, stripe);
	uint32_t at = stripe * STRIPE;
	for (;; at += block->width) {
		if (word_bin(block, word_load(tile_at(tile, at), block->width)) != bin)
			continue;
		if (left-- == 0)
			return at;
	}
}

/* Puts positions in place of ranks and differences in place of steps, for the changes of the tile.
 * Changes nothing yet: bins depend on the old words. */
static __device__ void find_changes(struct tile *tile, const struct work *work)
{
	const struct device_block *const block = work->block;
	const unsigned width = block->width;
	for (uint32_t t = threadIdx.x; t < DEVICE_THREADS; t += blockDim.x) {
		const unsigned bin = t % BIN_SLOTS;
		if (bin >= block->classes)
			continue;
		const uint32_t seen = tile->seen[bin];
		uint32_t i = tile->cursors[bin] + t / BIN_SLOTS;
		for (; i < tile->ends[bin]; i += DEVICE_THREADS / BIN_SLOTS) {
			const uint32_t rank = work->lists.places[i];
			if (rank >= seen + tile->totals[bin])
				break;
			const uint32_t at = find_word(tile, block, bin, rank - seen);
			const uint16_t old = word_load(tile_at(tile, at), width);
			const uint16_t moved = word_moved(old, work->lists.steps[i], width);
			work->lists.places[i] = (work->from + at) / width;
			work->lists.steps[i] = old ^ moved;
		}
		atomicMin(&tile->nexts[bin], i);
	}
}

static __device__ void make_changes(struct tile *tile, const struct work *work)
{
	const unsigned width = work->block->width;
	for (uint32_t t = threadIdx.x; t < DEVICE_THREADS; t += blockDim.x) {
		const unsigned bin = t % BIN_SLOTS;
		if (bin >= work->block->classes)
			continue;
		uint32_t i = tile->cursors[bin] + t / BIN_SLOTS;
		for (; i < tile->nexts[bin]; i += DEVICE_THREADS / BIN_SLOTS) {
			const uint32_t at = work->lists.places[i] * width;
			uint8_t *const word = tile_at(tile, at - work->from);
			word_store(word, width, word_load(word, width) ^ work->lists.steps[i]);
			word_store(work->words + at, width, word_load(word, width));
		}
	}
}

static __device__ void change_steps(struct tile *tile, const struct work *work)
{
	count_bins(tile, work);
	__syncthreads();
	sum_bins(tile, work->block);
	__syncthreads();
	find_changes(tile, work);
	__syncthreads();
	make_changes(tile, work);
	__syncthreads();
	for (unsigned bin = threadIdx.x; bin < work->block->classes; bin += blockDim.x) {
		tile->seen[bin] += tile->totals[bin];
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

static __device__ void sum_stripes(struct tile *tile, const struct work *work)
{
	const uint32_t plain = plain_stripes(work);
	for (uint32_t stripe = threadIdx.x; stripe < STRIPES; stripe += blockDim.x) {
		const int counts = work->from / STRIPE + stripe < plain;
		const uint64_t *const data = tile->stripes[stripe];
		for (unsigned lane = 0; lane < LANES; lane++) {
			const uint64_t keyed =
				data[lane] ^ tile->secret[stripe % KIB_STRIPES + lane];
			const uint64_t sum = data[lane ^ 1] + (keyed & 0xffffffffu) * (keyed >> 32);
			tile->sums[stripe][lane] = counts ? sum : 0;
		}
	}
}

static __device__ void sum_kibs(struct tile *tile)
{
	for (uint32_t i = threadIdx.x; i < KIBS * LANES; i += blockDim.x) {
		uint64_t sum = 0;
		for (unsigned stripe = 0; stripe < KIB_STRIPES; stripe++)
			sum += tile->sums[i / LANES * KIB_STRIPES + stripe][i % LANES];
		tile->parts[i / LANES][i % LANES] = sum;
	}
}

static __device__ void add_kibs(struct tile *tile, const struct work *work)
{
	const uint32_t whole = plain_stripes(work) / KIB_STRIPES;
	const uint32_t first = work->from / (STRIPE * KIB_STRIPES);
	for (uint32_t lane = threadIdx.x; lane < LANES; lane += blockDim.x) {
		uint64_t sum = tile->lanes[lane];
		for (uint32_t kib = 0; kib < KIBS; kib++) {
			sum += tile->parts[kib][lane];
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
	sum_stripes(tile, work);
	__syncthreads();
	sum_kibs(tile);
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

static __device__ void tile_start(struct tile *tile, const struct device_block *block)
{
	const uint64_t lanes[LANES] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4,
		PRIME32_2, PRIME64_5, PRIME32_1};
	for (uint32_t i = threadIdx.x; i < SECRET_BYTES / 8; i += blockDim.x)
		tile->secret[i] = secret_words[i];
	if (threadIdx.x != 0)
		return;
	for (unsigned lane = 0; lane < LANES; lane++)
		tile->lanes[lane] = lanes[lane];
	uint32_t place = block->changes_at;
	for (unsigned bin = BINS; bin-- > 0;) {
		tile->seen[bin] = 0;
		tile->nexts[bin] = NOWHERE;
		tile->cursors[bin] = block->kind == DEVICE_STEPS ? place : 0;
		place += block->counts[bin];
		tile->ends[bin] = place;
	}
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
