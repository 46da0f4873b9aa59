/* hash = 2 * hash + table[byte]; a cut follows a byte after which the top 16 bits are zero. 64
 * doublings push a byte out of the hash, so the hash depends on the last 64 bytes alone. Two things
 * follow.
 *
 * - No cut depends on the first bytes of a chunk, so they are not hashed.
 * - A second cursor can start anywhere, 64 bytes early. The doubling is a chain of dependent steps
 *   that leaves most of the processor idle, so two cursors side by side are nearly twice as fast
 *   as one. If the near cursor finds a cut, the work of the far one is wasted; so the lanes are
 *   short. */
#include "chunker/gear.h"

#include "base/error.h"
#include "chunker/chunk.h"
#include "chunker/gear_table.h"

enum {
	HASH_WINDOW_BYTES = 64,
	/* the first cut may follow byte CHUNK_MIN_BYTES */
	UNHASHED_BYTES = CHUNK_MIN_BYTES - 1 - HASH_WINDOW_BYTES,
	LANE_MAX_BYTES = 4096,
	LANE_MIN_BYTES = 256 /* for less, the second cursor's start costs more than it saves */
};

/* The three scans return the count of bytes up to the first cut. Without a cut they return 0, and
 * the hash is rolled over all bytes. */

static size_t pass_minimum(struct gear *gear, struct span bytes);
static size_t smaller(size_t a, size_t b);
static uint64_t roll(uint64_t hash, const uint8_t *bytes, size_t len);
static size_t scan(uint64_t *hash, const uint8_t *bytes, size_t len);
static size_t scan_two(uint64_t *hash, const uint8_t *near, size_t lane);
static bool is_cut(uint64_t hash);
static size_t scan_one(uint64_t *hash, const uint8_t *bytes, size_t len);

void gear_init(struct gear *gear)
{
	*gear = (struct gear){0};
}

size_t gear_next(struct gear *gear, struct span bytes)
{
	ASSERT(gear->length < CHUNK_MAX_BYTES);
	const size_t passed = pass_minimum(gear, bytes);
	const size_t window = smaller(bytes.len - passed, CHUNK_MAX_BYTES - gear->length);
	if (window == 0)
		return 0;
	const size_t found = scan(&gear->hash, bytes.data + passed, window);
	gear->length += window;
	const size_t end = found == 0 && gear->length == CHUNK_MAX_BYTES ? window : found;
	if (end == 0)
		return 0;
	gear_init(gear);
	return passed + end;
}

/* Passes over the bytes before the first possible cut and returns how many they are. */
static size_t pass_minimum(struct gear *gear, struct span bytes)
{
	size_t at = 0;
	if (gear->length < UNHASHED_BYTES) {
		at = smaller(bytes.len, UNHASHED_BYTES - gear->length);
		gear->length += at;
	}
	if (gear->length < CHUNK_MIN_BYTES - 1) {
		const size_t rolled = smaller(bytes.len - at, CHUNK_MIN_BYTES - 1 - gear->length);
		gear->hash = roll(gear->hash, bytes.data + at, rolled);
		gear->length += rolled;
		at += rolled;
	}
	return at;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static uint64_t roll(uint64_t hash, const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len; at++)
		hash = (hash << 1) + gear_table[bytes[at]];
	return hash;
}

static size_t scan(uint64_t *hash, const uint8_t *bytes, size_t len)
{
	size_t at = 0;
	while (len - at >= 2 * LANE_MIN_BYTES) {
		const size_t lane = smaller((len - at) / 2, LANE_MAX_BYTES);
		const size_t found = scan_two(hash, bytes + at, lane);
		if (found != 0)
			return at + found;
		at += 2 * lane;
	}
	const size_t found = scan_one(hash, bytes + at, len - at);
	return found != 0 ? at + found : 0;
}

/* Two lanes of `lane` bytes, one behind the other. */
static size_t scan_two(uint64_t *hash, const uint8_t *near, size_t lane)
{
	ASSERT(lane >= HASH_WINDOW_BYTES); /* the far hash begins within the near lane */
	const uint8_t *const far = near + lane;
	uint64_t near_hash = *hash;
	uint64_t far_hash = roll(0, far - HASH_WINDOW_BYTES, HASH_WINDOW_BYTES);
#pragma GCC unroll 8
	for (size_t at = 0; at < lane; at++) {
		near_hash = (near_hash << 1) + gear_table[near[at]];
		far_hash = (far_hash << 1) + gear_table[far[at]];
		if (is_cut(near_hash))
			return at + 1;
		if (is_cut(far_hash)) {
			const size_t passed = at + 1;
			const size_t nearer = scan_one(&near_hash, near + passed, lane - passed);
			return nearer != 0 ? passed + nearer : lane + passed;
		}
	}
	*hash = far_hash;
	return 0;
}

static bool is_cut(uint64_t hash)
{
	return hash < UINT64_C(1) << 48; /* the top 16 bits are zero */
}

static size_t scan_one(uint64_t *hash, const uint8_t *bytes, size_t len)
{
	uint64_t rolled = *hash;
	for (size_t at = 0; at < len; at++) {
		rolled = (rolled << 1) + gear_table[bytes[at]];
		if (is_cut(rolled))
			return at + 1;
	}
	*hash = rolled;
	return 0;
}
