/* Bits in bytes, the least significant first. For loops that handle a code at a time: all inline.
 * One thread at a time. */
#ifndef WEIGHTS_CODEC_BIT_STREAM_H
#define WEIGHTS_CODEC_BIT_STREAM_H

#include <endian.h>
#include <string.h>

#include "base/span.h"

enum {
	BIT_STREAM_MOST = 56, /* bits that one put takes and one peek shows */
	BIT_STREAM_SLACK = 8  /* bytes that a writer may touch behind the last one it fills */
};

struct bit_writer {
	uint8_t *at;
	uint64_t held; /* `count` bits that fill no byte yet */
	unsigned count;
};

/* `value` has no bit set above its `bits`. */
static inline void bit_writer_put(struct bit_writer *writer, uint64_t value, unsigned bits)
{
	writer->held |= value << writer->count;
	writer->count += bits;
	const uint64_t bytes = htole64(writer->held);
	memcpy(writer->at, &bytes, sizeof bytes);
	writer->at += writer->count / 8;
	writer->held >>= writer->count & ~7u;
	writer->count &= 7;
}

/* The end of what was written; the last byte is filled up with zero bits. */
static inline uint8_t *bit_writer_end(struct bit_writer *writer)
{
	if (writer->count != 0)
		bit_writer_put(writer, 0, 8 - writer->count);
	return writer->at;
}

struct bit_reader {
	const uint8_t *start;
	const uint8_t *next; /* the first byte that is not all in `held` */
	const uint8_t *end;
	/* the next `count` bits; above them may stand what follows, or zeros */
	uint64_t held;
	unsigned count;
	uint64_t made_up; /* zero bytes that were read behind the end */
};

static inline struct bit_reader bit_reader_open(struct span bytes)
{
	return (struct bit_reader){
		.start = bytes.data, .next = bytes.data, .end = bytes.data + bytes.len};
}

/* Near the end, byte by byte. */
static inline void bit_reader_fill_slowly(struct bit_reader *reader)
{
	for (; reader->count < BIT_STREAM_MOST; reader->count += 8) {
		if (reader->next < reader->end)
			reader->held |= (uint64_t)*reader->next++ << reader->count;
		else
			reader->made_up++;
	}
}

/* The next bits: at least BIT_STREAM_MOST, the first one lowest. */
static inline uint64_t bit_reader_peek(struct bit_reader *reader)
{
	if (reader->end - reader->next >= 8) {
		uint64_t word;
		memcpy(&word, reader->next, sizeof word);
		reader->held |= le64toh(word) << reader->count;
		reader->next += (63 - reader->count) / 8;
		reader->count |= BIT_STREAM_MOST;
	} else {
		bit_reader_fill_slowly(reader);
	}
	return reader->held;
}

/* At most as many as a peek showed. */
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

/* Bits taken so far. More than there are means that zeros were made up. */
static inline uint64_t bit_reader_at(const struct bit_reader *reader)
{
	return 8 * ((uint64_t)(reader->next - reader->start) + reader->made_up) - reader->count;
}

/* The same in bytes, the last one counted whole. */
static inline uint64_t bit_reader_bytes(const struct bit_reader *reader)
{
	return (bit_reader_at(reader) + 7) / 8;
}

#endif
