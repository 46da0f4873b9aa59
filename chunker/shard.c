/* The reader is in one of three sections: files, xorbs, or the end. A bookend moves it to the next
 * one. A call for a later section reads through the earlier ones, so they are checked even if the
 * caller skips them. */
#include "chunker/shard.h"

#include <string.h>

#include "base/little_endian.h"
#include "chunker/chunk_hash.h"

enum { IN_FILES, IN_XORBS, AT_END };
enum { VERSION = 2, FOOTER_VERSION = 1, DEDUP_MODULO = 1024 };
enum { /* places in records */
	AT_VERSION = 32,
	AT_FOOTER_BYTES = 40,
	AT_FLAGS = 32,
	AT_COUNT = 36,
	AT_TERM_BYTES = 36,
	AT_TERM_FIRST = 40,
	AT_TERM_END = 44,
	AT_XORB_BYTES = 40,
	AT_CHUNK_OFFSET = 32,
	AT_CHUNK_SIZE = 36,
	AT_CHUNK_FLAGS = 40
};
enum { /* places in the footer */
	AT_FILES = 8,
	AT_XORBS = 16,
	AT_FILE_LOOKUP = 24,
	AT_XORB_LOOKUP = 40,
	AT_CHUNK_LOOKUP = 56,
	AT_KEY = 72,
	AT_CREATED = 104,
	AT_EXPIRES = 112,
	AT_STORED = 184,
	AT_FOOTER = 192
};
static const uint32_t FLAG_RANGES = UINT32_C(1) << 31;   /* file: range hashes follow its terms */
static const uint32_t FLAG_METADATA = UINT32_C(1) << 30; /* file: one more record follows */
static const uint32_t FLAG_DEDUP = UINT32_C(1) << 31;    /* chunk: clients may ask for it */

static const uint8_t tag[32] = {
	'H',
	'F',
	'R',
	'e',
	'p',
	'o',
	'M',
	'e',
	't',
	'a',
	'D',
	'a',
	't',
	'a',
	0x00,
	0x55,
	0x69,
	0x67,
	0x45,
	0x6a,
	0x7b,
	0x81,
	0x57,
	0x83,
	0xa5,
	0xbd,
	0xd9,
	0x5c,
	0xcd,
	0xd1,
	0x4a,
	0xa9,
};

static const uint8_t *take(struct shard_reader *reader, uint64_t count);
static int is_cut_off(const struct shard_reader *reader, const char *what, struct error *err);
static bool is_bookend(const uint8_t *record);
static uint32_t read_u32(const uint8_t *record, int at);
static struct chunk_id read_id(const uint8_t *record);
static void put_id(uint8_t *record, const struct chunk_id *id);
static void put_u32(uint8_t *record, int at, uint32_t value);
static void write_xorb(struct buffer *out, const struct chunk_id *hash,
	const struct chunk_entry *chunks, uint32_t count, const uint8_t *key);
static uint32_t total_of(const struct chunk_entry *chunks, uint32_t count);
static void write_footer(
	struct buffer *out, const struct shard_answer *answer, size_t start, uint64_t stored);

int shard_reader_open(struct shard_reader *reader, struct span bytes, struct error *err)
{
	*reader = (struct shard_reader){.bytes = bytes, .section = IN_FILES};
	const uint8_t *const header = bytes.len < SHARD_RECORD_BYTES ? NULL : take(reader, 1);
	if (header == NULL)
		return is_cut_off(reader, "its header", err);
	if (memcmp(header, tag, sizeof(tag)) != 0)
		return error_set(err, ERROR_INVALID,
			"The body is not a shard: it must begin with a shard's tag.");
	const uint64_t version = little_endian_get(header + AT_VERSION, 8);
	if (version != VERSION)
		return error_set(err, ERROR_INVALID,
			"The shard has version %llu; only version 2 is read.",
			(unsigned long long)version);
	reader->footer_bytes = little_endian_get(header + AT_FOOTER_BYTES, 8);
	return 0;
}

size_t shard_reader_at(const struct shard_reader *reader)
{
	return reader->at;
}

int shard_reader_file(struct shard_reader *reader, struct shard_file *out, struct error *err)
{
	if (reader->section != IN_FILES)
		return 0;
	const uint8_t *const header = take(reader, 1);
	if (header == NULL)
		return is_cut_off(reader, "its files", err);
	if (is_bookend(header)) {
		reader->section = IN_XORBS;
		return 0;
	}
	const uint32_t flags = read_u32(header, AT_FLAGS);
	*out = (struct shard_file){.hash = read_id(header),
		.term_count = read_u32(header, AT_COUNT),
		.has_ranges = (flags & FLAG_RANGES) != 0};
	const uint64_t count = out->term_count;
	const uint8_t *const terms = take(reader, count);
	const uint8_t *const ranges =
		terms == NULL ? NULL : take(reader, out->has_ranges ? count : 0);
	if (ranges == NULL || take(reader, (flags & FLAG_METADATA) != 0 ? 1 : 0) == NULL)
		return is_cut_off(reader, "a file of it", err);
	out->terms = span_of(terms, (size_t)count * SHARD_RECORD_BYTES);
	out->ranges = span_of(ranges, out->has_ranges ? (size_t)count * SHARD_RECORD_BYTES : 0);
	return 1;
}

struct shard_term shard_file_term(const struct shard_file *file, uint32_t index)
{
	ASSERT(index < file->term_count);
	const uint8_t *const record = file->terms.data + (size_t)index * SHARD_RECORD_BYTES;
	return (struct shard_term){
		.xorb = read_id(record),
		.first = read_u32(record, AT_TERM_FIRST),
		.end = read_u32(record, AT_TERM_END),
		.bytes = read_u32(record, AT_TERM_BYTES),
	};
}

struct chunk_id shard_file_range(const struct shard_file *file, uint32_t index)
{
	ASSERT(file->has_ranges && index < file->term_count);
	return read_id(file->ranges.data + (size_t)index * SHARD_RECORD_BYTES);
}

int shard_reader_xorb(struct shard_reader *reader, struct shard_xorb *out, struct error *err)
{
	struct shard_file skipped;
	int got;
	while ((got = shard_reader_file(reader, &skipped, err)) == 1) {
	}
	if (got < 0 || reader->section != IN_XORBS)
		return got;
	const uint8_t *const header = take(reader, 1);
	if (header == NULL)
		return is_cut_off(reader, "its xorbs", err);
	if (is_bookend(header)) {
		reader->section = AT_END;
		return 0;
	}
	*out = (struct shard_xorb){.hash = read_id(header),
		.chunk_count = read_u32(header, AT_COUNT),
		.bytes = read_u32(header, AT_XORB_BYTES)};
	const uint8_t *const chunks = take(reader, out->chunk_count);
	if (chunks == NULL)
		return is_cut_off(reader, "a xorb of it", err);
	out->chunks = span_of(chunks, (size_t)out->chunk_count * SHARD_RECORD_BYTES);
	return 1;
}

struct shard_chunk shard_xorb_chunk(const struct shard_xorb *xorb, uint32_t index)
{
	ASSERT(index < xorb->chunk_count);
	const uint8_t *const record = xorb->chunks.data + (size_t)index * SHARD_RECORD_BYTES;
	return (struct shard_chunk){
		.id = read_id(record),
		.offset = read_u32(record, AT_CHUNK_OFFSET),
		.size = read_u32(record, AT_CHUNK_SIZE),
	};
}

int shard_reader_end(struct shard_reader *reader, struct error *err)
{
	struct shard_xorb skipped;
	int got;
	while ((got = shard_reader_xorb(reader, &skipped, err)) == 1) {
	}
	if (got < 0)
		return -1;
	const size_t left = reader->bytes.len - reader->at;
	if (left == 0 && reader->footer_bytes == SHARD_FOOTER_BYTES)
		return 0; /* hf_xet before 1.3 announces one and sends none */
	if (left < reader->footer_bytes)
		return is_cut_off(reader, "its footer", err);
	if (reader->footer_bytes == 0 && left > 0)
		return error_set(err, ERROR_INVALID,
			"The shard has %zu bytes more than its sections and no footer.", left);
	return 0;
}

int shard_reader_answer(struct shard_reader *reader, struct shard_answer *out, struct error *err)
{
	if (shard_reader_end(reader, err) != 0)
		return -1;
	if (reader->footer_bytes != SHARD_FOOTER_BYTES ||
		reader->bytes.len - reader->at < SHARD_FOOTER_BYTES)
		return error_set(
			err, ERROR_INVALID, "The shard has no footer, which an answer must have.");
	const uint8_t *const footer = reader->bytes.data + reader->bytes.len - SHARD_FOOTER_BYTES;
	const uint64_t version = little_endian_get(footer, 8);
	const uint64_t created = little_endian_get(footer + AT_CREATED, 8);
	const uint64_t expires = little_endian_get(footer + AT_EXPIRES, 8);
	if (version != FOOTER_VERSION)
		return error_set(err, ERROR_INVALID,
			"The shard's footer has version %llu; only version 1 is read.",
			(unsigned long long)version);
	memcpy(out->key, footer + AT_KEY, SHARD_KEY_BYTES);
	out->created_s = created > INT64_MAX ? INT64_MAX : (int64_t)created;
	out->expires_s = expires > INT64_MAX ? INT64_MAX : (int64_t)expires;
	return 0;
}

void shard_write_header(struct buffer *out, uint64_t footer_bytes)
{
	uint8_t record[SHARD_RECORD_BYTES];
	memcpy(record, tag, sizeof(tag));
	little_endian_put(record + AT_VERSION, VERSION, 8);
	little_endian_put(record + AT_FOOTER_BYTES, footer_bytes, 8);
	buffer_add(out, record, sizeof(record));
}

void shard_write_file(struct buffer *out, const struct chunk_id *hash,
	const struct shard_term *terms, const struct chunk_id *ranges, uint32_t count)
{
	ASSERT(count == 0 || (terms != NULL && ranges != NULL));
	uint8_t header[SHARD_RECORD_BYTES] = {0};
	put_id(header, hash);
	put_u32(header, AT_FLAGS, FLAG_RANGES);
	put_u32(header, AT_COUNT, count);
	buffer_add(out, header, sizeof(header));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t record[SHARD_RECORD_BYTES] = {0};
		put_id(record, &terms[i].xorb);
		put_u32(record, AT_TERM_BYTES, terms[i].bytes);
		put_u32(record, AT_TERM_FIRST, terms[i].first);
		put_u32(record, AT_TERM_END, terms[i].end);
		buffer_add(out, record, sizeof(record));
	}
	for (uint32_t i = 0; i < count; i++) {
		uint8_t record[SHARD_RECORD_BYTES] = {0};
		put_id(record, &ranges[i]);
		buffer_add(out, record, sizeof(record));
	}
}

void shard_write_xorb(struct buffer *out, const struct chunk_id *hash,
	const struct chunk_entry *chunks, uint32_t count)
{
	write_xorb(out, hash, chunks, count, NULL);
}

void shard_write_bookend(struct buffer *out)
{
	uint8_t record[SHARD_RECORD_BYTES] = {0};
	memset(record, 0xff, CHUNK_ID_BYTES);
	buffer_add(out, record, sizeof(record));
}

void shard_write_answer(struct buffer *out, const struct shard_answer *answer,
	const struct chunk_id *hash, const struct chunk_entry *chunks, uint32_t count)
{
	static const uint8_t no_key[SHARD_KEY_BYTES];
	const bool is_keyed = memcmp(answer->key, no_key, sizeof(no_key)) != 0;
	const size_t start = out->len;
	shard_write_header(out, SHARD_FOOTER_BYTES);
	shard_write_bookend(out);
	write_xorb(out, hash, chunks, count, is_keyed ? answer->key : NULL);
	shard_write_bookend(out);
	write_footer(out, answer, start, total_of(chunks, count));
}

/* Passes over the next `count` records and returns them; NULL when the shard is too short. */
static const uint8_t *take(struct shard_reader *reader, uint64_t count)
{
	ASSERT(reader->at <= reader->bytes.len);
	const uint8_t *const at = reader->bytes.data + reader->at;
	if (count > (reader->bytes.len - reader->at) / SHARD_RECORD_BYTES)
		return NULL;
	reader->at += (size_t)count * SHARD_RECORD_BYTES;
	return at;
}

static int is_cut_off(const struct shard_reader *reader, const char *what, struct error *err)
{
	return error_set(err, ERROR_INVALID, "The shard of %zu bytes ends within %s.",
		reader->bytes.len, what);
}

static bool is_bookend(const uint8_t *record)
{
	for (size_t i = 0; i < CHUNK_ID_BYTES; i++)
		if (record[i] != 0xff)
			return false;
	return true;
}

static uint32_t read_u32(const uint8_t *record, int at)
{
	return (uint32_t)little_endian_get(record + at, 4);
}

static struct chunk_id read_id(const uint8_t *record)
{
	struct chunk_id id;
	memcpy(id.bytes, record, CHUNK_ID_BYTES);
	return id;
}

static void put_id(uint8_t *record, const struct chunk_id *id)
{
	memcpy(record, id->bytes, CHUNK_ID_BYTES);
}

static void put_u32(uint8_t *record, int at, uint32_t value)
{
	little_endian_put(record + at, value, 4);
}

/* `key` NULL writes the ids as they are. */
static void write_xorb(struct buffer *out, const struct chunk_id *hash,
	const struct chunk_entry *chunks, uint32_t count, const uint8_t *key)
{
	uint8_t header[SHARD_RECORD_BYTES] = {0};
	put_id(header, hash);
	put_u32(header, AT_COUNT, count);
	put_u32(header, AT_XORB_BYTES, total_of(chunks, count));
	buffer_add(out, header, sizeof(header));
	uint32_t offset = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint8_t record[SHARD_RECORD_BYTES] = {0};
		const struct chunk_id id = key == NULL
			? chunks[i].id
			: chunk_hash_keyed(key, span_of(chunks[i].id.bytes, CHUNK_ID_BYTES));
		const bool is_asked_for = chunk_id_modulo_word(&chunks[i].id) % DEDUP_MODULO == 0;
		put_id(record, &id);
		put_u32(record, AT_CHUNK_OFFSET, offset);
		put_u32(record, AT_CHUNK_SIZE, (uint32_t)chunks[i].size);
		put_u32(record, AT_CHUNK_FLAGS, is_asked_for ? FLAG_DEDUP : 0);
		buffer_add(out, record, sizeof(record));
		offset += (uint32_t)chunks[i].size;
	}
}

static uint32_t total_of(const struct chunk_entry *chunks, uint32_t count)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < count; i++)
		total += chunks[i].size;
	ASSERT(total <= UINT32_MAX); /* a xorb has at most 64 MiB */
	return (uint32_t)total;
}

/* The answer has no lookup tables, so their places are all that of the footer. */
static void write_footer(
	struct buffer *out, const struct shard_answer *answer, size_t start, uint64_t stored)
{
	static const int lookups[] = {AT_FILE_LOOKUP, AT_XORB_LOOKUP, AT_CHUNK_LOOKUP};
	uint8_t footer[SHARD_FOOTER_BYTES] = {0};
	const uint64_t at = out->len - start;
	little_endian_put(footer, FOOTER_VERSION, 8);
	little_endian_put(footer + AT_FILES, SHARD_RECORD_BYTES, 8);
	little_endian_put(footer + AT_XORBS, 2 * SHARD_RECORD_BYTES, 8);
	for (size_t i = 0; i < sizeof(lookups) / sizeof(lookups[0]); i++)
		little_endian_put(footer + lookups[i], at, 8);
	memcpy(footer + AT_KEY, answer->key, SHARD_KEY_BYTES);
	little_endian_put(footer + AT_CREATED, (uint64_t)answer->created_s, 8);
	little_endian_put(footer + AT_EXPIRES, (uint64_t)answer->expires_s, 8);
	little_endian_put(footer + AT_STORED, stored, 8);
	little_endian_put(footer + AT_FOOTER, at, 8);
	buffer_add(out, footer, sizeof(footer));
}
