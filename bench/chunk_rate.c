/* What chunking costs: BLAKE3 alone, boundaries alone, both in one pass, and the codec trial, over
 * random bytes on one core. Each is the best of several rounds taken in turn, by CPU time, so that
 * other work on the machine touches all of them alike. Prints `name value unit`; the ratio is of
 * the one pass to BLAKE3 alone in pieces of a chunk's size.
 *
 *   chunk_rate [MIB]      MIB defaults to 256 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buffer.h"
#include "base/random.h"
#include "chunker/chunk_hash.h"
#include "chunker/chunk_stream.h"
#include "chunker/codec.h"
#include "chunker/gear.h"

enum { DEFAULT_MIB = 256, MOST_MIB = 1 << 14, ROUNDS = 5, WRITE_BYTES = 256 * 1024 };

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void hash_whole(struct span content)
{
	(void)chunk_hash(content);
}

static void hash_pieces(struct span content)
{
	for (size_t at = 0; at < content.len; at += CHUNK_TARGET_BYTES)
		(void)chunk_hash(span_slice(content, at, CHUNK_TARGET_BYTES));
}

static void find_ends(struct span content)
{
	struct gear gear;
	gear_init(&gear);
	for (size_t at = 0, end; at < content.len; at += end) {
		end = gear_next(&gear, span_slice(content, at, content.len));
		if (end == 0)
			break;
	}
}

static int drop_chunk(
	void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	(void)taker, (void)id, (void)content, (void)err;
	return 0;
}

static void push_in(struct span content, size_t piece)
{
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(drop_chunk, NULL);
	for (size_t at = 0; at < content.len; at += piece)
		chunk_stream_push(stream, span_slice(content, at, piece), &err);
	chunk_stream_end(stream, &err);
	chunk_stream_free(stream);
}

static void chunk_whole(struct span content)
{
	push_in(content, content.len);
}

static void chunk_writes(struct span content)
{
	push_in(content, WRITE_BYTES);
}

static void choose_codecs(struct span content)
{
	struct codec_context *const context = codec_context_new();
	for (size_t at = 0; at < content.len; at += CHUNK_TARGET_BYTES)
		(void)codec_choose(context, span_slice(content, at, CHUNK_TARGET_BYTES));
	codec_context_free(context);
}

enum { HASH_WHOLE, HASH_PIECES, FIND_ENDS, CHUNK_WHOLE, CHUNK_WRITES, CHOOSE_CODECS, RATES };

static const struct {
	const char *name;
	void (*run)(struct span content);
} rates[RATES] = {
	[HASH_WHOLE] = {"blake3_whole", hash_whole},
	[HASH_PIECES] = {"blake3_64k", hash_pieces},
	[FIND_ENDS] = {"gear", find_ends},
	[CHUNK_WHOLE] = {"chunk_and_hash", chunk_whole},
	[CHUNK_WRITES] = {"chunk_and_hash_256k_writes", chunk_writes},
	[CHOOSE_CODECS] = {"codec_choose", choose_codecs},
};

int main(int argc, char **argv)
{
	const long mib = argc > 1 ? strtol(argv[1], NULL, 10) : DEFAULT_MIB;
	if (mib < 1 || mib > MOST_MIB) {
		fprintf(stderr, "usage: chunk_rate [MIB]\n");
		return EXIT_FAILURE;
	}
	struct buffer bytes;
	buffer_init(&bytes, (size_t)mib << 20);
	random_bytes(buffer_reserve(&bytes, (size_t)mib << 20), (size_t)mib << 20);
	buffer_commit(&bytes, (size_t)mib << 20);
	double best[RATES] = {0};
	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < RATES; i++) {
			const double begun = cpu_seconds();
			rates[i].run(buffer_span(&bytes));
			const double rate = (double)bytes.len / 1e9 / (cpu_seconds() - begun);
			best[i] = rate > best[i] ? rate : best[i];
		}
	}
	for (size_t i = 0; i < RATES; i++)
		printf("%s %.3f GB/s\n", rates[i].name, best[i]);
	printf("chunk_and_hash_to_blake3 %.3f ratio\n", best[CHUNK_WHOLE] / best[HASH_PIECES]);
	printf("chunk_and_hash_256k_writes_to_blake3 %.3f ratio\n",
		best[CHUNK_WRITES] / best[HASH_PIECES]);
	buffer_release(&bytes);
	return EXIT_SUCCESS;
}
