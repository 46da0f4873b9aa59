#include "storage/ingest/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/chunk_stream.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

static const size_t sizes[] = {
	0,
	1,
	1023,
	1024,
	1025,
	8191,
	8192,
	65536,
	131072,
	131073,
	262143,
	262144,
	262145,
	300000,
	1048576,
	1300001,
	5000000,
};
enum { SIZES = sizeof sizes / sizeof *sizes };

struct chunk_list {
	struct chunk_entry *entries;
	size_t count;
};

static int list_take(void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	(void)err;
	struct chunk_list *const list = taker;
	list->entries = memory_grow(list->entries, list->count + 1, sizeof *list->entries);
	list->entries[list->count++] = (struct chunk_entry){.id = *id, .size = content.len};
	return 0;
}

static struct chunk_id file_hash_of(struct span bytes)
{
	struct chunk_list list = {0};
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(list_take, &list);
	ck_assert_int_eq(chunk_stream_push(stream, bytes, &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	const struct chunk_id hash = chunk_hash_file(list.entries, list.count);
	chunk_stream_free(stream);
	free(list.entries);
	return hash;
}

START_TEST(any_size_comes_back_and_is_named_right)
{
	const enum pack_fixture_kind kind = (enum pack_fixture_kind)(_i % PACK_FIXTURE_KINDS);
	const size_t size = sizes[_i / PACK_FIXTURE_KINDS];
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, kind, 700000);
	for (enum fixture_content content = 0; content < FIXTURE_CONTENTS; content++) {
		uint8_t *const bytes = fixture_bytes(content, size, size);
		const struct span span = span_of(bytes, size);
		struct stored_stream stream;
		pack_fixture_put(&fixture, span, content, &stream);
		const struct chunk_id hash = file_hash_of(span);
		ck_assert(chunk_id_equal(&stream.file_hash, &hash));
		pack_fixture_expect(&fixture, &stream, span);
		stored_stream_release(&stream);
		free(bytes);
	}
	pack_fixture_close(&fixture);
}
END_TEST

static void check_checksum(
	const struct checksum *actual, enum checksum_algorithm algorithm, struct span bytes)
{
	ck_assert_int_eq(actual->algorithm, algorithm);
	if (algorithm == CHECKSUM_NONE)
		return;
	struct checksum expected;
	checksum_of(algorithm, bytes, &expected);
	ck_assert_msg(checksum_equal(actual, &expected), "%s of %zu bytes",
		checksum_name(algorithm), bytes.len);
	ck_assert_int_eq(actual->type, CHECKSUM_FULL_OBJECT);
}

static void check_digests(
	struct pack_fixture *fixture, struct ingest_options options, struct span bytes)
{
	struct error err = {0};
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	pack_writer_end_options(&end, &options);
	options.packs = fixture->store;
	struct ingest *const ingest = ingest_open(&options, &err);
	ck_assert_int_eq(pack_fixture_write(ingest, &end, bytes, bytes.len, &err), 0);
	ck_assert_msg(pack_fixture_finish(ingest, &end, &err) == 0, "%s", err.text);
	const struct stored_part *const part = ingest_part(ingest);
	check_checksum(&part->checksum, options.checksum, bytes);
	check_checksum(&part->declared, options.declared, bytes);
	const struct digest128 digest = xxh3_128(bytes);
	ck_assert(digest128_equal(&part->digest, &digest));
	ck_assert_int_eq(part->has_md5, options.want_md5);
	struct checksum md5;
	checksum_of(CHECKSUM_MD5, bytes, &md5);
	if (part->has_md5)
		ck_assert_mem_eq(part->md5, md5.bytes, md5.len);
	ingest_free(ingest);
	pack_writer_end_release(&end);
}

/* Tests each algorithm alone, beside MD5, and with each other one that a client may declare.
 * Streams that go through the helpers, where one loop computes all digests, are tested with none,
 * the same and one other. */
START_TEST(checksums_are_those_of_the_bytes)
{
	static const size_t lengths[] = {
		0, 1000, INGEST_SMALL_BYTES, INGEST_SMALL_BYTES + 1, 2500001};
	const enum checksum_algorithm algorithm = (enum checksum_algorithm)(_i / 2);
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, PACK_FIXTURE_MEMORY, 0);
	const size_t stride = (size_t)unit_stride(2);
	for (size_t i = (size_t)_i % stride; i < sizeof lengths / sizeof *lengths; i += stride) {
		uint8_t *const bytes = fixture_bytes(FIXTURE_TEXT, i, lengths[i]);
		for (int declared = CHECKSUM_NONE; declared < CHECKSUM_ALGORITHMS; declared++) {
			if (lengths[i] > 1000 && declared != CHECKSUM_NONE &&
				declared != (int)algorithm &&
				declared != ((int)algorithm + (int)i) % CHECKSUM_ALGORITHMS)
				continue;
			const struct ingest_options options = {
				.want_md5 = _i % 2 == 0,
				.checksum = algorithm,
				.declared = (enum checksum_algorithm)declared,
			};
			check_digests(&fixture, options, span_of(bytes, lengths[i]));
		}
		free(bytes);
	}
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(the_same_bytes_are_stored_once)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, _i, 0);
	enum { LEN = 6000000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct stored_stream first, second, third;
	pack_fixture_put(&fixture, span_of(bytes, LEN), 1, &first);
	pack_fixture_settle(&fixture);
	const int64_t stored = metrics_get(fixture.metrics, METRIC_BYTES_STORED);
	pack_fixture_put(&fixture, span_of(bytes, LEN), 2, &second);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_BYTES_STORED), stored);
	ck_assert_uint_eq(second.segment_count, first.segment_count);
	ck_assert_mem_eq(
		second.segments, first.segments, first.segment_count * sizeof *first.segments);
	ck_assert(chunk_id_equal(&first.file_hash, &second.file_hash));
	/* an edit in the middle costs only the chunks around it */
	bytes[LEN / 2] ^= 1;
	pack_fixture_put(&fixture, span_of(bytes, LEN), 3, &third);
	ck_assert_int_le(
		metrics_get(fixture.metrics, METRIC_BYTES_STORED), stored + 3 * CHUNK_MAX_BYTES);
	pack_fixture_expect(&fixture, &third, span_of(bytes, LEN));
	bytes[LEN / 2] ^= 1;
	pack_fixture_expect(&fixture, &second, span_of(bytes, LEN));
	ck_assert_uint_eq(third.segment_count, 3);
	stored_stream_release(&first);
	stored_stream_release(&second);
	stored_stream_release(&third);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(a_small_upload_repeats_one_in_the_open_pack)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, _i, 0);
	enum { LEN = 200000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct stored_stream first, second;
	pack_fixture_put(&fixture, span_of(bytes, LEN), 1, &first);
	const int64_t stored = metrics_get(fixture.metrics, METRIC_BYTES_STORED);
	pack_fixture_put(&fixture, span_of(bytes, LEN), 2, &second);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_BYTES_STORED), stored);
	pack_fixture_expect(&fixture, &second, span_of(bytes, LEN));
	stored_stream_release(&first);
	stored_stream_release(&second);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(repeats_within_a_stream_are_stored_once)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, _i, 0);
	enum { PIECE = 1000000, PIECES = 5 };
	uint8_t *const piece = fixture_bytes(FIXTURE_RANDOM, 1, PIECE);
	uint8_t *const bytes = memory_new((size_t)PIECE * PIECES);
	for (size_t i = 0; i < PIECES; i++)
		memcpy(bytes + i * PIECE, piece, PIECE);
	struct stored_stream stream;
	pack_fixture_put(&fixture, span_of(bytes, (size_t)PIECE * PIECES), 1, &stream);
	ck_assert_int_lt(metrics_get(fixture.metrics, METRIC_BYTES_STORED), 2 * PIECE);
	pack_fixture_expect(&fixture, &stream, span_of(bytes, (size_t)PIECE * PIECES));
	stored_stream_release(&stream);
	free(piece);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(a_long_run_of_zeros_has_bounded_segments)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, PACK_FIXTURE_MEMORY, 0);
	const size_t len = (size_t)100 << 20;
	uint8_t *const zeros = memory_new(len);
	struct stored_stream stream;
	pack_fixture_put(&fixture, span_of(zeros, len), 0, &stream);
	ck_assert_uint_le(stream.segment_count, 512 + len / CHUNK_MAX_BYTES / 64 + 2);
	ck_assert_int_lt(metrics_get(fixture.metrics, METRIC_BYTES_STORED), 1 << 20);
	pack_fixture_expect(&fixture, &stream, span_of(zeros, len));
	stored_stream_release(&stream);
	free(zeros);
	pack_fixture_close(&fixture);
}
END_TEST

/* Stale rows of the chunk index must not be believed. */
START_TEST(a_stale_index_entry_is_ignored)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	enum { LEN = 400000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct stored_stream stream, other;
	uint8_t *const other_bytes = fixture_bytes(FIXTURE_RANDOM, 2, LEN);
	pack_fixture_put(&fixture, span_of(other_bytes, LEN), 0, &other);
	pack_fixture_settle(&fixture);
	struct chunk_list list = {0};
	struct chunk_stream *const chunks = chunk_stream_new(list_take, &list);
	chunk_stream_push(chunks, span_of(bytes, LEN), &err);
	const struct pack_id gone = {{0x77}};
	for (size_t i = 0; i < list.count; i++) {
		const struct chunk_index_row rows[] = {
			{.id = list.entries[i].id,
				.place = {.pack = i % 2 == 0 ? gone : other.segments[0].pack,
					.chunk = (uint32_t)(i % 3 * 1000)}},
		};
		ck_assert_int_eq(chunk_index_add(fixture.chunk_index, rows, 1, &err), 0);
	}
	pack_fixture_put(&fixture, span_of(bytes, LEN), 0, &stream);
	pack_fixture_expect(&fixture, &stream, span_of(bytes, LEN));
	pack_fixture_expect(&fixture, &other, span_of(other_bytes, LEN));
	ck_assert(!pack_store_is_held(fixture.store, &gone));
	chunk_stream_free(chunks);
	free(list.entries);
	stored_stream_release(&stream);
	stored_stream_release(&other);
	free(bytes);
	free(other_bytes);
	pack_fixture_close(&fixture);
}
END_TEST

/* A commit that broke off may come back at the next start with its rows. */
START_TEST(packs_that_a_commit_in_doubt_may_name_stay_held)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_MEMORY, 0);
	enum { LEN = 1000000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct stored_stream stream;
	pack_fixture_put(&fixture, span_of(bytes, LEN), 0, &stream);
	pack_fixture_settle(&fixture);
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(&fixture, &end, true);
	ck_assert_int_eq(pack_fixture_write(ingest, &end, span_of(bytes, LEN), 1, &err), 0);
	ingest_in_doubt(ingest);
	ingest_free(ingest);
	pack_fixture_settle(&fixture);
	ck_assert(pack_store_is_held(fixture.store, &stream.segments[0].pack));
	pack_writer_end_release(&end);
	stored_stream_release(&stream);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(a_pack_found_is_held_until_free)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	enum { LEN = 1000000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct stored_stream stream;
	pack_fixture_put(&fixture, span_of(bytes, LEN), 0, &stream);
	pack_fixture_settle(&fixture);
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(&fixture, &end, true);
	ck_assert_int_eq(pack_fixture_write(ingest, &end, span_of(bytes, LEN), 1, &err), 0);
	ck_assert(pack_store_is_held(fixture.store, &stream.segments[0].pack));
	ingest_free(ingest);
	pack_fixture_settle(&fixture);
	ck_assert(!pack_store_is_held(fixture.store, &stream.segments[0].pack));
	pack_writer_end_release(&end);
	stored_stream_release(&stream);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

/* An ingest that is freed at any stage before the commit leaves no file. */
START_TEST(an_aborted_ingest_leaves_no_files)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 700000);
	enum { LEN = 4000000 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(&fixture, &end, true);
	if (_i > 0)
		ck_assert_int_eq(pack_fixture_write(ingest, &end,
					 span_of(bytes, _i == 1 ? 1000 : LEN), 1, &err),
			0);
	if (_i > 2)
		ck_assert_int_eq(pack_fixture_finish(ingest, &end, &err), 0);
	ingest_free(ingest);
	pack_fixture_settle(&fixture);
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 0);
	struct pack_id *packs;
	ck_assert_uint_eq(pack_cache_list(fixture.store->cache, &packs), 0);
	free(packs);
	ck_assert_int_eq(end.is_done, _i > 2);
	pack_writer_end_release(&end);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

struct gate {
	struct helper_job job;
	struct lock lock;
	struct lock_condition changed;
	bool is_open;
};

static void gate_run(struct helper_job *job)
{
	struct gate *const gate = (struct gate *)job;
	lock_enter(&gate->lock);
	while (!gate->is_open)
		lock_wait(&gate->lock, &gate->changed);
	lock_leave(&gate->lock);
}

/* Both helpers are kept busy, so the digests are behind: a write waits, nothing of it is taken, and
 * it succeeds once there is room. */
START_TEST(a_write_waits_for_slow_digests)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_MEMORY, 0);
	struct gate gates[2] = {0};
	struct helper_lane lanes[2] = {0};
	for (int i = 0; i < 2; i++) {
		gates[i].job.run = gate_run;
		lock_init(&gates[i].lock, LOCK_CONTROL);
		lock_condition_init(&gates[i].changed);
		helpers_submit(fixture.helpers, &lanes[i], &gates[i].job);
	}
	enum { LEN = 20 << 20, PIECE = 256 * 1024 };
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 1, LEN);
	struct pack_writer_end end;
	pack_writer_end_init(&end);
	struct ingest *const ingest = pack_fixture_ingest(&fixture, &end, true);
	size_t at = 0;
	enum sink_result result = SINK_TAKEN;
	while (result == SINK_TAKEN && at < LEN) {
		result = ingest_write(ingest, span_of(bytes + at, PIECE), &err);
		at += result == SINK_TAKEN ? PIECE : 0;
	}
	ck_assert_int_eq(result, SINK_WAIT);
	ck_assert_uint_le(at, 10 << 20);
	ck_assert_int_eq(ingest_write(ingest, span_of(bytes + at, PIECE), &err), SINK_WAIT);
	ck_assert_uint_eq(end.rooms, 0);
	for (int i = 0; i < 2; i++) {
		lock_enter(&gates[i].lock);
		gates[i].is_open = true;
		lock_signal(&gates[i].changed);
		lock_leave(&gates[i].lock);
	}
	ck_assert_int_eq(
		pack_fixture_write(ingest, &end, span_of(bytes + at, LEN - at), 5, &err), 0);
	ck_assert_msg(pack_fixture_finish(ingest, &end, &err) == 0, "%s", err.text);
	ck_assert_int_eq(pack_fixture_commit(&fixture, ingest, &err), 0);
	const struct digest128 digest = xxh3_128(span_of(bytes, LEN));
	ck_assert(digest128_equal(&ingest_part(ingest)->digest, &digest));
	ck_assert_uint_eq(ingest_part(ingest)->size, LEN);
	ingest_free(ingest);
	pack_fixture_settle(&fixture);
	for (int i = 0; i < 2; i++) {
		lock_condition_release(&gates[i].changed);
		lock_release(&gates[i].lock);
	}
	pack_writer_end_release(&end);
	free(bytes);
	pack_fixture_close(&fixture);
}
END_TEST

static const struct {
	int kinds;
	size_t len;
} faults[] = {
	{FILE_FAULT_WRITE, 2500000},
	{FILE_FAULT_SYNC, 2500000},
	{FILE_FAULT_RENAME, 2500000},
	{FILE_FAULT_OPEN, 2500000},
	{FILE_FAULT_WRITE, 50000},
	{FILE_FAULT_SYNC, 50000},
	{FILE_FAULT_OPEN, 50000},
};

/* The n-th call of a kind fails, for every n until all calls succeed. A put either fails or is
 * complete; everything stored before stays readable; a failed put leaves no files (but a shared
 * pack that others use). */
START_TEST(a_fault_anywhere_fails_cleanly)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 700000);
	uint8_t *const before_bytes = fixture_bytes(FIXTURE_RANDOM, 1000, 100000);
	struct stored_stream before;
	pack_fixture_put(&fixture, span_of(before_bytes, 100000), 0, &before);
	bool clean = false;
	for (int n = 0; !clean; n++) {
		ck_assert_int_lt(n, 200);
		struct error err = {0};
		struct stored_stream stream = {0};
		uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, (uint64_t)n, faults[_i].len);
		const size_t records = fixture.record_count;
		pack_fixture_set_faults(&fixture, faults[_i].kinds, n);
		const int result = pack_fixture_try_put(
			&fixture, span_of(bytes, faults[_i].len), 0, &stream, &err);
		pack_fixture_settle(&fixture);
		clean = fixture.faults.countdown >= 0;
		pack_fixture_set_faults(&fixture, 0, 0);
		if (result == 0)
			pack_fixture_expect(&fixture, &stream, span_of(bytes, faults[_i].len));
		else
			ck_assert_msg(err.kind == ERROR_IO, "%s", err.text);
		if (result != 0)
			ck_assert_uint_eq(fixture.record_count, records);
		pack_fixture_expect(&fixture, &before, span_of(before_bytes, 100000));
		stored_stream_release(&stream);
		free(bytes);
	}
	pack_fixture_reopen(&fixture);
	pack_fixture_settle(&fixture); /* helpers make the missing indexes again */
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 2 * fixture.record_count);
	pack_fixture_expect(&fixture, &before, span_of(before_bytes, 100000));
	stored_stream_release(&before);
	free(before_bytes);
	pack_fixture_close(&fixture);
}
END_TEST

struct worker {
	struct pack_fixture *fixture;
	struct lock *catalog;
	unsigned number;
	pthread_t thread;
};

/* Stores contents and reads them back; some are its own, some are shared by all workers. */
static void *worker_run(void *argument)
{
	const struct worker *const worker = argument;
	struct pack_fixture *const fixture = worker->fixture;
	for (unsigned round = 0; round < 12; round++) {
		struct error err = {0};
		const size_t len = sizes[(round * 5 + worker->number) % SIZES];
		const uint64_t seed = round % 3 == 0 ? round : worker->number * 100 + round;
		uint8_t *const bytes = fixture_bytes(round % FIXTURE_CONTENTS, seed, len);
		struct pack_writer_end end;
		pack_writer_end_init(&end);
		struct ingest *const ingest = pack_fixture_ingest(fixture, &end, true);
		ck_assert_int_eq(
			pack_fixture_write(ingest, &end, span_of(bytes, len), seed + 1, &err), 0);
		if (round % 4 == 3) {
			ingest_free(ingest); /* its jobs may still run, but they call nobody */
		} else {
			ck_assert_msg(pack_fixture_finish(ingest, &end, &err) == 0, "%s", err.text);
			lock_enter(worker->catalog);
			ck_assert_int_eq(pack_fixture_commit(fixture, ingest, &err), 0);
			lock_leave(worker->catalog);
			const struct stored_part *const part = ingest_part(ingest);
			struct stored_stream stream = {.size = len,
				.is_inline = part->is_inline,
				.segments = (struct segment *)part->segments,
				.segment_count = part->segment_count};
			if (part->is_inline)
				memcpy(stream.inline_bytes, part->inline_bytes.data, len);
			pack_fixture_expect(fixture, &stream, span_of(bytes, len));
			ingest_free(ingest);
		}
		pack_writer_end_release(&end);
		free(bytes);
	}
	return NULL;
}

START_TEST(threads_put_and_read_side_by_side)
{
	enum { WORKERS = 4 };
	struct pack_fixture fixture;
	struct lock catalog;
	pack_fixture_open(&fixture, _i, 400000);
	lock_init(&catalog, LOCK_COMMIT_QUEUE);
	struct worker workers[WORKERS];
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.fixture = &fixture, .catalog = &catalog, .number = i};
		lock_thread_start(&workers[i].thread, "worker", worker_run, &workers[i]);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	pack_fixture_settle(&fixture);
	if (_i == PACK_FIXTURE_FOLDER) {
		pack_fixture_reopen(&fixture);
		ck_assert_uint_eq(pack_fixture_file_count(&fixture), 2 * fixture.record_count);
	}
	lock_release(&catalog);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(streams_survive_a_restart)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 700000);
	struct stored_stream streams[SIZES];
	uint8_t *bytes[SIZES];
	for (size_t i = 0; i < SIZES; i++) {
		bytes[i] = fixture_bytes(i % FIXTURE_CONTENTS, i, sizes[i]);
		pack_fixture_put(&fixture, span_of(bytes[i], sizes[i]), i, &streams[i]);
	}
	pack_fixture_reopen(&fixture);
	pack_fixture_settle(&fixture);
	for (size_t i = 0; i < fixture.record_count; i++)
		ck_assert_int_eq(fixture.records[i].state, PACK_SEALED);
	for (size_t i = 0; i < SIZES; i++) {
		pack_fixture_expect(&fixture, &streams[i], span_of(bytes[i], sizes[i]));
		const int64_t stored = metrics_get(fixture.metrics, METRIC_BYTES_STORED);
		struct stored_stream again;
		pack_fixture_put(&fixture, span_of(bytes[i], sizes[i]), 0, &again);
		if (sizes[i] >
			/* own packs were indexed at their commit, and the shared one when recovery
			 * sealed it */
			INLINE_MAX_BYTES)
			ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_BYTES_STORED), stored);
		stored_stream_release(&again);
		stored_stream_release(&streams[i]);
		free(bytes[i]);
	}
	pack_fixture_close(&fixture);
}
END_TEST

Suite *test_ingest_suite(void);
Suite *test_ingest_suite(void)
{
	Suite *const suite = suite_create("ingest");
	TCase *const tcase = tcase_create("ingest");
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(
		tcase, any_size_comes_back_and_is_named_right, 0, SIZES * PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, checksums_are_those_of_the_bytes, 0, 2 * CHECKSUM_ALGORITHMS);
	tcase_add_loop_test(tcase, the_same_bytes_are_stored_once, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(
		tcase, a_small_upload_repeats_one_in_the_open_pack, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, repeats_within_a_stream_are_stored_once, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, a_long_run_of_zeros_has_bounded_segments);
	tcase_add_loop_test(tcase, a_stale_index_entry_is_ignored, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, packs_that_a_commit_in_doubt_may_name_stay_held);
	tcase_add_loop_test(tcase, a_pack_found_is_held_until_free, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, an_aborted_ingest_leaves_no_files, 0, 4);
	tcase_add_test(tcase, a_write_waits_for_slow_digests);
	tcase_add_loop_test(
		tcase, a_fault_anywhere_fails_cleanly, 0, sizeof faults / sizeof *faults);
	tcase_add_loop_test(tcase, threads_put_and_read_side_by_side, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, streams_survive_a_restart);
	suite_add_tcase(suite, tcase);
	return suite;
}
