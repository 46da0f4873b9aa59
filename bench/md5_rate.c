/* The MD5-only rate of one core, over 1 MiB pieces: the ceiling of a PUT with an MD5 ETag. Prints
 * `name value unit`. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/digest/digest.h"
#include "base/memory.h"
#include "base/random.h"

enum { PIECE_BYTES = 1 << 20, PIECES = 1024 };

int main(void)
{
	uint8_t *const piece = memory_new(PIECE_BYTES);
	random_bytes(piece, PIECE_BYTES);
	struct md5_stream *const stream = md5_stream_new();
	const struct clock_source *const clock = clock_system();
	const int64_t begun = clock->monotonic_ms(clock);
	for (int i = 0; i < PIECES; i++)
		md5_stream_add(stream, span_of(piece, PIECE_BYTES));
	uint8_t digest[MD5_BYTES];
	md5_stream_result(stream, digest);
	const int64_t spent_ms = clock->monotonic_ms(clock) - begun;
	printf("md5 %.3f GB/s\n", (double)PIECE_BYTES * PIECES / 1e6 / (double)spent_ms);
	md5_stream_free(stream);
	free(piece);
	return 0;
}
