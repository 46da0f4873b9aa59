/* Deduplication finds stored chunks by hints: rows of the chunk index may be stale, and maps keep
 * only 32 bits of an id. A wrong hint costs space and never gives the bytes of another chunk. */
#include "storage/ingest/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/gear.h"
#include "storage/ingest/ingest.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

/* Each is one chunk: too long for inline bytes, too short to be cut. */
enum { TWIN_BYTES = 1100, STREAM_BYTES = INGEST_SMALL_BYTES + 400000 };

/* Seeds of noise of TWIN_BYTES; the ids of both begin with the same four bytes. */
static const uint64_t TWINS[2] = {265404, 342166};

static struct pack_fixture fixture;

static void set_up(void)
{
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
}

static void tear_down(void)
{
	pack_fixture_close(&fixture);
}

static struct chunk_id twin_id(unsigned number)
{
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, TWINS[number], TWIN_BYTES);
	const struct chunk_id id = chunk_hash(span_of(bytes, TWIN_BYTES));
	free(bytes);
	return id;
}

/* Stores the bytes and expects to read them back. */
static void put_and_read(struct span bytes, struct stored_stream *out)
{
	pack_fixture_put(&fixture, bytes, 1, out);
	pack_fixture_settle(&fixture);
	pack_fixture_expect(&fixture, out, bytes);
}

static void put_twin(unsigned number, struct stored_stream *out)
{
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, TWINS[number], TWIN_BYTES);
	put_and_read(span_of(bytes, TWIN_BYTES), out);
	free(bytes);
}

START_TEST(the_twins_differ_behind_their_tag)
{
	const struct chunk_id first = twin_id(0);
	const struct chunk_id second = twin_id(1);
	ck_assert_uint_eq(little_endian_get(first.bytes, 4), little_endian_get(second.bytes, 4));
	ck_assert(!chunk_id_equal(&first, &second));
}
END_TEST

START_TEST(twins_in_the_shared_pack_are_told_apart)
{
	struct stored_stream first;
	struct stored_stream second;
	struct stored_stream again;
	put_twin(0, &first);
	put_twin(1, &second);
	put_twin(1, &again);
	ck_assert_mem_ne(first.segments, second.segments, sizeof *first.segments);
	ck_assert_mem_eq(again.segments, second.segments, sizeof *second.segments);
	stored_stream_release(&again);
	stored_stream_release(&second);
	stored_stream_release(&first);
}
END_TEST

/* Whole chunks of noise, then the twin as the last chunk. free() the bytes. */
static uint8_t *stream_before_twin(unsigned number, size_t *out_len)
{
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 7, STREAM_BYTES + TWIN_BYTES);
	uint8_t *const twin = fixture_bytes(FIXTURE_RANDOM, TWINS[number], TWIN_BYTES);
	struct gear gear;
	size_t whole = 0;
	gear_init(&gear);
	for (size_t next = 1; next > 0;) {
		next = gear_next(&gear, span_of(bytes + whole, STREAM_BYTES - whole));
		whole += next;
	}
	ck_assert_uint_gt(whole, INGEST_SMALL_BYTES);
	memcpy(bytes + whole, twin, TWIN_BYTES);
	free(twin);
	*out_len = whole + TWIN_BYTES;
	return bytes;
}

/* `loses_place`: the twin comes behind another chunk than in the pack, so only its tag leads to
 * it. */
static void put_behind(unsigned number, bool loses_place, struct stored_stream *out)
{
	size_t len;
	uint8_t *const bytes = stream_before_twin(number, &len);
	struct gear gear;
	size_t first;
	gear_init(&gear);
	first = gear_next(&gear, span_of(bytes, len));
	if (loses_place) {
		memmove(bytes + first, bytes + len - TWIN_BYTES, TWIN_BYTES);
		len = first + TWIN_BYTES;
	}
	put_and_read(span_of(bytes, len), out);
	free(bytes);
}

START_TEST(a_twin_behind_known_chunks_is_told_apart)
{
	struct stored_stream first;
	struct stored_stream second;
	put_behind(0, false, &first);
	const int64_t stored = metrics_get(fixture.metrics, METRIC_BYTES_STORED);
	put_behind(1, _i == 1, &second);
	const int64_t grown = metrics_get(fixture.metrics, METRIC_BYTES_STORED) - stored;
	ck_assert_int_ge(grown, TWIN_BYTES);
	ck_assert_int_lt(grown, STREAM_BYTES / 2); /* the chunks that are the same were found */
	stored_stream_release(&second);
	stored_stream_release(&first);
}
END_TEST

/* A stale row may lead to another chunk, behind the last chunk, or into a pack that is gone. */
static struct chunk_place stale_place(const struct stored_stream *stored, int kind)
{
	struct chunk_place place = {.pack = stored->segments[0].pack};
	place.chunk = kind == 0 ? stored->segments[0].first + 1 : 100000;
	if (kind == 2)
		memset(place.pack.bytes, 0xee, sizeof place.pack.bytes);
	return place;
}

START_TEST(a_stale_row_of_the_index_gives_no_other_bytes)
{
	struct error err = {0};
	struct stored_stream stored;
	struct stored_stream put;
	put_behind(0, false, &stored);
	const struct chunk_index_row row = {.id = twin_id(1), .place = stale_place(&stored, _i)};
	ck_assert_int_eq(chunk_index_add(fixture.chunk_index, &row, 1, &err), 0);
	put_twin(1, &put);
	stored_stream_release(&put);
	stored_stream_release(&stored);
}
END_TEST

Suite *test_dedup_suite(void);

Suite *test_dedup_suite(void)
{
	Suite *const suite = suite_create("dedup");
	TCase *const tests = tcase_create("dedup");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, the_twins_differ_behind_their_tag);
	tcase_add_test(tests, twins_in_the_shared_pack_are_told_apart);
	tcase_add_loop_test(tests, a_twin_behind_known_chunks_is_told_apart, 0, 2);
	tcase_add_loop_test(tests, a_stale_row_of_the_index_gives_no_other_bytes, 0, 3);
	suite_add_tcase(suite, tests);
	return suite;
}
