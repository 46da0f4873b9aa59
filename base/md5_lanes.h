/* The rounds of MD5 (RFC 1321) for up to 16 independent messages in lockstep. One message keeps a core busy with waiting for its own last
 * step; 16 of them in vector registers cost little more than one. Per GB on a Xeon with AVX-512: one message 1.6 to 1.8 s of CPU, as in
 * OpenSSL (nettle takes 1.9 to 2.1); 4 messages 0.7 s, 16 messages 0.17 s. AVX2: 16 messages 0.3 s; SSE2: 0.5 to 0.7 s. Any thread. */
#ifndef BASE_MD5_LANES_H
#define BASE_MD5_LANES_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_LANES = 16, MD5_BLOCK_BYTES = 64, MD5_STATE_WORDS = 4 };

struct md5_lane {
	uint32_t *state;     /* MD5_STATE_WORDS; no two lanes share one */
	const uint8_t *data; /* whole blocks */
	size_t blocks;
};

/* Takes the blocks of each lane into its state. `lanes` is used up. At most MD5_LANES. */
void md5_lanes_advance(struct md5_lane *lanes, size_t count);

/* From so many lanes on, this machine takes them together: fewer are done one after the other, each as fast as alone. */
size_t md5_lanes_worth(void);

/* The instruction sets this machine has for it, best first, and the same by one of them: for tests and benches. */
size_t md5_lanes_ways(void);
void md5_lanes_advance_by(size_t way, struct md5_lane *lanes, size_t count);

#endif
