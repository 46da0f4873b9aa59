/* Writes and reads bits in bytes, the least significant first. All inline, for loops that handle
 * one code at a time. One thread at a time. */
#ifndef WEIGHTS_CODEC_BIT_STREAM_H
#define WEIGHTS_CODEC_BIT_STREAM_H

#include <endian.h>
#include <string.h>

#include "base/span.h"

enum {
	BIT_STREAM_MOST = 56, /* bits that one put takes and one peek shows */
	BIT_STREAM_SLACK = 8  /* bytes that a writer may touch behind the last byte it fills */
};

struct bit_writer {
	uint8_t *at;
	uint64_t held; /* `count` bits that do not fill a byte yet */
	unsigned count;
};

/* `value` has no bit set above its lowest `bits`. */
static inline void bit_writer_put(struct bit_writer *writer, uint64_t value, unsigned bits)
{
	writer->held |= value << writer->count;
	writer->count += bits;
	const uint64_t bytes = htole64(writer->held);
	memcpy(writer->at, &bytes, sizeof(bytes));
	writer->at += writer->count / 8;
	writer->held >>= writer->count & ~7u;
	writer->count &= 7;
}

/* Fills the last byte up with zero bits and returns the end of the bytes written. */
static inline uint8_t *bit_writer_end(struct bit_writer *writer)
{
	if (writer->count != 0)
		bit_writer_put(writer, 0, 8 - writer->count);
	return writer->at;
}

struct bit_reader {
	const uint8_t *start;
	const uint8_t *next; /* the first byte that `held` does not count */
	const uint8_t *end;
	/* the next `count` bits; above them stand zeros or bits that follow */
	uint64_t held;
	unsigned count;
	uint64_t made_up; /* zero bytes that a peek read behind the end */
};

static inline struct bit_reader bit_reader_open(struct span bytes)
{
	return (struct bit_reader){
		.start = bytes.data, .next = bytes.data, .end = bytes.data + bytes.len};
}

/* Fills byte by byte, near the end of the bytes. */
static inline void bit_reader_fill_slowly(struct bit_reader *reader)
{
	for (; reader->count < BIT_STREAM_MOST; reader->count += 8) {
		if (reader->next < reader->end)
			reader->held |= (uint64_t)*reader->next++ << reader->count;
		else
			reader->made_up++;
	}
}

/* Shows the next bits, at least BIT_STREAM_MOST, the first one lowest. Behind the end they are
 * zeros. */
static inline uint64_t bit_reader_peek(struct bit_reader *reader)
{
	if (reader->end - reader->next >= 8) {
		uint64_t word;
		memcpy(&word, reader->next, sizeof(word));
		reader->held |= le64toh(word) << reader->count;
		reader->next += (63 - reader->count) / 8;
		reader->count |= BIT_STREAM_MOST;
	} else {
		bit_reader_fill_slowly(reader);
	}
	return reader->held;
}

/* Skips at most as many bits as a peek showed. */
static inline void bit_reader_skip(struct bit_reader *reader, unsigned bits)
{
	reader->held >>= bits;
	reader->count -= bits;
}

static inline uint64_t bit_reader_take(struct bit_reader *reader, unsigned bits)
{
	const uint64_t value = bit_reader_peek(reader) & ((UINT64_C(1) << bits) - 1);
	bit_reader_skip(reader, bits);
	return value;
}

/* Bits taken so far. More than the bytes have means that the reader made up zeros. */
static inline uint64_t bit_reader_at(const struct bit_reader *reader)
{
	return 8 * ((uint64_t)(reader->next - reader->start) + reader->made_up) - reader->count;
}

/* The same in bytes; a byte taken in part counts whole. */
static inline uint64_t bit_reader_bytes(const struct bit_reader *reader)
{
	return (bit_reader_at(reader) + 7) / 8;
}

#endif
