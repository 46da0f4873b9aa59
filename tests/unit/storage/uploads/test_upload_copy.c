/* Tests parts that are copied from objects: where chunks are cut, and events during the copy. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/digest.h"
#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "storage/packs/pack_store.h"
#include "storage/upkeep/gc.h"
#include "tests/unit/storage/damage_fixture.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	err = (struct error){0};
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "weights", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static int complete_one(const struct upload_ref *ref, const struct uploaded_part *part)
{
	const struct upload_listed_part listed = fixture_upload_listed(part);
	return fixture_upload_complete_parts(fixture.store, ref, &listed, 1, &err);
}

static struct uploaded_part put_noise(const struct upload_ref *ref, uint32_t number, size_t size)
{
	struct uploaded_part part;
	uint8_t *const noise = fixture_noise(size, number);
	ck_assert_msg(fixture_upload_put(fixture.store, ref, number, span_of(noise, size), NULL,
			      &part, &err) == 0,
		"%s", err.text);
	free(noise);
	return part;
}

static struct upload_ref begin(const char *key)
{
	struct upload_create_params params = {.bucket = fixture_bucket("weights"),
		.key = span_text(key),
		.initiator = span_text("main")};
	struct upload_ref ref;
	ck_assert_msg(
		fixture_upload_create(fixture.store, &params, &ref, &err) == 0, "%s", err.text);
	return ref;
}

/* An object of several chunks in one pack, and the ends of its chunks. */
enum { SOURCE_BYTES = 700000, ENDS_MAX = 100 };

struct source {
	uint8_t *noise;
	struct object object;
	uint64_t ends[ENDS_MAX];
	size_t count;
};

static struct segment only_segment(void)
{
	static const char SQL[] =
		"SELECT p.id, s.first, s.count, s.bytes FROM segments s JOIN packs p ON p.number = s.pack";
	struct segment segment = {.count = 0};
	struct db *const db = store_reader_take(fixture.store, &err);
	struct db_statement *const statement = db_query(db, SQL, &err);
	ck_assert_int_eq(db_step(statement, &err), 1);
	memcpy(segment.pack.bytes, db_column_blob(statement, 0).data, PACK_ID_BYTES);
	segment.first = (uint32_t)db_column_i64(statement, 1);
	segment.count = (uint32_t)db_column_i64(statement, 2);
	segment.bytes = (uint64_t)db_column_i64(statement, 3);
	ck_assert_int_eq(db_step(statement, &err), 0);
	db_reset(statement);
	store_reader_give(fixture.store, db);
	return segment;
}

static struct source make_source(void)
{
	struct source source = {.noise = fixture_noise(SOURCE_BYTES, 8)};
	struct chunk_entry entries[ENDS_MAX];
	uint64_t end = 0;
	ck_assert_int_eq(fixture_put(fixture.store, "weights", "source",
				 span_of(source.noise, SOURCE_BYTES), &err),
		0);
	ck_assert_int_eq(fixture_find(&fixture, "weights", "source", &source.object, &err), 0);
	const struct segment segment = only_segment();
	const struct pack_run run = {
		.pack = segment.pack, .first = segment.first, .chunks = segment.count};
	ck_assert_int_eq(pack_store_chunk_entries(store_packs(fixture.store), &run, entries,
				 ENDS_MAX, &source.count, &err),
		0);
	ck_assert_uint_eq(source.count, segment.count);
	for (size_t i = 0; i < source.count; i++)
		source.ends[i] = end += entries[i].size;
	ck_assert_uint_eq(end, SOURCE_BYTES);
	ck_assert_uint_gt(source.count, 4);
	return source;
}

/* Copies a range and returns how many of its bytes were stored again. */
static int64_t copy(const struct source *source, uint64_t from, uint64_t to)
{
	static const char SQL_STORED[] = "SELECT COALESCE(SUM(length), 0) FROM packs";
	const int64_t before = fixture_count(fixture.store, SQL_STORED);
	const struct upload_ref ref = begin("copy");
	struct uploaded_part part;
	ck_assert_msg(fixture_upload_copy(fixture.store, &ref, 1, &source->object, from, to - from,
			      &part, &err) == 0,
		"%s", err.text);
	ck_assert_uint_eq(part.size, to - from);
	ck_assert_msg(complete_one(&ref, &part) == 0, "%s", err.text);
	ck_assert(fixture_holds(
		&fixture, "weights", "copy", span_of(source->noise + from, (size_t)(to - from))));
	return fixture_count(fixture.store, SQL_STORED) - before;
}

START_TEST(ranges_that_end_with_chunks_store_nothing_anew)
{
	const struct source source = make_source();
	ck_assert_int_eq(copy(&source, source.ends[0], source.ends[2]), 0);
	ck_assert_int_eq(copy(&source, source.ends[1], source.ends[2]), 0);
	ck_assert_int_eq(copy(&source, 0, source.ends[1]), 0);
	ck_assert_int_eq(copy(&source, source.ends[1], SOURCE_BYTES), 0);
	ck_assert_int_eq(copy(&source, 0, SOURCE_BYTES), 0);
	free(source.noise);
}
END_TEST

START_TEST(ranges_that_cut_chunks_are_what_they_were)
{
	const struct source source = make_source();
	for (size_t i = 0; i < 2; i++)
		for (size_t j = 1; j < 4; j++) {
			copy(&source, source.ends[i] - 50, source.ends[j]);
			copy(&source, source.ends[i], source.ends[j] + 50);
			copy(&source, source.ends[i] - 1, source.ends[j] + 1);
		}
	copy(&source, source.ends[0], source.ends[0] + 100);
	copy(&source, source.ends[0] + 10, source.ends[0] + 100);
	copy(&source, source.ends[0] + 10, source.ends[1]);
	copy(&source, SOURCE_BYTES - 100, SOURCE_BYTES);
	free(source.noise);
}
END_TEST

START_TEST(copies_are_judged_as_parts_are)
{
	const struct source source = make_source();
	const struct upload_ref ref = begin("copy");
	struct uploaded_part part;
	ck_assert_int_eq(
		fixture_upload_copy(fixture.store, &ref, 0, &source.object, 0, 10, &part, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, UPLOAD_PARTS_MAX + 1,
				 &source.object, 0, 10, &part, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, 1, &source.object, 1,
				 SOURCE_BYTES, &part, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_RANGE);
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, UPLOAD_PARTS_MAX, &source.object,
				 0, 10, &part, &err),
		0);
	free(source.noise);
}
END_TEST

/* Digests that fast ETags leave out are computed when the bucket of the copy wants them. */
START_TEST(a_copy_has_the_etag_that_its_upload_wants)
{
	const struct source source = make_source();
	const struct bucket_edit fast = {.sets_etag_policy = true, .etag_policy = ETAG_FAST};
	struct uploaded_part part;
	const struct upload_ref plain = begin("plain");
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "weights", &fast, &err), 0);
	const struct upload_ref quick = begin("quick");
	for (uint64_t from = 0; from < 2; from++) {
		ck_assert_int_eq(fixture_upload_copy(fixture.store, &quick, 1, &source.object, from,
					 SOURCE_BYTES - from, &part, &err),
			0);
		/* the MD5 is known for the whole source, and not computed for a range */
		ck_assert_int_eq(strlen(part.etag) == (size_t)2 * MD5_BYTES, from == 0);
	}
	const struct uploaded_part sent = put_noise(&quick, 2, 300000);
	ck_assert_int_eq(complete_one(&quick, &sent), 0);
	struct object made;
	ck_assert_int_eq(fixture_find(&fixture, "weights", "quick", &made, &err), 0);
	ck_assert_int_eq(
		fixture_upload_copy(fixture.store, &plain, 1, &made, 0, made.size, &part, &err), 0);
	ck_assert_uint_eq(strlen(part.etag), (size_t)2 * MD5_BYTES);
	const struct upload_ref again = begin("again");
	ck_assert_int_eq(
		fixture_upload_copy(fixture.store, &again, 1, &made, 0, made.size, &part, &err), 0);
	ck_assert_str_eq(part.etag, sent.etag); /* the digests are known, but not the MD5 */
	free(source.noise);
}
END_TEST

/* A copy replaces a part between the judgement of the list and the change. */
START_TEST(a_copy_that_came_while_it_completes_is_not_passed_off_as_the_listed_part)
{
	const struct source source = make_source();
	const struct upload_ref ref = begin("model");
	const struct uploaded_part first = put_noise(&ref, 1, 100);
	const struct upload_listed_part listed = fixture_upload_listed(&first);
	struct settled *const ends[] = {settled_new(), settled_new()};
	const struct upload_copy_params params = {
		.ref = ref, .number = 1, .source = &source.object, .length = SOURCE_BYTES};
	const struct upload_complete_params list = {.ref = ref, .parts = &listed, .part_count = 1};
	struct call *const copying = upload_copy_call(fixture.store, &params);
	struct call *const completing = upload_complete_call(fixture.store, &list, &err);
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	call_start(copying, settled_done, ends[0]);
	helpers_pass(fixture.store);
	call_start(completing, settled_done, ends[1]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	ck_assert_msg(fixture_settle(copying, ends[0], &err) == 0, "%s", err.text);
	ck_assert_int_eq(fixture_settle(completing, ends[1], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID_PART);
	free(source.noise);
}
END_TEST

/* The source's packs stay until the copy has ended, and no longer. */
START_TEST(a_copy_lets_go_of_its_packs)
{
	struct gc_request request = {0};
	const struct source source = make_source();
	const struct upload_ref ref = begin("copy");
	struct uploaded_part part;
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, 1, &source.object, 0,
				 SOURCE_BYTES, &part, &err),
		0);
	ck_assert_int_eq(fixture_upload_abort(fixture.store, &ref, &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "weights", "source", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE state = 1"), 0);
	free(source.noise);
}
END_TEST

START_TEST(a_copy_into_an_upload_that_is_aborted_meanwhile_is_refused)
{
	const struct source source = make_source();
	const struct upload_ref ref = begin("model");
	struct settled *const ends[] = {settled_new(), settled_new()};
	const struct upload_copy_params params = {
		.ref = ref, .number = 1, .source = &source.object, .length = SOURCE_BYTES};
	struct call *const aborting = upload_abort_call(fixture.store, &ref);
	struct call *const copying = upload_copy_call(fixture.store, &params);
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	call_start(aborting, settled_done, ends[0]);
	call_start(copying, settled_done, ends[1]);
	helpers_pass(fixture.store);
	committer_hold_end(hold);
	ck_assert_int_eq(fixture_settle(aborting, ends[0], &err), 0);
	ck_assert_int_eq(fixture_settle(copying, ends[1], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_UPLOAD);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM parts"), 0);
	free(source.noise);
}
END_TEST

/* Chunks that are taken by reference are not read, so known damage is looked up. */
START_TEST(a_copy_does_not_spread_what_is_damaged)
{
	struct buffer read;
	struct uploaded_part part;
	struct source source = make_source();
	const struct upload_ref ref = begin("copy");
	damage_fixture_flip_object(&fixture, "weights", "source");
	ck_assert_int_eq(fixture_find(&fixture, "weights", "source", &source.object, &err), 0);
	buffer_init(&read, 2 * SOURCE_BYTES);
	ck_assert_int_eq(
		fixture_read(fixture.store, &source.object, 0, SOURCE_BYTES, &read, &err), -1);
	ck_assert_int_eq(fixture_upload_copy(fixture.store, &ref, 1, &source.object, 0,
				 SOURCE_BYTES, &part, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CONTENT_DAMAGED);
	buffer_release(&read);
	free(source.noise);
}
END_TEST

Suite *test_upload_copy_suite(void);
Suite *test_upload_copy_suite(void)
{
	Suite *const suite = suite_create("upload_copy");
	TCase *const tests = tcase_create("upload_copy");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, ranges_that_end_with_chunks_store_nothing_anew);
	tcase_add_test(tests, ranges_that_cut_chunks_are_what_they_were);
	tcase_add_test(tests, copies_are_judged_as_parts_are);
	tcase_add_test(tests, a_copy_has_the_etag_that_its_upload_wants);
	tcase_add_test(
		tests, a_copy_that_came_while_it_completes_is_not_passed_off_as_the_listed_part);
	tcase_add_test(tests, a_copy_lets_go_of_its_packs);
	tcase_add_test(tests, a_copy_into_an_upload_that_is_aborted_meanwhile_is_refused);
	tcase_add_test(tests, a_copy_does_not_spread_what_is_damaged);
	suite_add_tcase(suite, tests);
	return suite;
}
