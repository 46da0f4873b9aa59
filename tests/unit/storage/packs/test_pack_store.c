#include "storage/packs/pack_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "storage/packs/pack_store_parts.h"
#include "tests/unit/storage/pack_fixture.h"
#include "tests/unit/unit.h"

enum { SMALL = 20000 };

/* A small upload that is complete but not yet placed. */
struct small {
	struct pack_writer_end end;
	struct ingest *ingest;
	struct segment *segments; /* owned here once the ingest is gone */
	size_t segment_count;
	uint8_t *bytes;
};

static void small_open(struct small *small, struct pack_fixture *fixture, uint64_t seed)
{
	struct error err = {0};
	*small = (struct small){.ingest = NULL};
	pack_writer_end_init(&small->end);
	small->bytes = fixture_bytes(FIXTURE_RANDOM, seed, SMALL);
	small->ingest = pack_fixture_ingest(fixture, &small->end, false);
	ck_assert_int_eq(pack_fixture_write(
				 small->ingest, &small->end, span_of(small->bytes, SMALL), 0, &err),
		0);
	ck_assert_msg(pack_fixture_finish(small->ingest, &small->end, &err) == 0, "%s", err.text);
}

static void small_close(struct small *small)
{
	ingest_free(small->ingest);
	free(small->segments);
	free(small->bytes);
	pack_writer_end_release(&small->end);
}

/* To be called before the store closes, because an ingest must not outlive it. */
static void small_end(struct small *small)
{
	const struct stored_part *const part = ingest_part(small->ingest);
	small->segments = memory_new_array(part->segment_count, sizeof *small->segments);
	memcpy(small->segments, part->segments, part->segment_count * sizeof *small->segments);
	small->segment_count = part->segment_count;
	ingest_free(small->ingest);
	small->ingest = NULL;
}

static int small_read(struct pack_fixture *fixture, const struct small *small, struct error *err)
{
	const struct stored_part *const part =
		small->ingest != NULL ? ingest_part(small->ingest) : NULL;
	const struct stored_stream stream = {
		.size = SMALL,
		.segments = part != NULL ? (struct segment *)part->segments : small->segments,
		.segment_count = part != NULL ? part->segment_count : small->segment_count,
	};
	uint8_t got[SMALL];
	const int result =
		pack_fixture_try_get(fixture, &stream, 0, SMALL, ASSEMBLE_BLOCK_BYTES, got, err);
	if (result == 0)
		ck_assert_mem_eq(got, small->bytes, SMALL);
	return result;
}

static const struct pack_id *small_pack(const struct small *small)
{
	return &ingest_part(small->ingest)->segments[0].pack;
}

START_TEST(small_uploads_share_a_pack)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	struct small smalls[5];
	for (unsigned i = 0; i < 5; i++) {
		small_open(&smalls[i], &fixture, i);
		ck_assert_msg(
			pack_fixture_commit(&fixture, smalls[i].ingest, &err) == 0, "%s", err.text);
	}
	ck_assert_uint_eq(fixture.record_count, 1);
	ck_assert_int_eq(fixture.records[0].state, PACK_OPEN);
	ck_assert_uint_ge(fixture.records[0].length, 5 * SMALL);
	ck_assert_uint_lt(fixture.records[0].length, 5 * SMALL + 2000);
	for (unsigned i = 0; i < 5; i++) {
		ck_assert_mem_eq(small_pack(&smalls[i]), &fixture.records[0].id, PACK_ID_BYTES);
		ck_assert_msg(small_read(&fixture, &smalls[i], &err) == 0, "%s", err.text);
	}
	struct pack_record record;
	ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 0);
	for (unsigned i = 0; i < 5; i++)
		small_close(&smalls[i]);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(a_full_shared_pack_is_sealed_and_the_next_begins)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 3 * SMALL);
	struct small smalls[8];
	for (unsigned i = 0; i < 8; i++) {
		small_open(&smalls[i], &fixture, i);
		ck_assert_msg(
			pack_fixture_commit(&fixture, smalls[i].ingest, &err) == 0, "%s", err.text);
	}
	unsigned sealed = 0;
	for (size_t i = 0; i < fixture.record_count; i++) {
		sealed += fixture.records[i].state == PACK_SEALED;
		ck_assert_uint_le(fixture.records[i].length, 3 * SMALL);
	}
	ck_assert_uint_eq(fixture.record_count, 4);
	ck_assert_uint_eq(sealed, 3);
	ck_assert_int_eq(metrics_get(fixture.metrics, METRIC_PACKS_SEALED), 3);
	pack_fixture_settle(&fixture);
	if (_i == PACK_FIXTURE_FOLDER)
		ck_assert_uint_eq(pack_fixture_file_count(&fixture), 4 + 3);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_msg(small_read(&fixture, &smalls[i], &err) == 0, "%s", err.text);
		small_close(&smalls[i]);
	}
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(an_abandoned_batch_keeps_what_was_committed_before)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	struct small kept, lost, later;
	small_open(&kept, &fixture, 1);
	ck_assert_int_eq(pack_fixture_commit(&fixture, kept.ingest, &err), 0);
	const struct pack_record before = fixture.records[0];
	small_open(&lost, &fixture, 2);
	ck_assert_int_eq(ingest_place(lost.ingest, &err), 0);
	ck_assert_int_eq(pack_store_shared_sync(fixture.store, &err), 0);
	struct pack_record record;
	ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 1);
	ck_assert_uint_gt(record.length, before.length);
	pack_store_shared_abandon(fixture.store);
	ck_assert_int_eq(small_read(&fixture, &lost, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	small_open(&later, &fixture, 3);
	ck_assert_int_eq(pack_fixture_commit(&fixture, later.ingest, &err), 0);
	ck_assert_uint_eq(fixture.record_count, 2);
	ck_assert_int_eq(fixture.records[0].state, PACK_SEALED);
	ck_assert_uint_eq(fixture.records[0].length, before.length);
	ck_assert_uint_eq(fixture.records[0].chunks, before.chunks);
	ck_assert_int_eq(fixture.records[1].state, PACK_OPEN);
	ck_assert_msg(small_read(&fixture, &kept, &err) == 0, "%s", err.text);
	ck_assert_msg(small_read(&fixture, &later, &err) == 0, "%s", err.text);
	small_close(&kept);
	small_close(&lost);
	small_close(&later);
	pack_fixture_close(&fixture);
}
END_TEST

/* A reader cannot wait until the index file is written: it is made again from the pack. */
START_TEST(an_index_that_could_not_be_written_is_waited_for_by_nobody)
{
	struct pack_fixture fixture;
	struct error err = {0};
	struct small first, second;
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, SMALL + 1000);
	small_open(&first, &fixture, 1);
	small_open(&second, &fixture, 2);
	ck_assert_int_eq(pack_fixture_commit(&fixture, first.ingest, &err), 0);
	char *const index = pack_fixture_path(&fixture, small_pack(&first), "index");
	ck_assert_int_eq(mkdir(index, 0700), 0); /* blocks its place */
	ck_assert_int_eq(pack_fixture_commit(&fixture, second.ingest, &err), 0);
	pack_fixture_settle(&fixture);
	ck_assert_int_eq(rmdir(index), 0);
	ck_assert_int_eq(
		pack_cache_mode(fixture.store->cache, small_pack(&first)), PACK_CACHE_SAVED);
	ck_assert_msg(small_read(&fixture, &first, &err) == 0, "%s", err.text);
	free(index);
	small_close(&first);
	small_close(&second);
	pack_fixture_close(&fixture);
}
END_TEST

/* Content that was placed after the records of a batch is not committed with it. */
START_TEST(what_comes_while_a_batch_commits_is_of_the_next_one)
{
	struct pack_fixture fixture;
	struct error err = {0};
	struct pack_record record;
	struct small kept, lost;
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	small_open(&kept, &fixture, 1);
	small_open(&lost, &fixture, 2);
	ck_assert_int_eq(ingest_place(kept.ingest, &err), 0);
	ck_assert_int_eq(pack_store_shared_sync(fixture.store, &err), 0);
	ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 1);
	ck_assert_int_eq(ingest_place(lost.ingest, &err), 0);
	pack_store_shared_committed(fixture.store);
	ingest_committed(kept.ingest);
	pack_store_shared_abandon(fixture.store);
	ck_assert_msg(small_read(&fixture, &kept, &err) == 0, "%s", err.text);
	ck_assert_int_eq(small_read(&fixture, &lost, &err), -1);
	small_close(&kept);
	small_close(&lost);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(an_abandoned_first_batch_leaves_nothing)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	struct small lost;
	small_open(&lost, &fixture, 2);
	ck_assert_int_eq(ingest_place(lost.ingest, &err), 0);
	const struct pack_id pack = *small_pack(&lost);
	pack_store_shared_abandon(fixture.store);
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 0);
	pack_store_shared_abandon(fixture.store);
	struct pack_record record;
	ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 0);
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 0);
	ck_assert(!pack_cache_knows(fixture.store->cache, &pack));
	small_close(&lost);
	pack_fixture_close(&fixture);
}
END_TEST

static uint64_t file_bytes(const struct pack_fixture *fixture, const struct pack_id *pack)
{
	struct error err = {0};
	uint64_t size = 0;
	char *const path = pack_fixture_path(fixture, pack, "pack");
	ck_assert_msg(file_size(path, &size, &err) == 0, "%s", err.text);
	free(path);
	return size;
}

/* COMMIT broke off, and the crash that follows shows that it had happened: the bytes that its
 * records name must be there. */
START_TEST(a_batch_in_doubt_may_come_back_with_the_next_start)
{
	const bool is_first = _i == 0;
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	struct small kept, unsure;
	small_open(&kept, &fixture, 1);
	if (!is_first)
		ck_assert_int_eq(pack_fixture_commit(&fixture, kept.ingest, &err), 0);
	small_open(&unsure, &fixture, 2);
	ck_assert_int_eq(ingest_place(unsure.ingest, &err), 0);
	ck_assert_int_eq(pack_store_shared_sync(fixture.store, &err), 0);
	struct pack_record record;
	ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 1);
	pack_store_shared_doubt(fixture.store);
	ck_assert_uint_eq(file_bytes(&fixture, &record.id), record.length);
	/* until then it did not happen */
	ck_assert_int_eq(small_read(&fixture, &unsure, &err), -1);
	if (is_first) {
		fixture.records = memory_grow(fixture.records, 1, sizeof(record));
		fixture.record_count = 1;
	}
	fixture.records[0] = record;
	small_end(&kept);
	small_end(&unsure);
	pack_fixture_reopen(&fixture);
	ck_assert_msg(small_read(&fixture, &unsure, &err) == 0, "%s", err.text);
	if (!is_first)
		ck_assert_msg(small_read(&fixture, &kept, &err) == 0, "%s", err.text);
	small_close(&kept);
	small_close(&unsure);
	pack_fixture_close(&fixture);
}
END_TEST

/* A batch without small uploads fails before it asked for records: what earlier batches committed
 * stays. */
START_TEST(abandoning_a_batch_that_wrote_nothing_loses_nothing)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	struct small kept;
	small_open(&kept, &fixture, 1);
	ck_assert_int_eq(pack_fixture_commit(&fixture, kept.ingest, &err), 0);
	pack_store_shared_abandon(fixture.store);
	ck_assert_msg(small_read(&fixture, &kept, &err) == 0, "%s", err.text);
	/* a batch that fails gets the seal, and the next one gets it again */
	struct pack_record record;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(pack_store_shared_records(fixture.store, &record, 1), 1);
		ck_assert_int_eq(record.state, PACK_SEALED);
		ck_assert_uint_eq(record.length, fixture.records[0].length);
		pack_store_shared_abandon(fixture.store);
	}
	ck_assert_msg(small_read(&fixture, &kept, &err) == 0, "%s", err.text);
	small_close(&kept);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(a_failed_sync_of_the_shared_pack_fails_the_batch_only)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	struct small kept, lost, later;
	small_open(&kept, &fixture, 1);
	ck_assert_int_eq(pack_fixture_commit(&fixture, kept.ingest, &err), 0);
	small_open(&lost, &fixture, 2);
	pack_fixture_set_faults(&fixture, _i == 0 ? FILE_FAULT_SYNC : FILE_FAULT_WRITE, 0);
	ck_assert_int_eq(pack_fixture_commit(&fixture, lost.ingest, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	pack_fixture_set_faults(&fixture, 0, 0);
	small_open(&later, &fixture, 3);
	ck_assert_int_eq(pack_fixture_commit(&fixture, later.ingest, &err), 0);
	ck_assert_int_eq(small_read(&fixture, &kept, &err), 0);
	ck_assert_int_eq(small_read(&fixture, &later, &err), 0);
	small_end(&kept);
	small_end(&lost);
	small_end(&later);
	pack_fixture_reopen(&fixture);
	ck_assert_int_eq(small_read(&fixture, &kept, &err), 0);
	ck_assert_int_eq(small_read(&fixture, &later, &err), 0);
	small_close(&kept);
	small_close(&lost);
	small_close(&later);
	pack_fixture_close(&fixture);
}
END_TEST

static void append_garbage(const char *path, size_t len)
{
	const int fd = open(path, O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	uint8_t *const bytes = fixture_bytes(FIXTURE_RANDOM, 4, len);
	ck_assert_int_eq(write(fd, bytes, len), len);
	free(bytes);
	close(fd);
}

/* Bytes after the committed length are not touched: only the catalog says where that is. */
START_TEST(recovery_seals_the_open_pack_and_leaves_its_tail)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, 0);
	struct small smalls[3];
	for (unsigned i = 0; i < 3; i++) {
		small_open(&smalls[i], &fixture, i);
		ck_assert_int_eq(pack_fixture_commit(&fixture, smalls[i].ingest, &err), 0);
	}
	struct small unfinished;
	small_open(&unfinished, &fixture, 9);
	ck_assert_int_eq(ingest_place(unfinished.ingest, &err), 0);
	char *const path = pack_fixture_path(&fixture, &fixture.records[0].id, "pack");
	append_garbage(path, 1000);
	small_close(&unfinished);
	for (unsigned i = 0; i < 3; i++)
		small_end(&smalls[i]);
	uint64_t before;
	uint64_t size;
	ck_assert_int_eq(file_size(path, &before, &err), 0);
	ck_assert_uint_gt(before, fixture.records[0].length);
	pack_fixture_reopen(&fixture);
	ck_assert_int_eq(file_size(path, &size, &err), 0);
	ck_assert_uint_eq(size, before);
	ck_assert_int_eq(fixture.records[0].state, PACK_SEALED);
	ck_assert_uint_eq(pack_fixture_file_count(&fixture), 2);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_msg(small_read(&fixture, &smalls[i], &err) == 0, "%s", err.text);
		small_close(&smalls[i]);
	}
	free(path);
	pack_fixture_close(&fixture);
}
END_TEST

/* The start goes on; objects in that pack answer errors, others are right. */
START_TEST(recovery_survives_damage)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, SMALL + 1000);
	struct small hurt, fine;
	small_open(&hurt, &fixture, 1);
	small_open(&fine, &fixture, 2);
	ck_assert_int_eq(pack_fixture_commit(&fixture, hurt.ingest, &err), 0);
	ck_assert_int_eq(pack_fixture_commit(&fixture, fine.ingest, &err), 0);
	ck_assert_uint_eq(fixture.record_count, 2);
	pack_fixture_settle(&fixture);
	const struct pack_record *const record = &fixture.records[_i % 2];
	/* sealed before; open until the restart */
	struct small *const victim = _i % 2 == 0 ? &hurt : &fine;
	struct small *const other = _i % 2 == 0 ? &fine : &hurt;
	char *const path = pack_fixture_path(&fixture, &record->id, "pack");
	char *const index = pack_fixture_path(&fixture, &record->id, "index");
	unlink(index);
	if (_i < 2)
		ck_assert_int_eq(unlink(path), 0);
	else if (_i < 4)
		ck_assert_int_eq(truncate(path, (off_t)record->length - 1), 0);
	else
		pack_fixture_flip(path, record->length - 20);
	small_end(&hurt);
	small_end(&fine);
	pack_fixture_reopen(&fixture);
	ck_assert_int_eq(small_read(&fixture, victim, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_msg(small_read(&fixture, other, &err) == 0, "%s", err.text);
	small_close(&hurt);
	small_close(&fine);
	free(path);
	free(index);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(unknown_packs_and_chunks_are_corrupt)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, _i, 0);
	struct small small;
	small_open(&small, &fixture, 1);
	ck_assert_int_eq(pack_fixture_commit(&fixture, small.ingest, &err), 0);
	uint8_t *const into = memory_new(CHUNK_MAX_BYTES);
	size_t len;
	const struct chunk_place unknown = {.pack = {{1, 2, 3}}};
	struct chunk_place place = {.pack = *small_pack(&small), .chunk = 1000};
	ck_assert_int_eq(
		pack_store_read_chunk(fixture.store, &unknown, NULL, into, &len, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	err = (struct error){0};
	ck_assert_int_eq(pack_store_read_chunk(fixture.store, &place, NULL, into, &len, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	struct chunk_entry entry;
	ck_assert_int_eq(
		pack_store_chunk_entry(fixture.store, small_pack(&small), 1000, &entry, &err), -1);
	struct codec_context *const codec = codec_context_new();
	place.chunk = 0;
	ck_assert_int_eq(pack_store_read_chunk(fixture.store, &place, codec, into, &len, &err), 0);
	ck_assert_int_eq(
		pack_store_chunk_entry(fixture.store, small_pack(&small), 0, &entry, &err), 0);
	ck_assert_uint_eq(entry.size, len);
	ck_assert_mem_eq(into, small.bytes, len);
	codec_context_free(codec);
	free(into);
	small_close(&small);
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(holds_are_counted)
{
	struct pack_fixture fixture;
	pack_fixture_open(&fixture, PACK_FIXTURE_MEMORY, 0);
	const struct pack_id pack = {{7}};
	ck_assert(!pack_store_is_held(fixture.store, &pack));
	const unsigned turn = pack_store_hold(fixture.store, &pack);
	ck_assert_uint_eq(pack_store_hold(fixture.store, &pack), turn);
	pack_store_unhold(fixture.store, &pack, turn);
	ck_assert(pack_store_is_held(fixture.store, &pack));
	pack_store_unhold(fixture.store, &pack, turn);
	ck_assert(!pack_store_is_held(fixture.store, &pack));
	pack_fixture_close(&fixture);
}
END_TEST

START_TEST(packs_over_a_gibibyte_are_refused)
{
	struct error err = {0};
	const struct pack_store_options options = {
		.backend = backend_memory_new(), .pack_max_bytes = (UINT64_C(1) << 30) + 1};
	ck_assert_ptr_null(pack_store_open(&options, &err));
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(reindexing_finds_sealed_packs_again)
{
	struct pack_fixture fixture;
	struct error err = {0};
	pack_fixture_open(&fixture, PACK_FIXTURE_FOLDER, SMALL + 1000);
	struct small first, second;
	small_open(&first, &fixture, 1);
	small_open(&second, &fixture, 2);
	ck_assert_int_eq(pack_fixture_commit(&fixture, first.ingest, &err), 0);
	ck_assert_int_eq(pack_fixture_commit(&fixture, second.ingest, &err), 0);
	pack_fixture_settle(&fixture);
	struct chunk_entry entry;
	ck_assert_int_eq(
		pack_store_chunk_entry(fixture.store, small_pack(&first), 0, &entry, &err), 0);
	struct chunk_place place;
	ck_assert(chunk_index_find(fixture.chunk_index, &entry.id, &place));
	ck_assert_int_eq(chunk_index_forget_pack(fixture.chunk_index, small_pack(&first), &err), 0);
	ck_assert(!chunk_index_find(fixture.chunk_index, &entry.id, &place));
	ck_assert_msg(pack_store_reindex(fixture.store, &err) == 0, "%s", err.text);
	ck_assert(chunk_index_find(fixture.chunk_index, &entry.id, &place));
	ck_assert_mem_eq(&place.pack, small_pack(&first), PACK_ID_BYTES);
	ck_assert_uint_eq(place.chunk, 0);
	small_close(&first);
	small_close(&second);
	pack_fixture_close(&fixture);
}
END_TEST

Suite *test_pack_store_suite(void);
Suite *test_pack_store_suite(void)
{
	Suite *const suite = suite_create("pack_store");
	TCase *const tcase = tcase_create("pack_store");
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, small_uploads_share_a_pack, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(
		tcase, a_full_shared_pack_is_sealed_and_the_next_begins, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(
		tcase, an_abandoned_batch_keeps_what_was_committed_before, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, an_index_that_could_not_be_written_is_waited_for_by_nobody);
	tcase_add_test(tcase, what_comes_while_a_batch_commits_is_of_the_next_one);
	tcase_add_test(tcase, an_abandoned_first_batch_leaves_nothing);
	tcase_add_loop_test(tcase, a_batch_in_doubt_may_come_back_with_the_next_start, 0, 2);
	tcase_add_loop_test(
		tcase, abandoning_a_batch_that_wrote_nothing_loses_nothing, 0, PACK_FIXTURE_KINDS);
	tcase_add_loop_test(tcase, a_failed_sync_of_the_shared_pack_fails_the_batch_only, 0, 2);
	tcase_add_test(tcase, recovery_seals_the_open_pack_and_leaves_its_tail);
	tcase_add_loop_test(tcase, recovery_survives_damage, 0, 6);
	tcase_add_loop_test(tcase, unknown_packs_and_chunks_are_corrupt, 0, PACK_FIXTURE_KINDS);
	tcase_add_test(tcase, holds_are_counted);
	tcase_add_test(tcase, packs_over_a_gibibyte_are_refused);
	tcase_add_test(tcase, reindexing_finds_sealed_packs_again);
	suite_add_tcase(suite, tcase);
	return suite;
}
