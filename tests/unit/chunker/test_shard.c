#include "chunker/shard.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "tests/unit/chunker/vectors.h"

Suite *test_shard_suite(void);

enum {
	CAP_BYTES = 1024 * 1024,
	FILE_AT = 48,
	TERM_AT = 96,
	RANGE_AT = 144,
	FIRST_BOOKEND_AT = 192,
	XORB_AT = 240
};

#define HELLO_CHUNK "d8d408e608fb9ca213b9909a65d86d725f2de4d8d540324be8a363e7a6e228cb"
#define HELLO_FILE  "a9dae0ad88b060bdd7e7c87abdcf95b132c95a0414b06d4f6beb68d287b87165"
#define HELLO_RANGE "89cb63458e98cb4c75be6b50a5a7b7234b82f05d5348e6925fb71aaf5dc3862b"

START_TEST(the_published_shard_is_read)
{
	struct error err = {0};
	struct buffer bytes = vectors_read_hex("hello-shard.hex");
	struct shard_reader reader;
	struct shard_file file;
	struct shard_xorb xorb;
	ck_assert_msg(shard_reader_open(&reader, buffer_span(&bytes), &err) == 0, "%s", err.text);
	ck_assert_int_eq(shard_reader_file(&reader, &file, &err), 1);
	vectors_expect_id(file.hash, HELLO_FILE);
	ck_assert_uint_eq(file.term_count, 1);
	ck_assert(file.has_ranges);
	const struct shard_term term = shard_file_term(&file, 0);
	vectors_expect_id(term.xorb, HELLO_CHUNK);
	ck_assert_uint_eq(term.first, 0);
	ck_assert_uint_eq(term.end, 1);
	ck_assert_uint_eq(term.bytes, 12);
	vectors_expect_id(shard_file_range(&file, 0), HELLO_RANGE);
	ck_assert_int_eq(shard_reader_file(&reader, &file, &err), 0);
	ck_assert_int_eq(shard_reader_file(&reader, &file, &err), 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &xorb, &err), 1);
	vectors_expect_id(xorb.hash, HELLO_CHUNK);
	ck_assert_uint_eq(xorb.bytes, 12);
	const struct shard_chunk chunk = shard_xorb_chunk(&xorb, 0);
	vectors_expect_id(chunk.id, HELLO_CHUNK);
	ck_assert_uint_eq(chunk.offset, 0);
	ck_assert_uint_eq(chunk.size, 12);
	ck_assert_int_eq(shard_reader_xorb(&reader, &xorb, &err), 0);
	ck_assert_int_eq(shard_reader_end(&reader, &err), 0);
	buffer_release(&bytes);
}
END_TEST

static const struct chunk_entry *hello(void)
{
	static struct chunk_entry chunk;
	chunk = (struct chunk_entry){.id = chunk_hash(span_text("Hello World!")), .size = 12};
	return &chunk;
}

START_TEST(the_published_shard_is_written)
{
	struct buffer expected = vectors_read_hex("hello-shard.hex");
	struct buffer bytes;
	const struct chunk_entry *const chunk = hello();
	const struct shard_term term = {.xorb = chunk->id, .first = 0, .end = 1, .bytes = 12};
	const struct chunk_id file = chunk_hash_file(chunk, 1);
	const struct chunk_id range = chunk_hash_range(chunk, 1);
	buffer_init(&bytes, CAP_BYTES);
	shard_write_header(&bytes, 0);
	shard_write_file(&bytes, &file, &term, &range, 1);
	shard_write_bookend(&bytes);
	shard_write_xorb(&bytes, &chunk->id, chunk, 1);
	shard_write_bookend(&bytes);
	ck_assert(span_equal(buffer_span(&bytes), buffer_span(&expected)));
	buffer_release(&bytes);
	buffer_release(&expected);
}
END_TEST

START_TEST(the_published_answer_is_written)
{
	struct buffer expected = vectors_read_hex("hello-dedup-response.hex");
	struct buffer bytes;
	const struct shard_answer answer = {.created_s = 1700000000, .expires_s = 1700604800};
	buffer_init(&bytes, CAP_BYTES);
	shard_write_answer(&bytes, &answer, &hello()->id, hello(), 1);
	ck_assert(span_equal(buffer_span(&bytes), buffer_span(&expected)));
	buffer_release(&bytes);
	buffer_release(&expected);
}
END_TEST

START_TEST(an_answer_hides_its_chunks_with_its_key)
{
	struct error err = {0};
	struct buffer bytes;
	struct shard_answer answer = {.created_s = 5, .expires_s = 6};
	struct shard_answer read;
	struct shard_reader reader;
	struct shard_xorb xorb;
	for (unsigned i = 0; i < SHARD_KEY_BYTES; i++)
		answer.key[i] = (uint8_t)i;
	buffer_init(&bytes, CAP_BYTES);
	shard_write_answer(&bytes, &answer, &hello()->id, hello(), 1);
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &xorb, &err), 1);
	vectors_expect_id(xorb.hash, HELLO_CHUNK);
	vectors_expect_id(shard_xorb_chunk(&xorb, 0).id,
		"213944381648fd3a12bf8dfc98576416734cf1afdb7ddced216b33a217c15167");
	ck_assert_msg(shard_reader_answer(&reader, &read, &err) == 0, "%s", err.text);
	ck_assert(memcmp(read.key, answer.key, SHARD_KEY_BYTES) == 0);
	ck_assert_int_eq(read.created_s, 5);
	ck_assert_int_eq(read.expires_s, 6);
	buffer_release(&bytes);
}
END_TEST

/* Two files, one with a metadata record, and a xorb of three chunks. */
static struct buffer larger(void)
{
	struct chunk_entry chunks[3];
	struct shard_term terms[2];
	struct chunk_id ranges[2];
	struct buffer bytes;
	for (unsigned i = 0; i < 3; i++) {
		const char text = (char)('a' + i);
		chunks[i] =
			(struct chunk_entry){.id = chunk_hash(span_of(&text, 1)), .size = 1000 + i};
	}
	const struct chunk_id xorb = chunk_hash_xorb(chunks, 3);
	const struct chunk_id file = chunk_hash_file(chunks, 3);
	terms[0] = (struct shard_term){.xorb = xorb, .first = 0, .end = 2, .bytes = 2001};
	terms[1] = (struct shard_term){.xorb = xorb, .first = 2, .end = 3, .bytes = 1002};
	ranges[0] = chunk_hash_range(chunks, 2);
	ranges[1] = chunk_hash_range(chunks + 2, 1);
	buffer_init(&bytes, CAP_BYTES);
	shard_write_header(&bytes, 0);
	shard_write_file(&bytes, &file, terms, ranges, 2);
	bytes.data[FILE_AT + 35] |= 0x40; /* and metadata behind it */
	buffer_add(&bytes, (uint8_t[SHARD_RECORD_BYTES]){0}, SHARD_RECORD_BYTES);
	shard_write_file(&bytes, &(struct chunk_id){0}, NULL, NULL, 0);
	shard_write_bookend(&bytes);
	shard_write_xorb(&bytes, &xorb, chunks, 3);
	shard_write_bookend(&bytes);
	return bytes;
}

START_TEST(several_files_and_metadata_are_read)
{
	struct error err = {0};
	struct buffer bytes = larger();
	struct shard_reader reader;
	struct shard_file file;
	struct shard_xorb xorb;
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_file(&reader, &file, &err), 1);
	ck_assert_uint_eq(file.term_count, 2);
	ck_assert_uint_eq(shard_file_term(&file, 1).first, 2);
	ck_assert_int_eq(shard_reader_file(&reader, &file, &err), 1);
	ck_assert_uint_eq(file.term_count, 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &xorb, &err), 1);
	ck_assert_uint_eq(xorb.chunk_count, 3);
	ck_assert_uint_eq(xorb.bytes, 3003);
	ck_assert_uint_eq(shard_xorb_chunk(&xorb, 2).offset, 2001);
	ck_assert_int_eq(shard_reader_end(&reader, &err), 0);
	buffer_release(&bytes);
}
END_TEST

START_TEST(files_may_be_skipped)
{
	struct error err = {0};
	struct buffer bytes = larger();
	struct shard_reader reader;
	struct shard_xorb xorb;
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_xorb(&reader, &xorb, &err), 1);
	ck_assert_uint_eq(xorb.chunk_count, 3);
	buffer_release(&bytes);
}
END_TEST

static int read_all(struct span bytes, struct error *err)
{
	struct shard_reader reader;
	return shard_reader_open(&reader, bytes, err) != 0 ? -1 : shard_reader_end(&reader, err);
}

START_TEST(a_shard_cut_anywhere_is_invalid)
{
	struct buffer bytes = larger();
	for (size_t len = 0; len < bytes.len; len++) {
		struct error err = {0};
		/* so that a sanitizer sees a read behind the cut */
		uint8_t *const cut = memory_copy(bytes.data, len + 1);
		ck_assert_int_eq(read_all(span_of(cut, len), &err), -1);
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		free(cut);
	}
	buffer_release(&bytes);
}
END_TEST

static const struct {
	size_t at;
	uint64_t value;
	unsigned bytes;
} bad_fields[] = {
	{0, 'h', 1},                                                        /* tag */
	{31, 0, 1}, {32, 1, 8}, {32, 3, 8}, {32, UINT64_C(1) << 32 | 2, 8}, /* version */
	{40, 1, 8}, {40, 199, 8}, {40, UINT64_MAX, 8}, /* a footer that is not there */
	/* terms: with ranges twice as many, which 32 bits do not hold */
	{FILE_AT + 36, UINT32_MAX, 4}, {FILE_AT + 36, UINT64_C(1) << 31, 4},
	/* there are six records, but the ranges need six more */
	{FILE_AT + 36, 6, 4}, {FIRST_BOOKEND_AT, 0, 1}, /* no end of the files */
	{XORB_AT + 36, UINT32_MAX, 4},                  /* chunks */
	{XORB_AT + 36, 3, 4}, {XORB_AT + 36, 0, 4}, /* its chunk is read as a xorb of 12 chunks */
	{336, 0, 1},                                /* no end of the xorbs */
};

START_TEST(a_broken_shard_is_invalid)
{
	struct error err = {0};
	struct buffer bytes = vectors_read_hex("hello-shard.hex");
	little_endian_put(
		bytes.data + bad_fields[_i].at, bad_fields[_i].value, bad_fields[_i].bytes);
	ck_assert_int_eq(read_all(buffer_span(&bytes), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_release(&bytes);
}
END_TEST

START_TEST(bytes_behind_the_end_need_a_footer)
{
	struct error err = {0};
	struct buffer bytes = vectors_read_hex("hello-shard.hex");
	/* places and counts all zero, as JavaScript clients leave them */
	buffer_add(&bytes, (uint8_t[SHARD_FOOTER_BYTES]){0}, SHARD_FOOTER_BYTES);
	ck_assert_int_eq(read_all(buffer_span(&bytes), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	little_endian_put(bytes.data + 40, SHARD_FOOTER_BYTES, 8);
	ck_assert_msg(read_all(buffer_span(&bytes), &err) == 0, "%s", err.text);
	buffer_release(&bytes);
}
END_TEST

START_TEST(a_footer_may_be_announced_and_not_sent)
{
	struct error err = {0};
	struct buffer bytes = vectors_read_hex("hello-shard.hex");
	little_endian_put(bytes.data + 40, SHARD_FOOTER_BYTES, 8); /* as hf_xet 1.2 sends it */
	ck_assert_msg(read_all(buffer_span(&bytes), &err) == 0, "%s", err.text);
	struct shard_reader reader;
	struct shard_answer answer;
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_answer(&reader, &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_add(&bytes, (uint8_t[SHARD_FOOTER_BYTES]){0}, SHARD_FOOTER_BYTES - 1);
	ck_assert_int_eq(read_all(buffer_span(&bytes), &err), -1);
	buffer_release(&bytes);
}
END_TEST

START_TEST(an_answer_needs_its_footer)
{
	struct error err = {0};
	struct buffer bytes = vectors_read_hex("hello-dedup-response.hex");
	struct shard_reader reader;
	struct shard_answer answer;
	bytes.data[bytes.len - SHARD_FOOTER_BYTES] = 2; /* version */
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_answer(&reader, &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_release(&bytes);
	bytes = vectors_read_hex("hello-shard.hex");
	ck_assert_int_eq(shard_reader_open(&reader, buffer_span(&bytes), &err), 0);
	ck_assert_int_eq(shard_reader_answer(&reader, &answer, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	buffer_release(&bytes);
}
END_TEST

START_TEST(a_shard_may_hold_nothing)
{
	struct error err = {0};
	struct buffer bytes;
	buffer_init(&bytes, CAP_BYTES);
	shard_write_header(&bytes, 0);
	shard_write_bookend(&bytes);
	shard_write_bookend(&bytes);
	ck_assert_int_eq(read_all(buffer_span(&bytes), &err), 0);
	buffer_release(&bytes);
}
END_TEST

Suite *test_shard_suite(void)
{
	Suite *const suite = suite_create("shard");
	TCase *const reading = tcase_create("reading");
	tcase_add_test(reading, the_published_shard_is_read);
	tcase_add_test(reading, several_files_and_metadata_are_read);
	tcase_add_test(reading, files_may_be_skipped);
	tcase_add_test(reading, a_shard_may_hold_nothing);
	tcase_add_test(reading, bytes_behind_the_end_need_a_footer);
	tcase_add_test(reading, a_footer_may_be_announced_and_not_sent);
	tcase_add_test(reading, an_answer_needs_its_footer);
	suite_add_tcase(suite, reading);
	TCase *const broken = tcase_create("broken");
	tcase_add_test(broken, a_shard_cut_anywhere_is_invalid);
	tcase_add_loop_test(
		broken, a_broken_shard_is_invalid, 0, sizeof(bad_fields) / sizeof(bad_fields[0]));
	suite_add_tcase(suite, broken);
	TCase *const writing = tcase_create("writing");
	tcase_add_test(writing, the_published_shard_is_written);
	tcase_add_test(writing, the_published_answer_is_written);
	tcase_add_test(writing, an_answer_hides_its_chunks_with_its_key);
	suite_add_tcase(suite, writing);
	return suite;
}
