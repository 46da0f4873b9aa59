/* Streams that outgrow their memory are read back as they were written, from memory, from the file
 * and across both. */
#include "weights/model/spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

/* over three times the bytes that a stream holds in memory */
enum { STREAMS = 2, PIECE = 700 * 1000, PIECES = 20, LENGTH = PIECE * PIECES };

static char *scratch;
static struct file_faults faults;
static struct staging *staging;
static struct spool *spool;

static void set_up(void)
{
	struct error err = {0};
	char out[600];
	scratch = unit_scratch_make();
	snprintf(out, sizeof(out), "%s/out", scratch);
	file_faults_init(&faults, 0, 0, EIO);
	staging = staging_begin(&faults.ops, out, true, &err);
	ck_assert_msg(staging != NULL, "%s", err.text);
	spool = spool_new(staging, &faults.ops, STREAMS);
}

static void tear_down(void)
{
	spool_free(spool);
	staging_free(staging);
	unit_scratch_remove(scratch);
}

/* Bytes near each other differ. */
static uint8_t byte_at(size_t stream, uint64_t at)
{
	uint64_t word = (at / 8 + 1) * (stream + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint8_t)(word >> (at % 8 * 8));
}

static void fill(uint8_t *bytes, size_t len, size_t stream, uint64_t from)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(stream, from + i);
}

static void add(size_t stream, uint64_t from)
{
	struct error err = {0};
	static uint8_t bytes[PIECE];
	fill(bytes, PIECE, stream, from);
	ck_assert_uint_eq(spool_end(spool, stream), from);
	ck_assert_msg(spool_add(spool, stream, span_of(bytes, PIECE), &err) == 0, "%s", err.text);
}

static void expect(size_t stream, uint64_t at, size_t len)
{
	struct error err = {0};
	static uint8_t wanted[PIECE];
	static uint8_t bytes[PIECE];
	fill(wanted, len, stream, at);
	ck_assert_msg(spool_read(spool, stream, at, bytes, len, &err) == 0, "%s", err.text);
	ck_assert_msg(
		memcmp(bytes, wanted, len) == 0, "stream %zu from %zu on", stream, (size_t)at);
}

START_TEST(what_was_written_is_read_wherever_it_lies)
{
	for (uint64_t at = 0; at < LENGTH; at += PIECE)
		for (size_t stream = 0; stream < STREAMS; stream++)
			add(stream, at);
	for (size_t stream = 0; stream < STREAMS; stream++) {
		ck_assert_uint_eq(spool_end(spool, stream), LENGTH);
		for (uint64_t at = 0; at < LENGTH;
			at += PIECE / 2) /* across each border between file and memory */
			expect(stream, at, at + PIECE < LENGTH ? PIECE : (size_t)(LENGTH - at));
	}
}
END_TEST

START_TEST(a_stream_that_is_rewound_begins_anew)
{
	for (uint64_t at = 0; at < LENGTH; at += PIECE)
		add(0, at);
	spool_rewind(spool, 0);
	for (uint64_t at = 0; at < LENGTH / 2; at += PIECE)
		add(0, at);
	for (uint64_t at = 0; at < LENGTH / 2; at += PIECE)
		expect(0, at, PIECE);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
	struct error err = {0};
	static uint8_t bytes[LENGTH];
	file_faults_init(&faults, FILE_FAULT_WRITE, 0, ENOSPC);
	ck_assert_int_eq(spool_add(spool, 0, span_of(bytes, sizeof(bytes)), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_SPACE);
}
END_TEST

Suite *test_spool_suite(void);
Suite *test_spool_suite(void)
{
	Suite *suite = suite_create("spool");
	TCase *tests = tcase_create("spool");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_was_written_is_read_wherever_it_lies);
	tcase_add_test(tests, a_stream_that_is_rewound_begins_anew);
	tcase_add_test(tests, a_full_disk_is_told);
	suite_add_tcase(suite, tests);
	return suite;
}
