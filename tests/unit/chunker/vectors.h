/* Helpers of the chunker's tests: the reference vectors in tests/data/vectors, generated content,
 * and ids as text. */
#ifndef TESTS_UNIT_CHUNKER_VECTORS_H
#define TESTS_UNIT_CHUNKER_VECTORS_H

#include "base/buffer.h"
#include "chunker/chunk.h"

/* Reads the whole file below $DELTABUCKET_TEST_DATA, else TEST_DATA_DIR, else tests/data. The
 * caller releases the buffer. */
struct buffer vectors_read(const char *name);
/* Reads a file of hex digits and skips white space between them. The caller releases the buffer. */
struct buffer vectors_read_hex(const char *name);
/* Takes the next line without its newline. False at the end. */
bool vectors_line(struct span *rest, struct span *out_line);
uint64_t vectors_number(struct span text); /* decimal */

/* `len` bytes of SplitMix64; the caller frees them. */
uint8_t *vectors_splitmix(uint64_t seed, size_t len);
/* bytes[i] = (factor * i + offset) mod 256. The caller frees them. */
uint8_t *vectors_linear(unsigned factor, unsigned offset, size_t len);

/* `count` normally distributed weights, the upper `width` (2: bf16, 4: fp32) bytes of each,
 * little-endian. The caller frees them. */
uint8_t *vectors_weights(uint64_t seed, size_t width, size_t count);
/* Words that look like English; the caller frees them. */
uint8_t *vectors_words(uint64_t seed, size_t len);

struct chunk_id vectors_id(struct span text);
struct chunk_id vectors_id_text(const char *text);
void vectors_expect_id(struct chunk_id got, const char *expected);

#endif
