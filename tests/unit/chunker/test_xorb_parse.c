#include "chunker/xorb_parse.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_footer.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_xorb_parse_suite(void);

#define HELLO_ID "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"
#define TWO_ID   "de1ede0bdfad802cc11b4cef13f92fcae9ba112bf292e59fe92166c139c27cc9"

enum { BODY_MAX_BYTES = 80 * 1024 * 1024 };

struct taken {
	size_t count;
	struct span expected; /* all content */
	size_t at;
	size_t refuse_at;
};

static int take(void *taker, const struct xorb_record *record, struct error *err)
{
	struct taken *const taken = taker;
	if (taken->count == taken->refuse_at)
		return error_set(err, ERROR_NO_SPACE, "the taker is full");
	const struct chunk_id id = chunk_hash(record->content);
	ck_assert(chunk_id_equal(&id, &record->id));
	if (taken->expected.data != NULL)
		ck_assert(span_equal(record->content,
			span_slice(taken->expected, taken->at, record->content.len)));
	taken->at += record->content.len;
	taken->count++;
	return 0;
}

/* Returns 0 and the hash, or -1. Pushes pieces of `piece` bytes, each in memory of its own, so that
 * a sanitizer sees an access behind it. */
static int parse(struct span body, size_t piece, bool private_codecs, struct taken *taken,
	struct chunk_id *out, struct error *err)
{
	struct xorb_parse *const parse = xorb_parse_new(take, taken, private_codecs);
	int result = 0;
	for (size_t at = 0; result == 0 && at < body.len; at += piece) {
		const struct span part = span_slice(body, at, piece);
		uint8_t *const own = memory_copy(part.data, part.len);
		result = xorb_parse_push(parse, span_of(own, part.len), err);
		free(own);
	}
	if (result == 0)
		result = xorb_parse_end(parse, out, err);
	xorb_parse_free(parse);
	return result;
}

static void add_record(struct buffer *body, enum codec codec, struct span content)
{
	struct codec_context *const context = codec_context_new();
	uint8_t *const payload = memory_new(codec_bound(content.len) + content.len);
	struct xorb_record_header header = {.codec = (uint8_t)codec, .size = (uint32_t)content.len};
	size_t stored = codec == CODEC_RAW
		? 0
		: codec_encode(context, codec, content, payload, codec_bound(content.len));
	if (stored == 0) {
		ck_assert_int_eq(codec, CODEC_RAW);
		memcpy(payload, content.data, content.len);
		stored = content.len;
	}
	header.stored = (uint32_t)stored;
	xorb_record_put_header(&header, buffer_reserve(body, XORB_RECORD_HEADER_BYTES));
	buffer_commit(body, XORB_RECORD_HEADER_BYTES);
	buffer_add(body, payload, stored);
	free(payload);
	codec_context_free(context);
}

static void add_hex(struct buffer *body, const char *hex)
{
	const size_t len = strlen(hex) / 2;
	ck_assert(decode_hex(span_text(hex), buffer_reserve(body, len), len));
	buffer_commit(body, len);
}

static struct buffer empty_body(void)
{
	struct buffer body;
	buffer_init(&body, BODY_MAX_BYTES);
	return body;
}

static struct buffer hello(void)
{
	return vectors_read_hex("hello-xorb.hex");
}

static void expect_hash(struct span body, size_t piece, const char *expected)
{
	struct taken taken = {.refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	ck_assert_msg(parse(body, piece, false, &taken, &hash, &err) == 0, "%s", err.text);
	vectors_expect_id(hash, expected);
}

static void expect_invalid(struct buffer body, const char *why)
{
	static const size_t pieces[] = {1, 3, 8, 4096, BODY_MAX_BYTES};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		struct taken taken = {.refuse_at = SIZE_MAX};
		struct error err = {0};
		struct chunk_id hash;
		ck_assert_int_eq(
			parse(buffer_span(&body), pieces[i], false, &taken, &hash, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		ck_assert_msg(strstr(err.text, why) != NULL, "%s", err.text);
	}
	buffer_release(&body);
}

START_TEST(published_xorbs_have_their_hashes)
{
	struct buffer body = hello();
	for (size_t piece = 1; piece <= body.len; piece++)
		expect_hash(buffer_span(&body), piece, HELLO_ID);
	buffer_reset(&body);
	add_record(&body, CODEC_RAW, span_text("test chunk 1"));
	add_record(&body, CODEC_RAW, span_text("test chunk 2 with more data"));
	expect_hash(buffer_span(&body), 5, TWO_ID);
	buffer_release(&body);
}
END_TEST

/* The published chunk boundaries of the first million SplitMix64 bytes. */
START_TEST(nineteen_chunks_have_the_published_hash)
{
	static const size_t ends[] = {84493, 134421, 144853, 243318, 271793, 336457, 467529, 494581,
		582000, 596735, 616815, 653164, 678202, 724510, 815591, 827760, 958832, 991092,
		1000000};
	static const size_t pieces[] = {777, 65536, 200000, 2000000};
	uint8_t *const content = vectors_splitmix(0, 1000000);
	struct buffer body = empty_body();
	for (size_t i = 0, at = 0; i < sizeof(ends) / sizeof(*ends); at = ends[i++])
		add_record(&body, CODEC_RAW, span_of(content + at, ends[i] - at));
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
		expect_hash(buffer_span(&body), pieces[i],
			"6f2ce16ca5e317f0100ff0e7e5bf40a0de9032e9ee1ad04b6b8ff4e36cdfbf6c");
	buffer_release(&body);
	free(content);
}
END_TEST

/* The hash is that of the content, in whatever codec the chunks are stored. */
START_TEST(all_codecs_of_xet_decode)
{
	static const enum codec codecs[] = {CODEC_RAW, CODEC_LZ4, CODEC_BG4_LZ4};
	enum { CHUNK = 70000, CHUNKS = 3 };
	uint8_t *const content = vectors_linear(7, 13, CHUNK * CHUNKS);
	struct chunk_entry chunks[CHUNKS];
	struct buffer body = empty_body();
	for (size_t i = 0; i < CHUNKS; i++) {
		const struct span chunk = span_of(content + i * CHUNK, CHUNK);
		chunks[i] = (struct chunk_entry){.id = chunk_hash(chunk), .size = CHUNK};
		add_record(&body, codecs[i], chunk);
	}
	const struct chunk_id expected = chunk_hash_xorb(chunks, CHUNKS);
	for (size_t piece = 1; piece < 2 * body.len; piece = piece * 3 + 1) {
		struct taken taken = {
			.expected = span_of(content, CHUNK * CHUNKS), .refuse_at = SIZE_MAX};
		struct error err = {0};
		struct chunk_id hash;
		ck_assert_msg(parse(buffer_span(&body), piece, false, &taken, &hash, &err) == 0,
			"%s", err.text);
		ck_assert(chunk_id_equal(&hash, &expected));
		ck_assert_uint_eq(taken.count, CHUNKS);
	}
	buffer_release(&body);
	free(content);
}
END_TEST

/* The frame that lz4 writes for 1000 x 'a'. */
START_TEST(the_published_frame_is_a_record)
{
	uint8_t content[1000] = {0};
	struct taken taken = {.expected = span_of(content, sizeof(content)), .refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	struct buffer body = empty_body();
	memset(content, 'a', sizeof(content));
	add_hex(&body,
		"00"
		"1d0000"
		"01"
		"e80300"
		"04224d18"
		"604082"
		"0e000000"
		"1f610100ffffffd2506161616161"
		"00000000");
	ck_assert_msg(
		parse(buffer_span(&body), 1, false, &taken, &hash, &err) == 0, "%s", err.text);
	const struct chunk_id expected = chunk_hash(taken.expected);
	ck_assert(chunk_id_equal(&hash, &expected));
	buffer_release(&body);
}
END_TEST

START_TEST(private_codecs_are_for_who_may)
{
	uint8_t *const words = vectors_words(3, 20000);
	struct buffer body = empty_body();
	struct taken taken = {.expected = span_of(words, 20000), .refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	add_record(&body, CODEC_ZSTD, taken.expected);
	ck_assert_msg(
		parse(buffer_span(&body), 1000, true, &taken, &hash, &err) == 0, "%s", err.text);
	expect_invalid(body, "compression scheme 64");
	free(words);
}
END_TEST

START_TEST(bad_headers_are_refused)
{
	static const struct {
		const char *hex;
		const char *why;
	} headers[] = {
		{"010c0000000c0000", "version is 1"},
		{"ff0c0000000c0000", "version is 255"},
		{"000c0000030c0000", "scheme 3"},
		{"000c0000630c0000", "scheme 99"},
		{"000c0000410c0000", "scheme 65"},
		{"000c00005a0c0000", "scheme 90"},
		/* before the payload comes */
		{"0001000400010002", "1 to 131072 bytes, not 131073"},
		{"0001000401000002", "1 to 262144 bytes, not 262145"},
		{"00ffffff01000002", "1 to 262144 bytes"},
		{"0000000000000000", "not 0"},
		{"0000000001010000", "not 0"},
		{"000c0000000d0000", "cannot be a chunk of 13"},
		{"000d0000000c0000", "cannot be a chunk of 12"},
	};
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		struct buffer first = empty_body();
		add_hex(&first, headers[i].hex);
		struct buffer second = hello();
		add_hex(&second, headers[i].hex);
		expect_invalid(first, headers[i].why);
		expect_invalid(second, "Record 1 of the xorb, at byte 20");
	}
}
END_TEST

START_TEST(cut_bodies_are_refused)
{
	expect_invalid(empty_body(), "no records");
	for (size_t len = 1; len < 20; len++) {
		struct buffer body = hello();
		body.len = len;
		expect_invalid(body, "ends within record 0");
	}
	for (size_t more = 1; more < 20; more++) {
		struct buffer body = hello();
		struct buffer again = hello();
		buffer_add(&body, again.data, more);
		buffer_release(&again);
		expect_invalid(body, "ends within record 1");
	}
}
END_TEST

START_TEST(payloads_that_do_not_decode_are_refused)
{
	struct buffer wrong = empty_body();
	add_hex(&wrong,
		"00"
		"040000"
		"01"
		"100000"
		"deadbeef");
	expect_invalid(wrong, "not an LZ4 frame");
	struct buffer short_one = empty_body(); /* 1000 bytes that claim to be 999 and 1001 */
	add_hex(&short_one,
		"00"
		"1d0000"
		"01"
		"e70300"
		"04224d18"
		"604082"
		"0e000000"
		"1f610100ffffffd2506161616161"
		"00000000");
	expect_invalid(short_one, "Record 0");
	struct buffer long_one = empty_body();
	add_hex(&long_one,
		"00"
		"1d0000"
		"02"
		"e90300"
		"04224d18"
		"604082"
		"0e000000"
		"1f610100ffffffd2506161616161"
		"00000000");
	expect_invalid(long_one, "Record 0");
	struct buffer trailing = empty_body();
	add_hex(&trailing,
		"00"
		"1e0000"
		"01"
		"e80300"
		"04224d18"
		"604082"
		"0e000000"
		"1f610100ffffffd2506161616161"
		"00000000"
		"00");
	expect_invalid(trailing, "Record 0");
}
END_TEST

START_TEST(a_xorb_has_at_most_8192_chunks)
{
	struct buffer body = empty_body();
	struct taken taken = {.refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	for (uint32_t i = 0; i < XORB_MAX_CHUNKS; i++)
		add_record(&body, CODEC_RAW, span_of(&i, sizeof(i)));
	ck_assert_msg(
		parse(buffer_span(&body), 100000, false, &taken, &hash, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(taken.count, XORB_MAX_CHUNKS);
	add_record(&body, CODEC_RAW, span_text("x"));
	ck_assert_int_eq(parse(buffer_span(&body), 100000, false, &taken, &hash, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, "at most 8192 chunks") != NULL, "%s", err.text);
	buffer_release(&body);
}
END_TEST

/* Zeros compress to almost nothing, so a small body may have as much content as a large one, but
 * not more. */
START_TEST(a_xorb_has_at_most_64_mib_of_content)
{
	static const uint8_t zeros[CHUNK_MAX_BYTES];
	struct buffer body = empty_body();
	struct taken taken = {.refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	for (size_t i = 0; i < XORB_MAX_BYTES / CHUNK_MAX_BYTES; i++)
		add_record(&body, CODEC_LZ4, span_of(zeros, sizeof(zeros)));
	ck_assert_msg(
		parse(buffer_span(&body), 100000, false, &taken, &hash, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(taken.at, XORB_MAX_BYTES);
	add_record(&body, CODEC_RAW, span_text("x"));
	ck_assert_int_eq(parse(buffer_span(&body), 100000, false, &taken, &hash, &err), -1);
	ck_assert_msg(strstr(err.text, "bytes of content") != NULL, "%s", err.text);
	buffer_release(&body);
}
END_TEST

/* Payloads may be longer than their content, but only up to a limit. */
START_TEST(a_body_has_at_most_65_mib)
{
	struct buffer body = empty_body();
	struct buffer frame = empty_body();
	struct taken taken = {.refuse_at = SIZE_MAX};
	struct error err = {0};
	struct chunk_id hash;
	add_hex(&frame,
		"04224d18"
		"604082");
	for (size_t i = 0; i < XORB_STORED_MAX_BYTES / 5 - 3; i++)
		add_hex(&frame, "0100008061"); /* a stored block of one byte */
	add_hex(&frame, "00000000");
	const struct xorb_record_header header = {.codec = CODEC_LZ4,
		.stored = (uint32_t)frame.len,
		.size = XORB_STORED_MAX_BYTES / 5 - 3};
	while (body.len <= XORB_BODY_MAX_BYTES) {
		xorb_record_put_header(&header, buffer_reserve(&body, XORB_RECORD_HEADER_BYTES));
		buffer_commit(&body, XORB_RECORD_HEADER_BYTES);
		buffer_add_span(&body, buffer_span(&frame));
	}
	ck_assert_int_eq(parse(buffer_span(&body), 1000000, false, &taken, &hash, &err), -1);
	ck_assert_msg(strstr(err.text, "a serialized xorb has at most") != NULL, "%s", err.text);
	ck_assert_uint_ge(taken.count, 250);
	buffer_release(&body);
	buffer_release(&frame);
}
END_TEST

struct roomy {
	uint8_t room[64]; /* exactly one record of hello */
	size_t given;
	size_t taken_there;
};

static uint8_t *give_room(void *taker, size_t len, struct error *err)
{
	struct roomy *const roomy = taker;
	ck_assert_uint_le(len, sizeof(roomy->room));
	if (roomy->given++ == 2) {
		error_set(err, ERROR_NO_MEMORY, "no room");
		return NULL;
	}
	return roomy->room;
}

static int take_from_room(void *taker, const struct xorb_record *record, struct error *err)
{
	struct roomy *const roomy = taker;
	(void)err;
	roomy->taken_there += record->payload.data == roomy->room + XORB_RECORD_HEADER_BYTES;
	ck_assert(span_equal_text(record->payload, "Hello World!"));
	return 0;
}

/* A record that lies whole in the pushed bytes stays there. Others are gathered in memory of the
 * taker. */
START_TEST(records_are_gathered_where_the_taker_says)
{
	struct buffer body = hello();
	struct roomy roomy = {.given = 0};
	struct error err = {0};
	const struct span whole = buffer_span(&body);
	struct xorb_parse *const parse = xorb_parse_new(take_from_room, &roomy, false);
	xorb_parse_gather_into(parse, give_room);
	ck_assert_int_eq(xorb_parse_push(parse, whole, &err), 0);
	ck_assert_uint_eq(roomy.given, 0);
	for (size_t cut = 3; cut <= 15; cut += 12) { /* within the header and behind it */
		ck_assert_int_eq(xorb_parse_push(parse, span_slice(whole, 0, cut), &err), 0);
		ck_assert_int_eq(
			xorb_parse_push(parse, span_slice(whole, cut, whole.len), &err), 0);
	}
	ck_assert_uint_eq(roomy.taken_there, 2);
	ck_assert_int_eq(xorb_parse_push(parse, span_slice(whole, 0, 9), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_MEMORY);
	xorb_parse_free(parse);
	buffer_release(&body);
}
END_TEST

START_TEST(the_takers_failure_ends_the_push)
{
	struct buffer body = hello();
	struct taken taken = {.refuse_at = 0};
	struct error err = {0};
	struct chunk_id hash;
	ck_assert_int_eq(parse(buffer_span(&body), 20, false, &taken, &hash, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
	buffer_release(&body);
}
END_TEST

static struct buffer two_chunks(struct xorb_footer_chunk out[2])
{
	static const char *const texts[] = {"test chunk 1", "test chunk 2 with more data"};
	struct buffer body = empty_body();
	for (size_t i = 0; i < 2; i++) {
		add_record(&body, CODEC_RAW, span_text(texts[i]));
		out[i].chunk = (struct chunk_entry){
			.id = chunk_hash(span_text(texts[i])), .size = strlen(texts[i])};
		out[i].record_end = (uint32_t)body.len;
	}
	return body;
}

static struct buffer with_footer(unsigned version, size_t *out_footer, size_t *out_reserved)
{
	struct xorb_footer_chunk chunks[2];
	struct buffer body = two_chunks(chunks);
	struct buffer footer = empty_body();
	const struct chunk_id hash = vectors_id_text(TWO_ID);
	xorb_footer_write(version, &hash, chunks, 2, &footer, out_reserved);
	*out_footer = body.len;
	buffer_add_span(&body, buffer_span(&footer));
	buffer_release(&footer);
	return body;
}

START_TEST(the_published_footer_is_taken)
{
	struct buffer body = hello();
	const char raw[] = "a29cfb08e608d4d8726dd8659a90b9134b3240d5d8e42d5fcb28e2a6e763a3e8";
	add_hex(&body, "584554424c4f4201");
	add_hex(&body, raw);
	add_hex(&body, "58424c424853480001000000");
	add_hex(&body, raw);
	add_hex(&body,
		"58424c42424e440101000000"
		"14000000"
		"0c000000"
		"01000000"
		"5c000000"
		"30000000"
		"00000000000000000000000000000000");
	add_hex(&body, "84000000");
	ck_assert_uint_eq(body.len, 20 + 132 + 4);
	for (size_t piece = 1; piece <= body.len; piece++)
		expect_hash(buffer_span(&body), piece, HELLO_ID);
	buffer_release(&body);
}
END_TEST

START_TEST(both_footers_are_taken)
{
	static const size_t lengths[] = {60 + 36 * 2 + 4, 92 + 40 * 2 + 4};
	for (unsigned version = 0; version <= 1; version++) {
		size_t footer, reserved;
		struct buffer body = with_footer(version, &footer, &reserved);
		ck_assert_uint_eq(body.len - footer, lengths[version]);
		body.data[footer + reserved] = 0x77; /* a nonce */
		for (size_t piece = 1; piece <= body.len; piece += 7)
			expect_hash(buffer_span(&body), piece, TWO_ID);
		buffer_release(&body);
	}
}
END_TEST

/* Every byte of the footer is checked, except the reserved ones. */
START_TEST(footers_that_differ_are_refused)
{
	for (unsigned version = 0; version <= 1; version++) {
		size_t footer, reserved;
		struct buffer whole = with_footer(version, &footer, &reserved);
		for (size_t at = footer; at < whole.len; at++) {
			if (at >= footer + reserved &&
				at < footer + reserved + XORB_FOOTER_RESERVED_BYTES)
				continue;
			struct buffer body = with_footer(version, &footer, &reserved);
			body.data[at] ^= at == footer + 7 ? 2 : 1;
			expect_invalid(body,
				at < footer + 7            ? "Record 2"
					: at == footer + 7 ? "which is unknown"
							   : "differs");
		}
		for (size_t len = footer + 8; len < whole.len; len++) {
			struct buffer body = with_footer(version, &footer, &reserved);
			body.len = len;
			expect_invalid(body, "within its footer");
		}
		buffer_release(&whole);
	}
}
END_TEST

START_TEST(a_footer_is_last_and_has_records_before_it)
{
	size_t footer, reserved;
	struct buffer followed = with_footer(1, &footer, &reserved);
	struct buffer record = hello();
	buffer_add_span(&followed, buffer_span(&record));
	buffer_release(&record);
	expect_invalid(followed, "follow the xorb's footer");
	struct buffer alone = with_footer(1, &footer, &reserved);
	buffer_remove_front(&alone, footer);
	expect_invalid(alone, "a footer and no records");
}
END_TEST

Suite *test_xorb_parse_suite(void)
{
	Suite *const suite = suite_create("xorb_parse");
	TCase *const all = tcase_create("all");
	tcase_set_timeout(all, 120);
	tcase_add_test(all, published_xorbs_have_their_hashes);
	tcase_add_test(all, nineteen_chunks_have_the_published_hash);
	tcase_add_test(all, all_codecs_of_xet_decode);
	tcase_add_test(all, the_published_frame_is_a_record);
	tcase_add_test(all, private_codecs_are_for_who_may);
	tcase_add_test(all, bad_headers_are_refused);
	tcase_add_test(all, cut_bodies_are_refused);
	tcase_add_test(all, payloads_that_do_not_decode_are_refused);
	tcase_add_test(all, a_xorb_has_at_most_8192_chunks);
	tcase_add_test(all, a_xorb_has_at_most_64_mib_of_content);
	tcase_add_test(all, a_body_has_at_most_65_mib);
	tcase_add_test(all, records_are_gathered_where_the_taker_says);
	tcase_add_test(all, the_takers_failure_ends_the_push);
	tcase_add_test(all, the_published_footer_is_taken);
	tcase_add_test(all, both_footers_are_taken);
	tcase_add_test(all, footers_that_differ_are_refused);
	tcase_add_test(all, a_footer_is_last_and_has_records_before_it);
	suite_add_tcase(suite, all);
	return suite;
}
