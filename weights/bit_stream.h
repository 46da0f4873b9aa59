/* Bits in bytes, the least significant first. For loops that handle a code at a time: all inline. One thread at a time. */
#ifndef WEIGHTS_BIT_STREAM_H
#define WEIGHTS_BIT_STREAM_H

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
static inline void bit_writer_put(struct bit_writer *const writer, const uint64_t value, const unsigned bits)
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
static inline uint8_t *bit_writer_end(struct bit_writer *const writer)
{
	if (writer->count != 0)
		bit_writer_put(writer, 0, 8 - writer->count);
	return writer->at;
}

struct bit_reader {
	struct span bytes;
	uint64_t at; /* in bits; behind the end when more was taken than is there */
};

/* What stands at byte `from`, where less than 8 bytes may be left; zeros behind the end. */
static inline uint64_t bit_reader_edge(const struct span bytes, const uint64_t from)
{
	uint64_t word = 0;
	if (from < bytes.len)
		memcpy(&word, bytes.data + from, bytes.len - from < sizeof word ? bytes.len - from : sizeof word);
	return le64toh(word);
}

/* The next bits: at least BIT_STREAM_MOST, the first one lowest. */
static inline uint64_t bit_reader_peek(const struct bit_reader *const reader)
{
	const uint64_t from = reader->at / 8;
	uint64_t word;
	if (from + sizeof word <= reader->bytes.len) {
		memcpy(&word, reader->bytes.data + from, sizeof word);
		word = le64toh(word);
	} else {
		word = bit_reader_edge(reader->bytes, from);
	}
	return word >> (reader->at & 7);
}

static inline void bit_reader_skip(struct bit_reader *const reader, const unsigned bits)
{
	reader->at += bits;
}

static inline uint64_t bit_reader_take(struct bit_reader *const reader, const unsigned bits)
{
	const uint64_t value = bit_reader_peek(reader) & ((UINT64_C(1) << bits) - 1);
	reader->at += bits;
	return value;
}

/* Bytes that were touched. More than there are means that zeros were made up. */
static inline uint64_t bit_reader_bytes(const struct bit_reader *const reader)
{
	return (reader->at + 7) / 8;
}

#endif
