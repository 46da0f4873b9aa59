#include "base/format/compress_stream.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/compress.h"
#include "base/memory.h"
#include "tests/unit/unit.h"

Suite *test_compress_stream_suite(void);

enum { CONTENT_BYTES = 300000 };

static uint8_t *make_content(void)
{
	uint8_t *const content = memory_new(CONTENT_BYTES);
	for (size_t i = 0; i < CONTENT_BYTES; i++)
		content[i] = (uint8_t)(i * i >> 9);
	return content;
}

static void write_frame(struct buffer *out, const uint8_t *content, size_t len, size_t piece)
{
	struct zstd_writer *const writer = zstd_writer_new(1);
	buffer_init(out, 1 << 20);
	zstd_writer_begin(writer, len);
	for (size_t at = 0; at < len; at += piece)
		zstd_writer_add(writer, span_of(content + at, len - at < piece ? len - at : piece),
			at + piece >= len, out);
	if (len == 0)
		zstd_writer_add(writer, (struct span){0}, true, out);
	ck_assert(!buffer_failed(out));
	zstd_writer_free(writer);
}

START_TEST(pieces_make_one_frame_that_says_its_size)
{
	static const size_t pieces[] = {1000, 65536, CONTENT_BYTES};
	struct error err = {0};
	uint64_t size = 0;
	uint8_t *const content = make_content();
	uint8_t *const back = memory_new(CONTENT_BYTES);
	struct buffer frame;
	write_frame(&frame, content, CONTENT_BYTES, pieces[_i]);
	ck_assert(zstd_content_size(buffer_span(&frame), &size));
	ck_assert_uint_eq(size, CONTENT_BYTES);
	/* The reader must refuse anything but one whole frame. */
	struct compressor *const compressor = compressor_new();
	ck_assert_msg(
		decompress_zstd(compressor, buffer_span(&frame), back, CONTENT_BYTES, &err) == 0,
		"%s", err.text);
	ck_assert_mem_eq(back, content, CONTENT_BYTES);
	compressor_free(compressor);
	buffer_release(&frame);
	free(content);
	free(back);
}
END_TEST

START_TEST(frames_are_read_in_pieces_and_passed_over)
{
	struct error err = {0};
	uint8_t *const content = make_content();
	uint8_t *const back = memory_new(CONTENT_BYTES);
	struct buffer frame;
	write_frame(&frame, content, CONTENT_BYTES, 65536);
	struct zstd_reader *const reader = zstd_reader_new();
	for (unsigned again = 0; again < 2; again++) {
		ck_assert_int_eq(zstd_reader_begin(reader, buffer_span(&frame), &err), 0);
		ck_assert_int_eq(zstd_reader_take(reader, back, 7, &err), 0);
		ck_assert_int_eq(zstd_reader_take(reader, NULL, 200000, &err), 0);
		ck_assert_int_eq(
			zstd_reader_take(reader, back + 7, CONTENT_BYTES - 200007, &err), 0);
		ck_assert_mem_eq(back, content, 7);
		ck_assert_mem_eq(back + 7, content + 200007, CONTENT_BYTES - 200007);
		ck_assert_int_eq(zstd_reader_end(reader, &err), 0);
		ck_assert_int_eq(zstd_reader_take(reader, back, 1, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	}
	ck_assert_int_eq(zstd_reader_begin(reader, buffer_span(&frame), &err), 0);
	ck_assert_int_eq(zstd_reader_take(reader, back, CONTENT_BYTES - 1, &err), 0);
	ck_assert_int_eq(zstd_reader_end(reader, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "more bytes"));
	zstd_reader_free(reader);
	buffer_release(&frame);
	free(content);
	free(back);
}
END_TEST

START_TEST(what_is_not_one_frame_is_refused)
{
	static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9};
	struct error err = {0};
	uint8_t *const content = make_content();
	struct buffer frame;
	struct buffer two;
	struct zstd_reader *const reader = zstd_reader_new();
	write_frame(&frame, content, 100, 100);
	buffer_init(&two, 1 << 20);
	buffer_add_span(&two, buffer_span(&frame));
	buffer_add_span(&two, buffer_span(&frame));
	ck_assert_int_eq(zstd_reader_begin(reader, buffer_span(&two), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(
		zstd_reader_begin(reader, span_of(skippable, sizeof(skippable)), &err), -1);
	for (size_t len = 0; len < frame.len; len++)
		ck_assert_int_eq(
			zstd_reader_begin(reader, span_slice(buffer_span(&frame), 0, len), &err),
			-1);
	ck_assert_int_eq(zstd_reader_begin(reader, buffer_span(&frame), &err), 0);
	zstd_reader_free(reader);
	buffer_release(&frame);
	buffer_release(&two);
	free(content);
}
END_TEST

START_TEST(nothing_is_a_frame_too)
{
	struct error err = {0};
	struct buffer frame;
	uint64_t size = 1;
	struct zstd_reader *const reader = zstd_reader_new();
	write_frame(&frame, NULL, 0, 1);
	ck_assert(zstd_content_size(buffer_span(&frame), &size));
	ck_assert_uint_eq(size, 0);
	ck_assert_int_eq(zstd_reader_begin(reader, buffer_span(&frame), &err), 0);
	ck_assert_int_eq(zstd_reader_end(reader, &err), 0);
	zstd_reader_free(reader);
	buffer_release(&frame);
}
END_TEST

Suite *test_compress_stream_suite(void)
{
	Suite *const suite = suite_create("compress_stream");
	TCase *const tcase = tcase_create("compress_stream");
	tcase_add_loop_test(tcase, pieces_make_one_frame_that_says_its_size, 0, 3);
	tcase_add_test(tcase, frames_are_read_in_pieces_and_passed_over);
	tcase_add_test(tcase, what_is_not_one_frame_is_refused);
	tcase_add_test(tcase, nothing_is_a_frame_too);
	suite_add_tcase(suite, tcase);
	return suite;
}
