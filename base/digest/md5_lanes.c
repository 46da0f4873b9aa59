/* One message goes word by word. Several go side by side, in the narrowest rows that have room for
 * them: the steps wait for each other at any width, and empty lanes would be transposed for
 * nothing. There are three widths, each compiled for three instruction sets. */
#include "base/digest/md5_lanes.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/digest/md5_steps.h"
#include "base/error.h"

static void advance_one(struct md5_lane *lane)
{
	uint32_t *const state = lane->state;
	for (; lane->blocks > 0; lane->blocks--, lane->data += MD5_BLOCK_BYTES) {
		uint32_t a = state[0];
		uint32_t b = state[1];
		uint32_t c = state[2];
		uint32_t d = state[3];
		uint32_t words[MD5_BLOCK_BYTES / sizeof(uint32_t)];
		memcpy(words, lane->data, sizeof(words));
#define WORD(i)      le32toh(words[i])
#define ADDEND(step) md5_addends[step]
		MD5_ROUNDS(uint32_t, WORD, ADDEND)
#undef ADDEND
#undef WORD
		state[0] += a;
		state[1] += b;
		state[2] += c;
		state[3] += d;
	}
}

typedef uint32_t quad __attribute__((vector_size(16)));

struct side_by_side {
	uint32_t state[MD5_STATE_WORDS][MD5_LANES]; /* a row has the same word of all messages */
	const uint8_t *data[MD5_LANES];
	/* in memory, because adding from there saves the two instructions that load a constant */
	const uint32_t *addends;
};

#if defined __clang__
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define PICK(x, y, ...) __builtin_shuffle(x, y, (quad){__VA_ARGS__})
#endif

#define MD5_ROW_LANES 4
#include "base/digest/md5_rows.def"
#define MD5_ROW_LANES 8
#include "base/digest/md5_rows.def"
#define MD5_ROW_LANES 16
#include "base/digest/md5_rows.def"

static inline __attribute__((always_inline)) void advance_rows(
	struct side_by_side *const side, const size_t count, const size_t blocks)
{
	if (count <= 4)
		advance_rows_4(side, blocks);
	else if (count <= 8)
		advance_rows_8(side, blocks);
	else
		advance_rows_16(side, blocks);
}

static void md5_lanes_advance_plain(struct side_by_side *side, size_t count, size_t blocks)
{
	advance_rows(side, count, blocks);
}

#if defined __x86_64__
__attribute__((target("avx2"))) static void md5_lanes_advance_avx2(
	struct side_by_side *const side, const size_t count, const size_t blocks)
{
	advance_rows(side, count, blocks);
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"))) static void md5_lanes_advance_avx512(
	struct side_by_side *const side, const size_t count, const size_t blocks)
{
	advance_rows(side, count, blocks);
}
#endif

struct way {
	void (*advance)(struct side_by_side *side, size_t count, size_t blocks);
	/* from this number of lanes on it is clearly faster than one lane after the other */
	size_t worth;
};

enum { MOST_WAYS = 3 };

/* Fills `ways`, best first, and returns their number. */
static size_t find_ways(struct way ways[MOST_WAYS])
{
	size_t count = 0;
#if defined __x86_64__
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
		ways[count++] = (struct way){md5_lanes_advance_avx512, 3};
	if (__builtin_cpu_supports("avx2"))
		ways[count++] = (struct way){md5_lanes_advance_avx2, 3};
#endif
	/* transpose_quads reads in this order */
	const bool is_little_endian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	ways[count++] = (struct way){md5_lanes_advance_plain, is_little_endian ? 3 : MD5_LANES + 1};
	return count;
}

/* Goes as far as the shortest lane. Rows without a lane compute on the first lane's bytes, and the
 * result is dropped. */
static void advance_together(const struct way *way, struct md5_lane *lanes, size_t count)
{
	ASSERT(count >= 1 && count <= MD5_LANES);
	struct side_by_side side = {.addends = md5_addends};
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
	way->advance(&side, count, blocks);
	for (size_t i = 0; i < count; i++) {
		for (size_t word = 0; word < MD5_STATE_WORDS; word++)
			lanes[i].state[word] = side.state[word][i];
		lanes[i].data += blocks * MD5_BLOCK_BYTES;
		lanes[i].blocks -= blocks;
	}
}

static size_t drop_finished(struct md5_lane *lanes, size_t count)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (lanes[i].blocks > 0)
			lanes[kept++] = lanes[i];
	return kept;
}

static void advance_by(const struct way *way, struct md5_lane *lanes, size_t count)
{
	ASSERT(count <= MD5_LANES);
	for (count = drop_finished(lanes, count); count >= way->worth;
		count = drop_finished(lanes, count))
		advance_together(way, lanes, count);
	for (size_t i = 0; i < count; i++)
		advance_one(&lanes[i]);
}

void md5_lanes_advance(struct md5_lane *lanes, size_t count)
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

void md5_lanes_advance_by(size_t way, struct md5_lane *lanes, size_t count)
{
	struct way ways[MOST_WAYS];
	ASSERT(way < find_ways(ways));
	advance_by(&ways[way], lanes, count);
}
