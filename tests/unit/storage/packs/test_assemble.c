#include "storage/packs/assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { LEN = 3 * 1024 * 1024 + 12345 };

struct stored {
	struct pack_fixture fixture;
	uint8_t *bytes;
	struct stored_stream stream;
};

/* A stream of three kinds of content, over several packs. */
static void stored_open(struct stored *stored, enum pack_fixture_kind kind)
{
	pack_fixture_open(&stored->fixture, kind, 600 * 1024);
	stored->bytes = memory_new(LEN);
	const size_t third = LEN / FIXTURE_CONTENTS;
	for (enum fixture_content content = 0; content < FIXTURE_CONTENTS; content++) {
		uint8_t *const piece = fixture_bytes(content, 11, third);
		memcpy(stored->bytes + (size_t)content * third, piece, third);
		free(piece);
	}
	pack_fixture_put(&stored->fixture, span_of(stored->bytes, LEN), 3, &stored->stream);
	ck_assert_uint_gt(stored->stream.segment_count, 3);
}

static void stored_close(struct stored *stored)
{
	stored_stream_release(&stored->stream);
	free(stored->bytes);
	pack_fixture_close(&stored->fixture);
}

START_TEST(random_ranges_are_right)
{
	static const size_t pieces[] = {1000, 16384, 65536, ASSEMBLE_BLOCK_BYTES, 2 * 1024 * 1024};
	struct stored stored;
	stored_open(&stored, _i);
	const struct span expected = span_of(stored.bytes, LEN);
	uint64_t state = 99;
	for (unsigned i = 0; i < 120; i++) {
		const uint64_t offset = fixture_random(&state) % LEN;
		const uint64_t most = i % 3 == 0 ? 300 : LEN;
		const uint64_t length = fixture_random(&state) % most % (LEN - offset + 1);
		pack_fixture_expect_range(
			&stored.fixture, &stored.stream, expected, offset, length, pieces[i % 5]);
	}
	pack_fixture_expect_range(&stored.fixture, &stored.stream, expected, 0, LEN, LEN);
	pack_fixture_expect_range(&stored.fixture, &stored.stream, expected, LEN - 1, 1, 10);
	stored_close(&stored);
}
END_TEST

START_TEST(every_byte_near_a_chunk_boundary_can_begin_a_range)
{
	struct stored stored;
	stored_open(&stored, PACK_FIXTURE_MEMORY);
	const struct span expected = span_of(stored.bytes, LEN);
	uint64_t at = 0;
	for (size_t i = 0; i < stored.stream.segment_count; i++) {
		struct error err = {0};
		const struct segment *const segment = &stored.stream.segments[i];
		for (uint32_t chunk = 0; chunk < segment->count; chunk++) {
			struct chunk_entry entry;
			ck_assert_int_eq(
				pack_store_chunk_entry(stored.fixture.store, &segment->pack,
					segment->first + chunk, &entry, &err),
				0);
			at += entry.size;
			for (uint64_t from = at - 1; from <= at + 1 && from + 2 <= LEN; from++)
				pack_fixture_expect_range(
					&stored.fixture, &stored.stream, expected, from, 2, 2);
		}
	}
	ck_assert_uint_eq(at, LEN);
	stored_close(&stored);
}
END_TEST

START_TEST(ranges_outside_are_refused)
{
	struct stored stored;
	stored_open(&stored, PACK_FIXTURE_MEMORY);
	const struct {
		uint64_t offset, length;
	} outside[] = {{LEN, 1}, {0, LEN + 1}, {LEN + 1, 0}, {UINT64_MAX, 2}, {5, UINT64_MAX}};
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
		struct error err = {0};
		ck_assert_ptr_null(assemble_open(stored.fixture.store, stored.stream.segments,
			stored.stream.segment_count, outside[i].offset, outside[i].length, &err));
		ck_assert_int_eq(err.kind, ERROR_RANGE);
	}
	const struct span expected = span_of(stored.bytes, LEN);
	pack_fixture_expect_range(&stored.fixture, &stored.stream, expected, LEN, 0, 10);
	ck_assert(!pack_store_is_held(stored.fixture.store, &stored.stream.segments[0].pack));
	stored_close(&stored);
}
END_TEST

START_TEST(packs_are_held_until_close)
{
	struct stored stored;
	struct error err = {0};
	stored_open(&stored, PACK_FIXTURE_MEMORY);
	struct body_source *const source = assemble_open(stored.fixture.store,
		stored.stream.segments, stored.stream.segment_count, 0, 10, &err);
	for (size_t i = 0; i < stored.stream.segment_count; i++)
		ck_assert(
			pack_store_is_held(stored.fixture.store, &stored.stream.segments[i].pack));
	source->close(source);
	for (size_t i = 0; i < stored.stream.segment_count; i++)
		ck_assert(
			!pack_store_is_held(stored.fixture.store, &stored.stream.segments[i].pack));
	stored_close(&stored);
}
END_TEST

START_TEST(inline_bytes_are_copied)
{
	char text[] = "forty-two";
	struct error err = {0};
	struct body_source *const source = assemble_open_inline(span_text(text));
	text[0] = 'F';
	uint8_t got[20];
	ck_assert_int_eq(source->read(source, got, 4, &err), 4);
	ck_assert_int_eq(source->read(source, got + 4, 16, &err), 5);
	ck_assert_int_eq(source->read(source, got, 16, &err), 0);
	ck_assert_mem_eq(got, "forty-two", 9);
	source->close(source);
	struct body_source *const empty = assemble_open_inline(span_of(NULL, 0));
	ck_assert_int_eq(empty->read(empty, got, 16, &err), 0);
	empty->close(empty);
}
END_TEST

/* Bytes before the error are right, the error names the pack and is counted, and reading on gives
 * it again. */
static void expect_corrupt(struct stored *stored, const struct pack_id *pack)
{
	struct error err = {0};
	char text[PACK_ID_BYTES * 2 + 1];
	for (size_t i = 0; i < PACK_ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", pack->bytes[i]);
	uint8_t *const got = memory_new(LEN);
	struct body_source *const source = assemble_open(stored->fixture.store,
		stored->stream.segments, stored->stream.segment_count, 0, LEN, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	size_t at = 0;
	ptrdiff_t len;
	while ((len = source->read(source, got + at,
			LEN - at < ASSEMBLE_BLOCK_BYTES ? LEN - at : ASSEMBLE_BLOCK_BYTES, &err)) >
		0)
		at += (size_t)len;
	ck_assert_int_eq(len, -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_msg(strstr(err.text, text) != NULL && strstr(err.text, "Chunk") != NULL, "%s",
		err.text);
	ck_assert_mem_eq(got, stored->bytes, at);
	ck_assert_int_ge(metrics_get(stored->fixture.metrics, METRIC_RECORDS_CORRUPT), 1);
	ck_assert_int_eq(source->read(source, got, 100, &err), -1);
	source->close(source);
	free(got);
}

START_TEST(a_flipped_bit_is_never_served)
{
	struct stored stored;
	stored_open(&stored, PACK_FIXTURE_FOLDER);
	/* the last segment has encoded records, the first raw ones: damages header and payload of
	 * each */
	const struct segment *const segment =
		&stored.stream.segments[_i < 2 ? 0 : stored.stream.segment_count - 1];
	char *const path = pack_fixture_path(&stored.fixture, &segment->pack, "pack");
	pack_fixture_flip(path, _i % 2 == 0 ? 64 + 5 : 64 + 8 + 3000);
	expect_corrupt(&stored, &segment->pack);
	free(path);
	stored_close(&stored);
}
END_TEST

START_TEST(a_truncated_or_missing_pack_is_an_error)
{
	struct stored stored;
	stored_open(&stored, PACK_FIXTURE_FOLDER);
	const struct segment *const segment = &stored.stream.segments[1];
	char *const path = pack_fixture_path(&stored.fixture, &segment->pack, "pack");
	if (_i == 0)
		ck_assert_int_eq(truncate(path, 100000), 0);
	else
		ck_assert_int_eq(unlink(path), 0);
	expect_corrupt(&stored, &segment->pack);
	free(path);
	stored_close(&stored);
}
END_TEST

START_TEST(a_lost_or_damaged_sidecar_is_made_anew)
{
	struct stored stored;
	stored_open(&stored, PACK_FIXTURE_FOLDER);
	pack_fixture_settle(&stored.fixture);
	for (size_t i = 0; i < stored.fixture.record_count; i++) {
		char *const path =
			pack_fixture_path(&stored.fixture, &stored.fixture.records[i].id, "index");
		if (stored.fixture.records[i].state == PACK_OPEN)
			ck_assert(!file_exists(path));
		else if (_i == 0)
			ck_assert_int_eq(unlink(path), 0);
		else
			pack_fixture_flip(path, 100);
		free(path);
	}
	pack_fixture_reopen(&stored.fixture);
	pack_fixture_expect(&stored.fixture, &stored.stream, span_of(stored.bytes, LEN));
	for (size_t i = 0; i < stored.fixture.record_count; i++) {
		char *const path =
			pack_fixture_path(&stored.fixture, &stored.fixture.records[i].id, "index");
		ck_assert(file_exists(path));
		free(path);
	}
	stored_close(&stored);
}
END_TEST

Suite *test_assemble_suite(void);
Suite *test_assemble_suite(void)
{
	Suite *const suite = suite_create("assemble");
	TCase *const tcase = tcase_create("assemble");
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, random_ranges_are_right, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, every_byte_near_a_chunk_boundary_can_begin_a_range);
	tcase_add_test(tcase, ranges_outside_are_refused);
	tcase_add_test(tcase, packs_are_held_until_close);
	tcase_add_test(tcase, inline_bytes_are_copied);
	tcase_add_loop_test(tcase, a_flipped_bit_is_never_served, 0, 4);
	tcase_add_loop_test(tcase, a_truncated_or_missing_pack_is_an_error, 0, 2);
	tcase_add_loop_test(tcase, a_lost_or_damaged_sidecar_is_made_anew, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite;
}
