/* One body in GCC's vector extensions, 16 words wide, compiled for three instruction sets: the compiler cuts it into registers as wide as
 * there are. Messages lie side by side, so before a step the words of the 16 blocks are transposed; that runs one block ahead, for the
 * processor to do it while the rounds wait for each other. */
#include "base/md5_lanes.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"

enum { STEPS = 64, WORDS = MD5_BLOCK_BYTES / 4 };

static const uint32_t addends[STEPS] = { /* 2^32 times |sin(step + 1)| */
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
	0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
	0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
	0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
	0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
static const uint8_t rotations[4][4] = { {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21} };

/* All 64 steps on a, b, c, d, of a word or a vector of words each; `word(i)` gives the i-th word of the block. Unrolled, so that everything
 * that depends on the step alone is known to the compiler. */
#define MD5_ROUNDS(type, word) \
	_Pragma("GCC unroll 64") for (int step = 0; step < STEPS; step++) { \
		const int bits = rotations[step / 16][step % 4]; \
		type sum; \
		if (step < 16) \
			sum = (a + word(step) + addends[step]) + (d ^ (b & (c ^ d))); \
		else if (step < 32) /* the two halves have no bit in common, and the one without b can be added early */ \
			sum = (a + word((5 * step + 1) % WORDS) + addends[step] + (c & ~d)) + (b & d); \
		else if (step < 48) \
			sum = (a + word((3 * step + 5) % WORDS) + addends[step]) + (b ^ (c ^ d)); \
		else \
			sum = (a + word((7 * step) % WORDS) + addends[step]) + (c ^ (b | ~d)); \
		a = d; \
		d = c; \
		c = b; \
		b += sum << bits | sum >> (32 - bits); \
	}

static uint32_t load_word(const uint8_t *const data)
{
	return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

static void advance_one(struct md5_lane *const lane)
{
	uint32_t *const state = lane->state;
	for (; lane->blocks > 0; lane->blocks--, lane->data += MD5_BLOCK_BYTES) {
		uint32_t a = state[0];
		uint32_t b = state[1];
		uint32_t c = state[2];
		uint32_t d = state[3];
#define WORD(i) load_word(lane->data + 4 * (i))
		MD5_ROUNDS(uint32_t, WORD)
#undef WORD
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
	}
}

typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint32_t row __attribute__((vector_size(4 * MD5_LANES)));

struct side_by_side { /* the same word of all lanes in one row */
	row state[MD5_STATE_WORDS];
	const uint8_t *data[MD5_LANES];
};

#if defined __clang__
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define PICK(x, y, ...) __builtin_shuffle(x, y, (quad){ __VA_ARGS__ })
#endif

/* Four words of four lanes. */
static inline __attribute__((always_inline)) void transpose_quads(const uint8_t *const data[4], const size_t word, uint32_t *const out)
{
	quad in[4];
	for (size_t i = 0; i < 4; i++)
		memcpy(&in[i], data[i] + 4 * word, sizeof in[i]);
	const quad low_front = PICK(in[0], in[1], 0, 4, 1, 5);
	const quad low_back = PICK(in[0], in[1], 2, 6, 3, 7);
	const quad high_front = PICK(in[2], in[3], 0, 4, 1, 5);
	const quad high_back = PICK(in[2], in[3], 2, 6, 3, 7);
	const quad rows[4] = {
		PICK(low_front, high_front, 0, 1, 4, 5),
		PICK(low_front, high_front, 2, 3, 6, 7),
		PICK(low_back, high_back, 0, 1, 4, 5),
		PICK(low_back, high_back, 2, 3, 6, 7),
	};
	for (size_t i = 0; i < 4; i++)
		memcpy(out + i * MD5_LANES, &rows[i], sizeof rows[i]);
}

static inline __attribute__((always_inline)) void transpose_block(struct side_by_side *const lanes, row out[WORDS])
{
	for (size_t lane = 0; lane < MD5_LANES; lane += 4)
		for (size_t word = 0; word < WORDS; word += 4)
			transpose_quads(lanes->data + lane, word, (uint32_t *)&out[word] + lane);
	for (size_t lane = 0; lane < MD5_LANES; lane++)
		lanes->data[lane] += MD5_BLOCK_BYTES;
}

static inline __attribute__((always_inline)) void advance_rows(struct side_by_side *const lanes, const size_t blocks)
{
	row words[2][WORDS];
	row *const state = lanes->state;
	transpose_block(lanes, words[0]);
	for (size_t block = 0; block < blocks; block++) {
		if (block + 1 < blocks)
			transpose_block(lanes, words[(block + 1) % 2]);
		const row *const now = words[block % 2];
		row a = state[0];
		row b = state[1];
		row c = state[2];
		row d = state[3];
#define WORD(i) now[i]
		MD5_ROUNDS(row, WORD)
#undef WORD
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
	}
}

static void advance_plain(struct side_by_side *const lanes, const size_t blocks)
{
	advance_rows(lanes, blocks);
}

#if defined __x86_64__
__attribute__((target("avx2"))) static void advance_avx2(struct side_by_side *const lanes, const size_t blocks)
{
	advance_rows(lanes, blocks);
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))) static void advance_avx512(struct side_by_side *const lanes, const size_t blocks)
{
	advance_rows(lanes, blocks);
}
#endif

struct way {
	void (*advance)(struct side_by_side *lanes, size_t blocks);
	size_t worth; /* from so many lanes on it takes clearly less time than one after the other */
};

enum { MOST_WAYS = 3 };

/* Best first; returns how many. */
static size_t find_ways(struct way ways[MOST_WAYS])
{
	size_t count = 0;
#if defined __x86_64__
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq"))
		ways[count++] = (struct way){ advance_avx512, 3 };
	if (__builtin_cpu_supports("avx2"))
		ways[count++] = (struct way){ advance_avx2, 4 };
#endif
	const bool is_little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__; /* as transpose_quads reads */
	ways[count++] = (struct way){ advance_plain, is_little_endian ? 7 : MD5_LANES + 1 };
	return count;
}

/* As far as the shortest goes. Rows that no lane has run along with the first one's bytes, for nothing. */
static void advance_together(const struct way *const way, struct md5_lane *const lanes, const size_t count)
{
	struct side_by_side side;
	size_t blocks = lanes[0].blocks;
	for (size_t i = 1; i < count; i++)
		if (lanes[i].blocks < blocks)
			blocks = lanes[i].blocks;
	for (size_t i = 0; i < MD5_LANES; i++) {
		const struct md5_lane *const lane = &lanes[i < count ? i : 0];
		side.data[i] = lane->data;
		for (size_t word = 0; word < MD5_STATE_WORDS; word++)
			side.state[word][i] = lane->state[word];
	}
	way->advance(&side, blocks);
	for (size_t i = 0; i < count; i++) {
		for (size_t word = 0; word < MD5_STATE_WORDS; word++)
			lanes[i].state[word] = side.state[word][i];
		lanes[i].data += blocks * MD5_BLOCK_BYTES;
		lanes[i].blocks -= blocks;
	}
}

static size_t drop_finished(struct md5_lane *const lanes, const size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (lanes[i].blocks > 0)
			lanes[kept++] = lanes[i];
	return kept;
}

static void advance_by(const struct way *const way, struct md5_lane *const lanes, size_t count)
{
	ASSERT(count <= MD5_LANES);
	for (count = drop_finished(lanes, count); count >= way->worth; count = drop_finished(lanes, count))
		advance_together(way, lanes, count);
	for (size_t i = 0; i < count; i++)
		advance_one(&lanes[i]);
}

void md5_lanes_advance(struct md5_lane *const lanes, const size_t count)
{
	md5_lanes_advance_by(0, lanes, count);
}

size_t md5_lanes_worth(void)
{
	struct way ways[MOST_WAYS];
	find_ways(ways);
	return ways[0].worth;
}

size_t md5_lanes_ways(void)
{
	struct way ways[MOST_WAYS];
	return find_ways(ways);
}

void md5_lanes_advance_by(const size_t way, struct md5_lane *const lanes, const size_t count)
{
	struct way ways[MOST_WAYS];
	ASSERT(way < find_ways(ways));
	advance_by(&ways[way], lanes, count);
}
