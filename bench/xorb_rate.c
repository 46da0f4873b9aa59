/* What a server must do with an uploaded xorb whatever it is made of: read its records, name the
 * chunks (BLAKE3), sum up payloads (XXH3), find the root. Over 16 xorbs of random bytes in memory,
 * in pieces as a connection brings them, on one core; the best of several rounds, by CPU time.
 * Prints `name value unit`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "base/random.h"
#include "chunker/xorb_parse.h"

enum {
	CHUNKS = 960,
	XORB_BYTES = CHUNKS * (CHUNK_TARGET_BYTES + 8),
	XORBS = 16,
	ROUNDS = 5,
	PIECE_BYTES = 32 * 1024
};

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int sum_up(void *taker, const struct xorb_record *record, struct error *err)
{
	(void)err;
	*(uint64_t *)taker += xxh3_64(record->payload);
	return 0;
}

static void fill(uint8_t *xorb)
{
	random_bytes(xorb, XORB_BYTES);
	for (uint8_t *at = xorb; at < xorb + XORB_BYTES; at += CHUNK_TARGET_BYTES + 8)
		xorb_record_put_header(&(struct xorb_record_header){.stored = CHUNK_TARGET_BYTES,
					       .size = CHUNK_TARGET_BYTES},
			at);
}

static int verify(const uint8_t *xorb, uint64_t *sum, struct error *err)
{
	struct chunk_id hash;
	struct xorb_parse *const parse = xorb_parse_new(sum_up, sum, false);
	int result = 0;
	for (size_t at = 0; result == 0 && at < XORB_BYTES; at += PIECE_BYTES)
		result = xorb_parse_push(parse,
			span_of(xorb + at,
				XORB_BYTES - at < PIECE_BYTES ? XORB_BYTES - at : PIECE_BYTES),
			err);
	if (result == 0)
		result = xorb_parse_end(parse, &hash, err);
	xorb_parse_free(parse);
	return result;
}

int main(void)
{
	uint8_t *const xorb = memory_new(XORB_BYTES);
	struct error err = {0};
	uint64_t sum = 0;
	double best = 1e9;
	fill(xorb);
	for (int round = 0; round < ROUNDS; round++) {
		const double begun = cpu_seconds();
		for (int i = 0; i < XORBS; i++)
			if (verify(xorb, &sum, &err) != 0)
				return fprintf(stderr, "%s\n", err.text), 1;
		const double spent = cpu_seconds() - begun;
		best = spent < best ? spent : best;
	}
	printf("verification of xorbs, %llx %.3f s/GB\n", (unsigned long long)sum & 15,
		best * 1e9 / ((double)XORBS * XORB_BYTES));
	free(xorb);
	return 0;
}
