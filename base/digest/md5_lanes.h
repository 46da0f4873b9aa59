/* The rounds of MD5 (RFC 1321) for up to 16 independent messages in lockstep. One message leaves a
 * core waiting for its own previous step; several in vector registers cost little more than one.
 * CPU seconds per GB on an EPYC at 3.7 GHz, for 1, 4, 8 and 16 messages: AVX-512 1.23, 0.44, 0.25,
 * 0.19; AVX2 1.23, 0.51, 0.29, 0.20; SSE2 1.23, 0.56, 0.33, 0.42. Any thread. */
#ifndef BASE_DIGEST_MD5_LANES_H
#define BASE_DIGEST_MD5_LANES_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_LANES = 16, MD5_BLOCK_BYTES = 64, MD5_STATE_WORDS = 4 };

struct md5_lane {
	uint32_t *state;     /* MD5_STATE_WORDS words; no two lanes share one */
	const uint8_t *data; /* whole blocks */
	size_t blocks;
};

/* Takes the blocks of each lane into its state. At most MD5_LANES lanes. `lanes` has no meaning
 * afterwards. */
void md5_lanes_advance(struct md5_lane *lanes, size_t count);

/* The number of lanes from which this machine takes them together. It takes fewer one after the
 * other, each as fast as alone. */
size_t md5_lanes_worth(void);

/* The instruction sets of this machine that can do this, best first, and the same by one of them:
 * for tests and benches. */
size_t md5_lanes_ways(void);
void md5_lanes_advance_by(size_t way, struct md5_lane *lanes, size_t count);

#endif
