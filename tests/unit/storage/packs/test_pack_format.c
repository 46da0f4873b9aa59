#include "storage/packs/pack_format.h"

#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/codec.h"
#include "tests/unit/unit.h"

static const struct pack_id pack = {{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
	0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};

static struct pack_entry entry_of(unsigned number)
{
	struct pack_entry entry = {.checksum = UINT64_C(0x0102030405060708) + number,
		.stored = 100 + number,
		.size = 70000 + number,
		.codec = CODEC_ZSTD};
	memset(entry.id.bytes, (int)(0xa0 + number), sizeof entry.id.bytes);
	return entry;
}

static void expect_hex(const uint8_t *bytes, size_t len, const char *hex)
{
	char *const got = memory_new(2 * len + 1);
	encode_hex(span_of(bytes, len), got);
	ck_assert_str_eq(got, hex);
	free(got);
}

static const struct pack_origin origin = {
	.store = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7}, .life = 0x01020304};

START_TEST(the_header_is_as_documented)
{
	uint8_t header[PACK_HEADER_BYTES];
	struct error err = {0};
	pack_format_put_header(&pack, &origin, header);
	expect_hex(header, 56,
		"44424b545041434b"
		"0100"
		"0100"
		"04030201"
		"00112233445566778899aabbccddeeff"
		"00000000000000000000000000000000"
		"a0a1a2a3a4a5a6a7");
	const uint64_t sum = xxh3_64(span_of(header, 56));
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(header[56 + i], (uint8_t)(sum >> (8 * i)));
	ck_assert_int_eq(pack_format_check_header(header, &pack, &err), 0);
	struct pack_origin found = {0};
	ck_assert(pack_format_read_origin(header, &found));
	ck_assert_int_eq(memcmp(found.store, origin.store, sizeof found.store), 0);
	ck_assert_uint_eq(found.life, origin.life);
}
END_TEST

START_TEST(a_changed_header_is_refused)
{
	uint8_t header[PACK_HEADER_BYTES];
	for (size_t i = 0; i < sizeof header; i++) {
		struct error err = {0};
		pack_format_put_header(&pack, &origin, header);
		header[i] ^= 1;
		struct pack_origin ignored;
		ck_assert(!pack_format_read_origin(header, &ignored));
		ck_assert_int_eq(pack_format_check_header(header, &pack, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT); /* also where it changes the version */
	}
	struct error err = {0};
	pack_format_put_header(&pack, &origin, header);
	header[8] = 3;
	little_endian_put(header + 56, xxh3_64(span_of(header, 56)), 8);
	ck_assert_int_eq(pack_format_check_header(header, &pack, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	struct pack_id other = pack;
	other.bytes[15] ^= 1;
	pack_format_put_header(&pack, &origin, header);
	ck_assert_int_eq(pack_format_check_header(header, &other, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

/* hub-xet 4.2: the record of "Hello World!" begins 00 0c0000 00 0c0000. */
START_TEST(a_record_has_the_xet_form)
{
	const struct pack_entry entry = {.stored = 12, .size = 12, .codec = CODEC_RAW};
	uint8_t header[PACK_RECORD_HEADER_BYTES];
	pack_format_put_record_header(&entry, header);
	expect_hex(header, sizeof header, "000c0000000c0000");
	ck_assert(pack_format_record_matches(header, &entry));
	for (size_t i = 0; i < sizeof header; i++) {
		header[i] ^= 0x40;
		ck_assert(!pack_format_record_matches(header, &entry));
		header[i] ^= 0x40;
	}
}
END_TEST

static const struct {
	uint32_t stored;
	uint32_t size;
	uint8_t codec;
	bool fine;
} lengths[] = {
	{1, 1, CODEC_RAW, true},
	{CHUNK_MAX_BYTES, CHUNK_MAX_BYTES, CODEC_RAW, true},
	{PACK_STORED_MAX_BYTES, CHUNK_MAX_BYTES, CODEC_LZ4, true},
	{5, 100, CODEC_PLANES4, true},
	{0, 1, CODEC_LZ4, false},
	{1, 0, CODEC_LZ4, false},
	{PACK_STORED_MAX_BYTES + 1, CHUNK_MAX_BYTES, CODEC_LZ4, false},
	{1, CHUNK_MAX_BYTES + 1, CODEC_LZ4, false},
	{5, 6, CODEC_RAW, false},
	{5, 6, 3, false},
	{5, 6, 99, false},
	{5, 6, 255, false},
};

START_TEST(entries_with_impossible_lengths_are_refused)
{
	const struct pack_entry entry = {
		.stored = lengths[_i].stored, .size = lengths[_i].size, .codec = lengths[_i].codec};
	uint8_t bytes[PACK_ENTRY_BYTES];
	struct pack_entry got;
	pack_format_put_entry(&entry, bytes);
	ck_assert_int_eq(pack_format_get_entry(bytes, &got), lengths[_i].fine);
	if (lengths[_i].fine) {
		ck_assert_uint_eq(got.stored, entry.stored);
		ck_assert_uint_eq(got.size, entry.size);
		ck_assert_uint_eq(got.codec, entry.codec);
	}
}
END_TEST

static void make_footer(struct buffer *out, struct pack_entry *entries, struct pack_footer *footer)
{
	footer->count = 2;
	footer->record_bytes = 8 + 100 + 8 + 101;
	memset(footer->hash.bytes, 0x5a, sizeof footer->hash.bytes);
	entries[0] = entry_of(0);
	entries[1] = entry_of(1);
	buffer_init(out, 4096);
	pack_format_add_footer(out, footer, entries);
}

START_TEST(a_footer_is_as_documented)
{
	struct buffer bytes;
	struct pack_entry entries[2];
	struct pack_footer footer;
	make_footer(&bytes, entries, &footer);
	ck_assert_uint_eq(bytes.len, 64 + 2 * 48);
	expect_hex(bytes.data, 48,
		"44424b54584f5242"
		"02000000"
		"d9000000"
		"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a");
	expect_hex(bytes.data + 48, 48,
		"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0"
		"0807060504030201"
		"640000"
		"40"
		"701101"
		"00");
	expect_hex(bytes.data + 48 + 96, 8,
		"02000000"
		"00000000");
	ck_assert_uint_eq(pack_format_footer_size(bytes.data + bytes.len - PACK_FOOTER_TAIL_BYTES),
		bytes.len);
	struct error err = {0};
	struct pack_footer got;
	struct pack_entry *const read = memory_new_array(XORB_MAX_CHUNKS, sizeof *read);
	ck_assert_int_eq(pack_format_get_footer(buffer_span(&bytes), &got, read, &err), 0);
	ck_assert_uint_eq(got.count, 2);
	ck_assert_uint_eq(got.record_bytes, footer.record_bytes);
	ck_assert_mem_eq(&got.hash, &footer.hash, sizeof got.hash);
	ck_assert_mem_eq(&read[1].id, &entries[1].id, sizeof entries[1].id);
	ck_assert_uint_eq(read[1].checksum, entries[1].checksum);
	free(read);
	buffer_release(&bytes);
}
END_TEST

START_TEST(any_changed_or_missing_byte_of_a_footer_is_corrupt)
{
	struct buffer bytes;
	struct pack_entry entries[2];
	struct pack_footer footer;
	make_footer(&bytes, entries, &footer);
	struct pack_entry *const read = memory_new_array(XORB_MAX_CHUNKS, sizeof *read);
	for (size_t i = 0; i < bytes.len; i++) {
		struct error err = {0};
		struct pack_footer got;
		bytes.data[i] ^= 0x80;
		ck_assert_int_eq(pack_format_get_footer(buffer_span(&bytes), &got, read, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		bytes.data[i] ^= 0x80;
		ck_assert_int_eq(
			pack_format_get_footer(span_of(bytes.data, i), &got, read, &err), -1);
	}
	free(read);
	buffer_release(&bytes);
}
END_TEST

/* A footer with a right checksum may still be wrong. */
START_TEST(a_footer_must_add_up)
{
	struct buffer bytes;
	struct pack_entry entries[2];
	struct pack_footer footer;
	make_footer(&bytes, entries, &footer);
	buffer_reset(&bytes);
	footer.record_bytes++;
	pack_format_add_footer(&bytes, &footer, entries);
	struct error err = {0};
	struct pack_footer got;
	struct pack_entry *const read = memory_new_array(XORB_MAX_CHUNKS, sizeof *read);
	ck_assert_int_eq(pack_format_get_footer(buffer_span(&bytes), &got, read, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	free(read);
	buffer_release(&bytes);
	const uint8_t no_chunks[PACK_FOOTER_TAIL_BYTES] = {0};
	const uint8_t too_many[PACK_FOOTER_TAIL_BYTES] = {1, 0x20};
	const uint8_t not_zero[PACK_FOOTER_TAIL_BYTES] = {1, 0, 0, 0, 1};
	ck_assert_uint_eq(pack_format_footer_size(no_chunks), 0);
	ck_assert_uint_eq(pack_format_footer_size(too_many), 0);
	ck_assert_uint_eq(pack_format_footer_size(not_zero), 0);
}
END_TEST

static const struct {
	const char *name;
	bool fine;
	enum pack_file_kind kind;
} names[] = {
	{"00112233445566778899aabbccddeeff.pack", true, PACK_FILE_PACK},
	{"00112233445566778899aabbccddeeff.index", true, PACK_FILE_INDEX},
	{"00112233445566778899AABBCCDDEEFF.pack", false, PACK_FILE_PACK},
	{"00112233445566778899aabbccddeeff.packs", false, PACK_FILE_PACK},
	{"00112233445566778899aabbccddeeff", false, PACK_FILE_PACK},
	{"00112233445566778899aabbccddee.pack", false, PACK_FILE_PACK},
	{"00112233445566778899aabbccddeegg.pack", false, PACK_FILE_PACK},
	{"00112233445566778899aabbccddeeff.index.tmp-1", false, PACK_FILE_PACK},
	{"lost+found", false, PACK_FILE_PACK},
	{"", false, PACK_FILE_PACK},
};

START_TEST(names_are_parsed_strictly)
{
	struct pack_id id;
	enum pack_file_kind kind;
	ck_assert_int_eq(pack_format_parse_name(names[_i].name, &id, &kind), names[_i].fine);
	if (!names[_i].fine)
		return;
	char name[PACK_NAME_BYTES];
	ck_assert(pack_id_equal(&id, &pack));
	ck_assert_int_eq(kind, names[_i].kind);
	pack_format_name(&id, kind, name);
	ck_assert_str_eq(name, names[_i].name);
}
END_TEST

Suite *test_pack_format_suite(void);
Suite *test_pack_format_suite(void)
{
	Suite *const suite = suite_create("pack_format");
	TCase *const tcase = tcase_create("pack_format");
	tcase_add_test(tcase, the_header_is_as_documented);
	tcase_add_test(tcase, a_changed_header_is_refused);
	tcase_add_test(tcase, a_record_has_the_xet_form);
	tcase_add_loop_test(tcase, entries_with_impossible_lengths_are_refused, 0,
		sizeof lengths / sizeof *lengths);
	tcase_add_test(tcase, a_footer_is_as_documented);
	tcase_add_test(tcase, any_changed_or_missing_byte_of_a_footer_is_corrupt);
	tcase_add_test(tcase, a_footer_must_add_up);
	tcase_add_loop_test(tcase, names_are_parsed_strictly, 0, sizeof names / sizeof *names);
	suite_add_tcase(suite, tcase);
	return suite;
}
