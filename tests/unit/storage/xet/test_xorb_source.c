#include "storage/xet/xorb_source.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "storage/packs/xorb_view.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { LEN = 2 * 1024 * 1024 + 12345 };

struct shown {
	struct pack_fixture fixture;
	uint8_t *bytes;
	struct stored_stream stream;
	struct xorb_run *runs; /* one for each segment */
	uint64_t length;       /* of all, shown plain */
};

static struct xorb_run run_of(
	struct pack_fixture *fixture, const struct segment *segment, bool as_stored)
{
	struct error err = {0};
	struct xorb_view *const view = xorb_view_open(fixture->store, &segment->pack, &err);
	ck_assert_msg(view != NULL, "%s", err.text);
	uint32_t present;
	const uint64_t length = xorb_view_shown(
		view, segment->first, segment->first + segment->count, as_stored, &present);
	ck_assert_uint_eq(present, segment->count);
	xorb_view_close(view);
	return (struct xorb_run){.pack = segment->pack,
		.first = segment->first,
		.count = segment->count,
		.length = length};
}

static void set_runs(struct shown *shown, bool as_stored)
{
	shown->length = 0;
	for (size_t i = 0; i < shown->stream.segment_count; i++) {
		shown->runs[i] = run_of(&shown->fixture, &shown->stream.segments[i], as_stored);
		shown->length += shown->runs[i].length;
	}
}

/* A stream of three kinds of content in several packs: raw records, and records with our own
 * codecs. */
static void shown_open(struct shown *shown, enum pack_fixture_kind kind)
{
	pack_fixture_open(&shown->fixture, kind, 400 * 1024);
	shown->bytes = memory_new(LEN);
	const size_t third = LEN / FIXTURE_CONTENTS;
	for (enum fixture_content content = 0; content < FIXTURE_CONTENTS; content++) {
		uint8_t *const piece = fixture_bytes(content, 11, third);
		memcpy(shown->bytes + (size_t)content * third, piece, third);
		free(piece);
	}
	pack_fixture_put(&shown->fixture, span_of(shown->bytes, LEN), 3, &shown->stream);
	ck_assert_uint_gt(shown->stream.segment_count, 2);
	shown->runs = memory_new_array(shown->stream.segment_count, sizeof(*shown->runs));
	set_runs(shown, false);
}

static void shown_close(struct shown *shown)
{
	free(shown->runs);
	stored_stream_release(&shown->stream);
	free(shown->bytes);
	pack_fixture_close(&shown->fixture);
}

/* Reads bytes [offset, offset + length), `piece` at a time. */
static int shown_read(struct shown *shown, bool as_stored, uint64_t offset, uint64_t length,
	size_t piece, uint8_t *into, uint64_t *out_got, struct error *err)
{
	const struct xorb_source_params params = {.runs = shown->runs,
		.count = shown->stream.segment_count,
		.as_stored = as_stored,
		.offset = offset,
		.length = length};
	struct body_source *const source = xorb_source_open(shown->fixture.store, &params, err);
	*out_got = 0;
	if (source == NULL)
		return -1;
	ptrdiff_t got;
	while ((got = source->read(source, into + *out_got, piece, err)) > 0)
		*out_got += (uint64_t)got;
	source->close(source);
	return got < 0 ? -1 : 0;
}

static uint8_t *shown_whole(struct shown *shown, bool as_stored)
{
	uint8_t *const whole = memory_new(shown->length + 300000);
	struct error err = {0};
	uint64_t got;
	ck_assert_msg(
		shown_read(shown, as_stored, 0, shown->length, 300000, whole, &got, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(got, shown->length);
	return whole;
}

/* Walks the records and checks that their contents are the stream's bytes. Counts those of each
 * codec. */
static void expect_records(
	const uint8_t *whole, uint64_t length, const uint8_t *bytes, size_t codecs[256])
{
	struct codec_context *const codec = codec_context_new();
	uint8_t *const content = memory_new(CHUNK_MAX_BYTES);
	uint64_t at = 0;
	uint64_t done = 0;
	memset(codecs, 0, 256 * sizeof(*codecs));
	while (at < length) {
		const uint32_t stored = (uint32_t)little_endian_get(whole + at + 1, 3);
		const uint32_t size = (uint32_t)little_endian_get(whole + at + 5, 3);
		const uint8_t number = whole[at + 4];
		struct error err = {0};
		ck_assert_uint_eq(whole[at], 0);
		ck_assert_int_eq(codec_decode(codec, (enum codec)number,
					 span_of(whole + at + 8, stored), content, size, &err),
			0);
		ck_assert_int_eq(memcmp(content, bytes + done, size), 0);
		codecs[number]++;
		at += 8 + (uint64_t)stored;
		done += size;
	}
	ck_assert_uint_eq(at, length);
	ck_assert_uint_eq(done, LEN);
	free(content);
	codec_context_free(codec);
}

START_TEST(own_codecs_are_shown_plain)
{
	struct shown shown;
	shown_open(&shown, _i);
	size_t codecs[256];
	uint8_t *whole = shown_whole(&shown, false);
	expect_records(whole, shown.length, shown.bytes, codecs);
	for (size_t number = 64; number < 256; number++)
		ck_assert_uint_eq(codecs[number], 0);
	free(whole);
	const uint64_t plain = shown.length;
	set_runs(&shown, true);
	ck_assert_uint_lt(shown.length, plain);
	whole = shown_whole(&shown, true);
	expect_records(whole, shown.length, shown.bytes, codecs);
	ck_assert_uint_gt(codecs[0], 0);
	ck_assert_uint_gt(codecs[CODEC_ZSTD], 0);
	free(whole);
	shown_close(&shown);
}
END_TEST

START_TEST(any_range_is_a_piece_of_the_whole)
{
	static const size_t pieces[] = {100, 16384, 65536, 262144, 1024 * 1024};
	struct shown shown;
	shown_open(&shown, PACK_FIXTURE_MEMORY);
	for (int as_stored = 0; as_stored < 2; as_stored++) {
		set_runs(&shown, as_stored);
		uint8_t *const whole = shown_whole(&shown, as_stored);
		uint8_t *const into = memory_new(shown.length + pieces[4]);
		uint64_t state = 7;
		for (unsigned i = 0; i < 150; i++) {
			const uint64_t offset = fixture_random(&state) % shown.length;
			const uint64_t length = fixture_random(&state) %
				(i % 3 == 0 ? 40 : shown.length) % (shown.length - offset + 1);
			struct error err = {0};
			uint64_t got;
			ck_assert_int_eq(shown_read(&shown, as_stored, offset, length,
						 pieces[i % 5], into, &got, &err),
				0);
			ck_assert_uint_eq(got, length);
			ck_assert_int_eq(memcmp(into, whole + offset, length), 0);
		}
		free(into);
		free(whole);
	}
	shown_close(&shown);
}
END_TEST

START_TEST(runs_of_another_length_or_pack_are_not_found)
{
	struct shown shown;
	shown_open(&shown, PACK_FIXTURE_MEMORY);
	struct error err = {0};
	struct xorb_run *const run = &shown.runs[1];
	const struct xorb_run right = *run;
	const struct xorb_source_params params = {
		.runs = shown.runs, .count = shown.stream.segment_count, .length = 10};
	for (unsigned fault = 0; fault < 4; fault++) {
		*run = right;
		if (fault == 0)
			run->length++;
		else if (fault == 1)
			run->count++;
		else if (fault == 2)
			run->first = UINT32_MAX;
		else
			run->pack.bytes[3] ^= 1;
		err.kind = ERROR_NONE;
		ck_assert_ptr_null(xorb_source_open(shown.fixture.store, &params, &err));
		ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	}
	*run = right;
	shown_close(&shown);
}
END_TEST

/* Invariant 7: the bytes before a damaged record are right, and no byte of that record leaves. */
START_TEST(a_damaged_record_ends_the_stream)
{
	struct shown shown;
	shown_open(&shown, PACK_FIXTURE_FOLDER);
	uint8_t *const whole = shown_whole(&shown, false);
	char *const path = pack_fixture_path(&shown.fixture, &shown.runs[1].pack, "pack");
	pack_fixture_flip(path, 200 * 1024);
	uint8_t *const into = memory_new(shown.length + 300000);
	static const size_t pieces[] = {100, 65536, 300000};
	for (size_t i = 0; i < 3; i++) {
		struct error err = {0};
		uint64_t got;
		ck_assert_int_eq(
			shown_read(&shown, false, 0, shown.length, pieces[i], into, &got, &err),
			-1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
		ck_assert_uint_lt(got, shown.length);
		ck_assert_uint_ge(got, shown.runs[0].length);
		ck_assert_int_eq(memcmp(into, whole, got), 0);
	}
	free(into);
	free(path);
	free(whole);
	shown_close(&shown);
}
END_TEST

static void post(void *wakes)
{
	sem_post(wakes);
}

/* As a reactor reads: the place ends the test when a read would wait for it. */
static void expect_without_blocking(
	struct shown *shown, const uint8_t *whole, bool as_stored, uint64_t offset, size_t piece)
{
	const struct xorb_source_params params = {.runs = shown->runs,
		.count = shown->stream.segment_count,
		.as_stored = as_stored,
		.offset = offset,
		.length = shown->length - offset,
		.is_soon = true};
	struct error err = {0};
	uint8_t *const into = memory_new(shown->length + piece);
	sem_t wakes;
	int waits = 0;
	uint64_t have = 0;
	ptrdiff_t got;
	sem_init(&wakes, 0, 0);
	struct body_source *const source = xorb_source_open(shown->fixture.store, &params, &err);
	ck_assert_msg(source != NULL, "%s", err.text);
	source->let_wait(source, post, &wakes);
	while ((got = source->read(source, into + have, piece, &err)) != 0) {
		ck_assert_msg(got != -1, "%s", err.text);
		have += got > 0 ? (uint64_t)got : 0;
		waits += got == SOURCE_WAIT;
		while (got == SOURCE_WAIT && sem_wait(&wakes) != 0)
			ck_assert_int_eq(errno, EINTR);
	}
	ck_assert_uint_eq(have, params.length);
	ck_assert_int_eq(memcmp(into, whole + offset, have), 0);
	ck_assert_int_gt(waits, 0);
	source->close(source);
	sem_destroy(&wakes);
	free(into);
}

START_TEST(far_records_come_in_without_blocking)
{
	static const size_t pieces[] = {3000, 65536, 300000};
	struct shown shown;
	struct error err = {0};
	shown_open(&shown, PACK_FIXTURE_FAR);
	struct far_fixture *const far = &shown.fixture.far;
	pack_fixture_store_shared(&shown.fixture);
	set_runs(&shown, _i == 1);
	uint8_t *const whole = shown_whole(&shown, _i == 1);
	pack_fixture_reopen(&shown.fixture);
	far_fixture_play_reactor(far, true);
	/* the indexes are far */
	const struct xorb_source_params soon = {
		.runs = shown.runs, .count = 1, .as_stored = _i == 1, .length = 1, .is_soon = true};
	ck_assert_ptr_null(xorb_source_open(shown.fixture.store, &soon, &err));
	ck_assert_int_eq(err.kind, ERROR_NOT_READY);
	far_fixture_play_reactor(far, false);
	uint8_t *const again = shown_whole(&shown, _i == 1);
	ck_assert_int_eq(memcmp(again, whole, shown.length), 0);
	free(again);
	far_fixture_play_reactor(far, true);
	for (int i = 0; i < 9; i++) {
		far_fixture_cool(far);
		atomic_store(&far->garbled, i == 0);
		expect_without_blocking(&shown, whole, _i == 1,
			i % 3 == 0 ? 0 : shown.length * (uint64_t)i / 10, pieces[i / 3]);
	}
	far_fixture_play_reactor(far, false);
	free(whole);
	shown_close(&shown);
}
END_TEST

START_TEST(inline_bytes_are_one_plain_record)
{
	static const uint8_t expected[] = {0, 5, 0, 0, 0, 5, 0, 0, 'h', 'e', 'l', 'l', 'o'};
	uint8_t into[32];
	struct error err = {0};
	for (size_t from = 0; from <= sizeof(expected); from++) {
		struct body_source *const source =
			xorb_source_open_inline(span_text("hello"), from, sizeof(expected) - from);
		const ptrdiff_t got = source->read(source, into, sizeof(into), &err);
		ck_assert_int_eq(got, (ptrdiff_t)(sizeof(expected) - from));
		ck_assert_int_eq(memcmp(into, expected + from, (size_t)got), 0);
		source->close(source);
	}
}
END_TEST

Suite *test_xorb_source_suite(void);
Suite *test_xorb_source_suite(void)
{
	Suite *const suite = suite_create("xorb_source");
	TCase *const plain = tcase_create("plain");
	tcase_set_timeout(plain, 60);
	tcase_add_loop_test(plain, own_codecs_are_shown_plain, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(plain, any_range_is_a_piece_of_the_whole);
	tcase_add_test(plain, runs_of_another_length_or_pack_are_not_found);
	tcase_add_test(plain, a_damaged_record_ends_the_stream);
	tcase_add_test(plain, inline_bytes_are_one_plain_record);
	tcase_add_loop_test(plain, far_records_come_in_without_blocking, 0, 2);
	suite_add_tcase(suite, plain);
	return suite;
}
