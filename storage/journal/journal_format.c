#include "storage/journal/journal_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/little_endian.h"

enum { VERSION = 1, RECORD_MAGIC = 0x524a4244, RECORD_HEAD_BYTES = 32, NUMBER_DIGITS = 16 };

static const char magics[][9] = {[JOURNAL_LOG] = "DBKTJRNL", [JOURNAL_SNAPSHOT] = "DBKTSNAP"};
static const char suffixes[][10] = {[JOURNAL_LOG] = ".log", [JOURNAL_SNAPSHOT] = ".snapshot"};

static void encode_head(const struct journal_record *record, uint8_t out[RECORD_HEAD_BYTES]);
static struct digest128 digest_of(
	const uint8_t head[RECORD_HEAD_BYTES], const struct digest128 *before, struct span rows);

bool journal_point_equal(const struct journal_point *a, const struct journal_point *b)
{
	return a->change == b->change && digest128_equal(&a->digest, &b->digest);
}

void journal_header_encode(enum journal_kind kind, const struct journal_header *header,
	uint8_t out[JOURNAL_HEADER_BYTES])
{
	memcpy(out, magics[kind], 8);
	little_endian_put(out + 8, VERSION, 2);
	little_endian_put(out + 10, VERSION, 2);
	little_endian_put(out + 12, header->schema, 4);
	memcpy(out + 16, header->store, JOURNAL_STORE_BYTES);
	little_endian_put(out + 32, header->life, 8);
	little_endian_put(out + 40, (uint64_t)header->point.change, 8);
	memcpy(out + 48, header->point.digest.bytes, 16);
	little_endian_put(out + 64, header->number, 8);
	little_endian_put(out + 72, (uint64_t)header->made_ms, 8);
	little_endian_put(out + 80, header->is_anew, 8);
	little_endian_put(out + 88, xxh3_64(span_of(out, 88)), 8);
}

int journal_header_decode(enum journal_kind kind, const uint8_t bytes[JOURNAL_HEADER_BYTES],
	struct journal_header *out, struct error *err)
{
	if (memcmp(bytes, magics[kind], 8) != 0 ||
		little_endian_get(bytes + 88, 8) != xxh3_64(span_of(bytes, 88)))
		return error_set(err, ERROR_CORRUPT, "its header is damaged.");
	if (little_endian_get(bytes + 8, 2) > VERSION)
		return error_set(err, ERROR_UNSUPPORTED, "a newer program made it.");
	out->schema = (uint32_t)little_endian_get(bytes + 12, 4);
	memcpy(out->store, bytes + 16, JOURNAL_STORE_BYTES);
	out->life = little_endian_get(bytes + 32, 8);
	out->point.change = (int64_t)little_endian_get(bytes + 40, 8);
	memcpy(out->point.digest.bytes, bytes + 48, 16);
	out->number = little_endian_get(bytes + 64, 8);
	out->made_ms = (int64_t)little_endian_get(bytes + 72, 8);
	out->is_anew = little_endian_get(bytes + 80, 8) != 0;
	return 0;
}

void journal_record_encode(struct journal_record *record, const struct digest128 *before,
	struct span rows, uint8_t out[JOURNAL_RECORD_BYTES])
{
	ASSERT(rows.len == record->bytes);
	encode_head(record, out);
	record->digest = digest_of(out, before, rows);
	memcpy(out + RECORD_HEAD_BYTES, record->digest.bytes, 16);
}

bool journal_record_decode(const uint8_t bytes[JOURNAL_RECORD_BYTES], struct journal_record *out)
{
	out->bytes = (uint32_t)little_endian_get(bytes + 4, 4);
	out->change = (int64_t)little_endian_get(bytes + 8, 8);
	out->sums = little_endian_get(bytes + 16, 8);
	out->made_ms = (int64_t)little_endian_get(bytes + 24, 8);
	memcpy(out->digest.bytes, bytes + RECORD_HEAD_BYTES, 16);
	return little_endian_get(bytes, 4) == RECORD_MAGIC;
}

bool journal_record_holds(
	const struct journal_record *record, const struct digest128 *before, struct span rows)
{
	uint8_t head[RECORD_HEAD_BYTES];
	encode_head(record, head);
	const struct digest128 digest = digest_of(head, before, rows);
	return digest128_equal(&digest, &record->digest);
}

void journal_frame_encode(const struct journal_frame *frame, uint8_t out[JOURNAL_FRAME_BYTES])
{
	little_endian_put(out, frame->stored, 4);
	little_endian_put(out + 4, frame->rows, 4);
	little_endian_put(out + 8, frame->sum, 8);
}

void journal_frame_decode(const uint8_t bytes[JOURNAL_FRAME_BYTES], struct journal_frame *out)
{
	out->stored = (uint32_t)little_endian_get(bytes, 4);
	out->rows = (uint32_t)little_endian_get(bytes + 4, 4);
	out->sum = little_endian_get(bytes + 8, 8);
}

void journal_tail_encode(const struct journal_tail *tail, uint8_t out[JOURNAL_TAIL_BYTES])
{
	little_endian_put(out, tail->frames, 8);
	little_endian_put(out + 8, tail->rows, 8);
	little_endian_put(out + 16, tail->sums, 8);
	little_endian_put(out + 24, xxh3_64(span_of(out, 24)), 8);
}

bool journal_tail_decode(const uint8_t bytes[JOURNAL_TAIL_BYTES], struct journal_tail *out)
{
	out->frames = little_endian_get(bytes, 8);
	out->rows = little_endian_get(bytes + 8, 8);
	out->sums = little_endian_get(bytes + 16, 8);
	return little_endian_get(bytes + 24, 8) == xxh3_64(span_of(bytes, 24));
}

void journal_name_print(enum journal_kind kind, uint64_t number, char out[JOURNAL_NAME_BYTES])
{
	snprintf(out, JOURNAL_NAME_BYTES, "%016" PRIx64 "%s", number, suffixes[kind]);
}

bool journal_name_parse(const char *name, enum journal_kind *out_kind, uint64_t *out_number)
{
	uint64_t number = 0;
	for (int i = 0; i < NUMBER_DIGITS; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = name[i] == '\0' ? NULL : strchr(digits, name[i]);
		if (digit == NULL)
			return false;
		number = number << 4 | (uint64_t)(digit - digits);
	}
	*out_number = number;
	*out_kind = strcmp(name + NUMBER_DIGITS, suffixes[JOURNAL_LOG]) == 0 ? JOURNAL_LOG
									     : JOURNAL_SNAPSHOT;
	return strcmp(name + NUMBER_DIGITS, suffixes[*out_kind]) == 0;
}

static void encode_head(const struct journal_record *record, uint8_t out[RECORD_HEAD_BYTES])
{
	little_endian_put(out, RECORD_MAGIC, 4);
	little_endian_put(out + 4, record->bytes, 4);
	little_endian_put(out + 8, (uint64_t)record->change, 8);
	little_endian_put(out + 16, record->sums, 8);
	little_endian_put(out + 24, (uint64_t)record->made_ms, 8);
}

static struct digest128 digest_of(
	const uint8_t head[RECORD_HEAD_BYTES], const struct digest128 *before, struct span rows)
{
	uint8_t all[RECORD_HEAD_BYTES + 2 * 16];
	const struct digest128 rows_digest = xxh3_128(rows);
	memcpy(all, before->bytes, 16);
	memcpy(all + 16, head, RECORD_HEAD_BYTES);
	memcpy(all + 16 + RECORD_HEAD_BYTES, rows_digest.bytes, 16);
	return xxh3_128(span_of(all, sizeof(all)));
}
