/* Fields are little-endian at fixed places. Headers and footers end with an XXH3-64 of the bytes
 * before it, which the readers check. */
#include "storage/packs/pack_format.h"

#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/little_endian.h"
#include "chunker/codec.h"

static const char pack_magic[8] = "DBKTPACK";
static const char xorb_magic[8] = "DBKTXORB";
static const char *const pack_suffixes[] = {
	[PACK_FILE_PACK] = ".pack", [PACK_FILE_INDEX] = ".index"};

/* Places in the header. */
enum { LIFE_AT = 12, PACK_AT = 16, FILE_AT = 32, STORE_AT = 48, SUM_AT = 56 };

static void put_header(const struct pack_id *pack, const struct pack_origin *origin,
	unsigned version, uint8_t out[PACK_HEADER_BYTES]);
static void sum_header(uint8_t out[PACK_HEADER_BYTES]);
static bool sum_is_right(const uint8_t header[PACK_HEADER_BYTES]);
static int check_header(const uint8_t header[PACK_HEADER_BYTES], const struct pack_id *pack,
	unsigned expected, struct error *err);

void pack_format_put_header(const struct pack_id *pack, const struct pack_origin *origin,
	uint8_t out[PACK_HEADER_BYTES])
{
	put_header(pack, origin, PACK_GROWN_VERSION, out);
	sum_header(out);
}

void pack_format_put_compacted_header(const struct pack_id *pack, const struct pack_id *file,
	const struct pack_origin *origin, uint8_t out[PACK_HEADER_BYTES])
{
	put_header(pack, origin, PACK_COMPACTED_VERSION, out);
	memcpy(out + FILE_AT, file->bytes, PACK_ID_BYTES);
	sum_header(out);
}

bool pack_format_read_origin(const uint8_t header[PACK_HEADER_BYTES], struct pack_origin *out)
{
	if (memcmp(header, pack_magic, sizeof(pack_magic)) != 0 || !sum_is_right(header))
		return false;
	memcpy(out->store, header + STORE_AT, PACK_STORE_BYTES);
	out->life = (uint32_t)little_endian_get(header + LIFE_AT, 4);
	return true;
}

int pack_format_check_header(
	const uint8_t header[PACK_HEADER_BYTES], const struct pack_id *pack, struct error *err)
{
	return check_header(header, pack, PACK_GROWN_VERSION, err);
}

struct pack_id pack_format_read_pack(const uint8_t header[PACK_HEADER_BYTES])
{
	struct pack_id pack;
	memcpy(pack.bytes, header + PACK_AT, PACK_ID_BYTES);
	return pack;
}

int pack_format_check_compacted_header(const uint8_t header[PACK_HEADER_BYTES],
	const struct pack_id *pack, const struct pack_id *file, struct error *err)
{
	if (check_header(header, pack, PACK_COMPACTED_VERSION, err) != 0)
		return -1;
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	if (memcmp(header + FILE_AT, file->bytes, PACK_ID_BYTES) != 0)
		return error_set(
			err, ERROR_CORRUPT, "the header of pack %s names another file.", text);
	return 0;
}

void pack_format_put_record_header(
	const struct pack_entry *entry, uint8_t out[PACK_RECORD_HEADER_BYTES])
{
	const struct xorb_record_header header = {
		.codec = entry->codec, .stored = entry->stored, .size = entry->size};
	xorb_record_put_header(&header, out);
}

bool pack_format_record_matches(
	const uint8_t header[PACK_RECORD_HEADER_BYTES], const struct pack_entry *entry)
{
	uint8_t expected[PACK_RECORD_HEADER_BYTES];
	pack_format_put_record_header(entry, expected);
	return memcmp(header, expected, sizeof(expected)) == 0;
}

void pack_format_put_entry(const struct pack_entry *entry, uint8_t out[PACK_ENTRY_BYTES])
{
	memcpy(out, entry->id.bytes, CHUNK_ID_BYTES);
	little_endian_put(out + 32, entry->checksum, 8);
	little_endian_put(out + 40, entry->stored, 3);
	out[43] = entry->codec;
	little_endian_put(out + 44, entry->size, 3);
	out[47] = 0;
}

bool pack_format_get_entry(const uint8_t from[PACK_ENTRY_BYTES], struct pack_entry *out)
{
	memcpy(out->id.bytes, from, CHUNK_ID_BYTES);
	out->checksum = little_endian_get(from + 32, 8);
	out->stored = (uint32_t)little_endian_get(from + 40, 3);
	out->codec = from[43];
	out->size = (uint32_t)little_endian_get(from + 44, 3);
	out->offset = 0;
	const bool lengths_fit = out->stored >= 1 && out->stored <= PACK_STORED_MAX_BYTES &&
		out->size >= 1 && out->size <= CHUNK_MAX_BYTES;
	return lengths_fit && codec_known(out->codec) &&
		(out->codec != CODEC_RAW || out->stored == out->size);
}

size_t pack_format_footer_bytes(uint32_t count)
{
	return PACK_FOOTER_FIXED_BYTES + (size_t)count * PACK_ENTRY_BYTES;
}

void pack_format_add_footer(
	struct buffer *out, const struct pack_footer *footer, const struct pack_entry *entries)
{
	ASSERT(footer->count >= 1 && footer->count <= XORB_MAX_CHUNKS);
	const size_t size = pack_format_footer_bytes(footer->count);
	uint8_t *const at = buffer_reserve(out, size);
	if (at == NULL)
		return;
	memcpy(at, xorb_magic, sizeof(xorb_magic));
	little_endian_put(at + 8, footer->count, 4);
	little_endian_put(at + 12, footer->record_bytes, 4);
	memcpy(at + 16, footer->hash.bytes, CHUNK_ID_BYTES);
	for (uint32_t i = 0; i < footer->count; i++)
		pack_format_put_entry(&entries[i], at + 48 + (size_t)i * PACK_ENTRY_BYTES);
	little_endian_put(at + size - 16, footer->count, 4);
	little_endian_put(at + size - 12, 0, 4);
	little_endian_put(at + size - 8, xxh3_64(span_of(at, size - 8)), 8);
	buffer_commit(out, size);
}

size_t pack_format_footer_size(const uint8_t tail[PACK_FOOTER_TAIL_BYTES])
{
	const uint64_t count = little_endian_get(tail, 4);
	const bool possible =
		count >= 1 && count <= XORB_MAX_CHUNKS && little_endian_get(tail + 4, 4) == 0;
	return possible ? pack_format_footer_bytes((uint32_t)count) : 0;
}

int pack_format_get_footer(
	struct span bytes, struct pack_footer *out, struct pack_entry *entries, struct error *err)
{
	if (bytes.len < PACK_FOOTER_FIXED_BYTES + PACK_ENTRY_BYTES ||
		memcmp(bytes.data, xorb_magic, sizeof(xorb_magic)) != 0)
		return error_set(
			err, ERROR_CORRUPT, "a xorb footer does not begin with its magic.");
	if (little_endian_get(bytes.data + bytes.len - 8, 8) !=
		xxh3_64(span_slice(bytes, 0, bytes.len - 8)))
		return error_set(err, ERROR_CORRUPT, "a xorb footer has a wrong checksum.");
	out->count = (uint32_t)little_endian_get(bytes.data + 8, 4);
	out->record_bytes = (uint32_t)little_endian_get(bytes.data + 12, 4);
	memcpy(out->hash.bytes, bytes.data + 16, CHUNK_ID_BYTES);
	if (out->count < 1 || out->count > XORB_MAX_CHUNKS ||
		pack_format_footer_bytes(out->count) != bytes.len)
		return error_set(err, ERROR_CORRUPT,
			"a xorb footer of %zu bytes cannot have %u chunks.", bytes.len, out->count);
	uint64_t total = 0;
	for (uint32_t i = 0; i < out->count; i++) {
		if (!pack_format_get_entry(
			    bytes.data + 48 + (size_t)i * PACK_ENTRY_BYTES, &entries[i]))
			return error_set(err, ERROR_CORRUPT,
				"entry %u of a xorb footer has an impossible length or codec.", i);
		total += PACK_RECORD_HEADER_BYTES + (uint64_t)entries[i].stored;
	}
	if (total != out->record_bytes)
		return error_set(err, ERROR_CORRUPT,
			"the records of a xorb footer add up to %llu bytes, not %u.",
			(unsigned long long)total, out->record_bytes);
	return 0;
}

uint64_t pack_format_piece_length(const uint8_t from[PACK_PIECE_BYTES], bool *out_ends_xorb)
{
	*out_ends_xorb = memcmp(from, xorb_magic, sizeof(xorb_magic)) == 0;
	if (*out_ends_xorb) {
		const uint32_t count = (uint32_t)little_endian_get(from + 8, 4);
		return count > XORB_MAX_CHUNKS ? 0 : pack_format_footer_bytes(count);
	}
	const uint32_t stored = (uint32_t)little_endian_get(from + 1, 3);
	return from[0] != 0 || stored == 0 || stored > PACK_STORED_MAX_BYTES
		? 0
		: PACK_RECORD_HEADER_BYTES + stored;
}

void pack_format_name(
	const struct pack_id *pack, enum pack_file_kind kind, char out[PACK_NAME_BYTES])
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	snprintf(out, PACK_NAME_BYTES, "%s%s", text, pack_suffixes[kind]);
}

bool pack_format_parse_name(
	const char *name, struct pack_id *out_pack, enum pack_file_kind *out_kind)
{
	const size_t digits = PACK_ID_TEXT_BYTES - 1;
	if (strlen(name) <= digits ||
		!decode_hex(span_of(name, digits), out_pack->bytes, PACK_ID_BYTES))
		return false;
	for (enum pack_file_kind kind = PACK_FILE_PACK; kind <= PACK_FILE_INDEX; kind++) {
		char expected[PACK_NAME_BYTES];
		pack_format_name(out_pack, kind, expected);
		if (strcmp(name, expected) == 0) {
			*out_kind = kind;
			return true;
		}
	}
	return false;
}

void pack_id_format(const struct pack_id *pack, char out[PACK_ID_TEXT_BYTES])
{
	encode_hex(span_of(pack->bytes, PACK_ID_BYTES), out);
}

bool pack_id_equal(const struct pack_id *a, const struct pack_id *b)
{
	return memcmp(a->bytes, b->bytes, PACK_ID_BYTES) == 0;
}

const struct pack_id *pack_record_file(const struct pack_record *record)
{
	static const struct pack_id none;
	return pack_id_equal(&record->file, &none) ? &record->id : &record->file;
}

static void put_header(const struct pack_id *pack, const struct pack_origin *origin,
	unsigned version, uint8_t out[PACK_HEADER_BYTES])
{
	memset(out, 0, PACK_HEADER_BYTES);
	memcpy(out, pack_magic, sizeof(pack_magic));
	little_endian_put(out + 8, version, 2);
	little_endian_put(out + 10, version, 2);
	little_endian_put(out + LIFE_AT, origin->life, 4);
	memcpy(out + PACK_AT, pack->bytes, PACK_ID_BYTES);
	memcpy(out + STORE_AT, origin->store, PACK_STORE_BYTES);
}

static void sum_header(uint8_t out[PACK_HEADER_BYTES])
{
	little_endian_put(out + SUM_AT, xxh3_64(span_of(out, SUM_AT)), 8);
}

static bool sum_is_right(const uint8_t header[PACK_HEADER_BYTES])
{
	return little_endian_get(header + SUM_AT, 8) == xxh3_64(span_of(header, SUM_AT));
}

static int check_header(const uint8_t header[PACK_HEADER_BYTES], const struct pack_id *pack,
	unsigned expected, struct error *err)
{
	char text[PACK_ID_TEXT_BYTES];
	pack_id_format(pack, text);
	if (memcmp(header, pack_magic, sizeof(pack_magic)) != 0)
		return error_set(
			err, ERROR_CORRUPT, "pack %s does not begin with a pack header.", text);
	const unsigned version = (unsigned)little_endian_get(header + 8, 2);
	if (!sum_is_right(header))
		return error_set(
			err, ERROR_CORRUPT, "the header of pack %s has a wrong checksum.", text);
	if (version > PACK_COMPACTED_VERSION)
		return error_set(err, ERROR_UNSUPPORTED,
			"pack %s has format version %u; this program reads up to %d.", text,
			version, PACK_COMPACTED_VERSION);
	if (version != expected)
		return error_set(err, ERROR_CORRUPT,
			"pack %s has format version %u, but the catalog expects %u.", text, version,
			expected);
	if (memcmp(header + PACK_AT, pack->bytes, PACK_ID_BYTES) != 0)
		return error_set(
			err, ERROR_CORRUPT, "the header of pack %s names another pack.", text);
	return 0;
}
