/* Versions that were committed without a Xet file hash get the one that follows from their
 * chunks. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/chunk_stream.h"
#include "storage/core/committer.h"
#include "storage/files/file_hash.h"
#include "storage/files/file_hash_find.h"
#include "storage/files/file_hash_worker.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/upkeep/gc.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum {
	PART_BYTES = 5 * 1024 * 1024 + 4321,
	LAST_BYTES = 300001,
	LARGE = 3 * 1024 * 1024,
	CHUNKS_MAX = 4096,
	PATIENCE_MS = 120000,
	MINUTE_MS = 61 * 1000
};

static struct store_fixture fixture;
static uint8_t *noise;

struct chunk_list {
	struct chunk_entry chunks[CHUNKS_MAX];
	size_t count;
};

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	noise = fixture_noise(2 * PART_BYTES + LAST_BYTES, 11);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static int take_chunk(
	void *taker, const struct chunk_id *id, struct span content, struct error *err)
{
	struct chunk_list *const list = taker;
	(void)err;
	ck_assert_uint_lt(list->count, CHUNKS_MAX);
	list->chunks[list->count++] = (struct chunk_entry){.id = *id, .size = content.len};
	return 0;
}

static void chunk(struct chunk_list *list, struct span bytes)
{
	struct error err = {0};
	struct chunk_stream *const stream = chunk_stream_new(take_chunk, list);
	ck_assert_int_eq(chunk_stream_push(stream, bytes, &err), 0);
	ck_assert_int_eq(chunk_stream_end(stream, &err), 0);
	chunk_stream_free(stream);
}

static struct chunk_id hash_of_parts(const struct span *parts, size_t count)
{
	struct chunk_list *const list = memory_new(sizeof(*list));
	for (size_t i = 0; i < count; i++)
		chunk(list, parts[i]);
	const struct chunk_id hash = chunk_hash_file(list->chunks, list->count);
	free(list);
	return hash;
}

/* With `copied`, one part is copied from that object. */
static void upload(const char *key, const struct span *parts, size_t count,
	const struct object *copied, uint64_t copied_from)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_listed_part listed[4];
	struct upload_create_params create = {.bucket = fixture_bucket("b"),
		.key = span_text(key),
		.initiator = span_text("main")};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	for (size_t i = 0; i < count; i++) {
		struct uploaded_part part;
		const int put = copied != NULL && i == 0
			? fixture_upload_copy(fixture.store, &ref, 1, copied, copied_from,
				  parts[0].len, &part, &err)
			: fixture_upload_put(fixture.store, &ref, (uint32_t)(3 * i + 1), parts[i],
				  NULL, &part, &err);
		ck_assert_msg(put == 0, "%s", err.text);
		listed[i] = (struct upload_listed_part){.number = part.number};
		memcpy(listed[i].etag, part.etag, sizeof(listed[i].etag));
	}
	struct upload_complete_params params = {.ref = ref, .parts = listed, .part_count = count};
	struct upload_fault fault;
	struct upload_result result;
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
}

static struct object find(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(fixture_find(&fixture, "b", key, &object, &err) == 0, "%s", err.text);
	return object;
}

static int give(const int64_t *versions, size_t count, struct error *err)
{
	struct settled *const settled = settled_new();
	struct file_hash_wait *const wait =
		file_hash_start(fixture.store, versions, count, settled_done, settled);
	settled_wait(settled);
	const int result = file_hash_outcome(wait, err);
	file_hash_free(wait);
	return result;
}

static struct chunk_id given(const char *key)
{
	struct error err = {0};
	struct object object = find(key);
	ck_assert_msg(give(&object.sequence, 1, &err) == 0, "%s", err.text);
	object = find(key);
	ck_assert(object.has_file_hash);
	return object.file_hash;
}

static const char SQL_FORGET[] = "UPDATE versions SET file_hash = x'' WHERE sequence = ?1";

struct forgetting {
	struct change change; /* first */
	int64_t version;
};

static int apply_forget(struct change *change, struct db *db, struct error *err)
{
	struct arena *const arena = arena_new(100000);
	struct version version;
	ck_assert_int_eq(version_find_sequence(
				 db, ((struct forgetting *)change)->version, arena, &version, err),
		1);
	version.has_file_hash = false;
	ck_assert_int_eq(version_update(db, &version, err), 0);
	arena_free(arena);
	return db_run(db, SQL_FORGET, err, db_i64(version.sequence));
}

/* Makes the version as in a catalog that never had its hash. In one change, because a row with a
 * wrong checksum would be put off for minutes. */
static void forget(int64_t version)
{
	struct error err = {0};
	struct forgetting forgetting = {.change = {.apply = apply_forget}, .version = version};
	ck_assert_int_eq(
		committer_run(store_committer(fixture.store), &forgetting.change, &err), 0);
}

/* Waits until no version lacks a hash. */
static void wait_for(const char *sql)
{
	const struct clock_source *const clock = clock_system();
	const int64_t until = clock->monotonic_ms(clock) + PATIENCE_MS;
	while (fixture_count(fixture.store, sql) > 0) {
		ck_assert_int_lt(clock->monotonic_ms(clock), until);
		usleep(10000);
	}
}

static void wait_for_none_lacking(void)
{
	wait_for("SELECT count(*) FROM versions WHERE state = 1 AND length(file_hash) = 0");
}

START_TEST(test_parts_are_chunked_apart)
{
	const struct span parts[] = {span_of(noise, PART_BYTES),
		span_of(noise + PART_BYTES, PART_BYTES),
		span_of(noise + 2 * PART_BYTES, LAST_BYTES)};
	const struct span whole = span_of(noise, 2 * PART_BYTES + LAST_BYTES);
	upload("m", parts, 3, NULL, 0);
	const struct chunk_id expected = hash_of_parts(parts, 3);
	const struct chunk_id single = hash_of_parts(&whole, 1);
	const struct chunk_id hash = given("m");
	ck_assert(chunk_id_equal(&hash, &expected));
	ck_assert(!chunk_id_equal(&hash, &single));
	ck_assert(fixture_holds(&fixture, "b", "m", whole));
}
END_TEST

START_TEST(test_the_worker_fills)
{
	const struct span parts[] = {
		span_of(noise, PART_BYTES), span_of(noise + PART_BYTES, LAST_BYTES)};
	upload("m", parts, 2, NULL, 0);
	wait_for_none_lacking();
	const struct chunk_id expected = hash_of_parts(parts, 2);
	struct object object = find("m");
	ck_assert(chunk_id_equal(&object.file_hash, &expected));
}
END_TEST

/* The case of a first start with a catalog of an earlier version. */
START_TEST(test_the_worker_fills_what_is_old)
{
	struct error err = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "old", span_of(noise, LAST_BYTES), &err), 0);
	struct object object = find("old");
	const struct chunk_id before = object.file_hash;
	forget(object.sequence);
	store_fixture_reopen(&fixture);
	wait_for_none_lacking();
	object = find("old");
	ck_assert(chunk_id_equal(&object.file_hash, &before));
}
END_TEST

static struct object put_number(unsigned number)
{
	struct error err = {0};
	const char *key = arena_format(fixture.arena, "file-%u", number);
	ck_assert_int_eq(fixture_put(fixture.store, "b", key, span_text(key), &err), 0);
	return find(key);
}

/* More than the worker takes at once. */
START_TEST(test_the_worker_fills_many)
{
	enum { MANY = 150 };
	struct error err = {0};
	struct chunk_id before[MANY];
	for (unsigned i = 0; i < MANY; i++)
		before[i] = put_number(i).file_hash;
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "file-3", NULL, &err), 0);
	for (int64_t i = 1; i <= MANY; i++)
		forget(i);
	store_fixture_reopen(&fixture);
	wait_for(
		"SELECT count(*) FROM versions WHERE state = 1 AND is_marker = 0 AND length(file_hash) = 0");
	for (unsigned i = 0; i < MANY; i++) {
		if (i == 3)
			continue;
		const struct object object = find(arena_format(fixture.arena, "file-%u", i));
		ck_assert(object.has_file_hash && chunk_id_equal(&object.file_hash, &before[i]));
	}
}
END_TEST

/* A page of a listing may name more versions than one change writes. */
START_TEST(test_many_are_given_at_once)
{
	enum { MANY = FILE_HASHES_MAX + 44 };
	struct error err = {0};
	struct chunk_id before[MANY];
	int64_t versions[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		const struct object object = put_number(i);
		before[i] = object.file_hash;
		versions[i] = object.sequence;
	}
	file_hash_worker_quiesce(store_parts(fixture.store)->file_hash_worker);
	for (unsigned i = 0; i < MANY; i++)
		forget(versions[i]);
	ck_assert_msg(give(versions, MANY, &err) == 0, "%s", err.text);
	for (unsigned i = 0; i < MANY; i++) {
		const struct object object = find(arena_format(fixture.arena, "file-%u", i));
		ck_assert(object.has_file_hash && chunk_id_equal(&object.file_hash, &before[i]));
	}
}
END_TEST

START_TEST(test_those_without_one_are_listed_in_pages)
{
	struct error err = {0};
	int64_t page[4];
	size_t count;
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	for (unsigned i = 0; i < 4; i++)
		(void)put_number(i);
	/* a marker, 5 */
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "file-3", NULL, &err), 0);
	file_hash_worker_quiesce(store_parts(fixture.store)->file_hash_worker);
	for (int64_t i = 4; i > 1; i--)
		forget(i);
	ck_assert_int_eq(file_hash_lacking(fixture.store, 0, page, 1, &count, &err), 0);
	ck_assert(count == 1 && page[0] == 2);
	ck_assert_int_eq(file_hash_lacking(fixture.store, 2, page, 4, &count, &err), 0);
	ck_assert(count == 1 && page[0] == 3); /* 4 is not a current version */
	ck_assert_int_eq(file_hash_lacking(fixture.store, 3, page, 4, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
}
END_TEST

/* Otherwise deleted versions would never give back their space. */
START_TEST(test_packs_are_let_go_of)
{
	struct error err = {0};
	struct gc_request request = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "old", span_of(noise, LAST_BYTES), &err), 0);
	forget(find("old").sequence);
	(void)given("old");
	ck_assert_int_eq(fixture_delete(fixture.store, "b", "old", NULL, &err), 0);
	fixture_sweep(fixture.store);
	ck_assert_msg(gc_run(store_parts(fixture.store)->gc, &request, &err) == 0, "%s", err.text);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM packs WHERE state = 1"), 0);
	ck_assert_int_eq(fixture_pack_files(&fixture, "-name '*.pack'"), 0);
}
END_TEST

/* The chunks of a copied range are those of its source, except that the cut edges are chunked
 * again. Zeros are cut only by length, so the test can see that. */
START_TEST(test_copied_parts)
{
	struct error err = {0};
	memset(noise, 0, 2 * PART_BYTES);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "source", span_of(noise, 2 * PART_BYTES), &err), 0);
	const struct object source = find("source");
	const struct span parts[] = {
		span_of(noise + 100000, PART_BYTES), span_of(noise + 2 * PART_BYTES, LAST_BYTES)};
	upload("m", parts, 2, &source, 100000);
	const struct chunk_id copied = given("m");
	const struct chunk_id anew = hash_of_parts(parts, 2);
	ck_assert(!chunk_id_equal(&copied, &anew));
	struct object_copy_params copy = {.bucket = fixture_bucket("b"), .key = span_text("copy")};
	struct object object = find("m");
	struct object made;
	copy.source = &object;
	ck_assert_int_eq(fixture_copy(fixture.store, &copy, &made, &err), 0);
	object = find("copy");
	ck_assert(object.has_file_hash && chunk_id_equal(&object.file_hash, &copied));
}
END_TEST

START_TEST(test_derived_versions)
{
	struct derived_checkpoint base;
	struct derived_checkpoint next;
	struct error err = {0};
	derived_checkpoint_make(&base, LARGE, 0);
	derived_checkpoint_make(&next, LARGE, 1);
	const struct object root = derived_fixture_put(&fixture, "b", "base", &base);
	struct object object =
		derived_fixture_put_swapped(&fixture, "b", "single", &base, &root, &next);
	const struct chunk_id before = object.file_hash;
	ck_assert(object.has_file_hash);
	forget(object.sequence);
	const struct chunk_id hash = given("single");
	ck_assert(chunk_id_equal(&hash, &before));

	const struct span bytes = buffer_span(&next.bytes);
	ck_assert_uint_gt(bytes.len, PART_BYTES);
	const struct span parts[] = {
		span_slice(bytes, 0, PART_BYTES), span_slice(bytes, PART_BYTES, SIZE_MAX)};
	upload("parts", parts, 2, NULL, 0);
	wait_for_none_lacking(); /* once it is derived, a young version is left alone */
	object = find("parts");
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &base, &root, &next, false);
	const struct object single = find("single");
	ck_assert_int_eq(
		derived_fixture_swap(fixture.store, object.sequence, recipe, &single.digest, &err),
		0);
	derived_recipe_free(recipe);
	forget(object.sequence);
	const struct chunk_id apart = given("parts");
	const struct chunk_id expected = hash_of_parts(parts, 2);
	ck_assert(chunk_id_equal(&apart, &expected));
	forget(object.sequence);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "behind", span_of(noise, LAST_BYTES), &err), 0);
	forget(find("behind").sequence);
	store_wake(fixture.store, STORE_FILE_HASH_WORK);
	while (!find("behind").has_file_hash) /* in the same change */
		usleep(1000);
	ck_assert(!find("parts").has_file_hash); /* it is young, and may be deleted soon */
	atomic_fetch_add(&fixture.clock.now_ms, MINUTE_MS);
	store_wake(fixture.store, STORE_FILE_HASH_WORK);
	wait_for_none_lacking();
	object = find("parts");
	ck_assert(chunk_id_equal(&object.file_hash, &expected));
	derived_checkpoint_release(&base);
	derived_checkpoint_release(&next);
}
END_TEST

START_TEST(test_one_that_fails_holds_up_no_other)
{
	struct error err = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "bad", span_of(noise, LAST_BYTES), &err), 0);
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "good", span_of(noise + 1, LAST_BYTES), &err), 0);
	const int64_t versions[] = {find("bad").sequence, find("good").sequence, 12345};
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE segments SET bytes = bytes + 1 WHERE part_set = -1", &err),
		0);
	forget(versions[0]);
	forget(versions[1]);
	ck_assert_int_eq(give(versions, 3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert(find("good").has_file_hash);
	ck_assert(!find("bad").has_file_hash);
}
END_TEST

/* Neither a version with a wrong index nor one that cannot be decoded stops the others. The first
 * fault is reported. */
START_TEST(test_one_that_cannot_be_decoded_holds_up_no_other)
{
	struct derived_checkpoint base;
	struct derived_checkpoint next;
	struct error err = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "bad", span_of(noise, LAST_BYTES), &err), 0);
	derived_checkpoint_make(&base, 3000, 0);
	derived_checkpoint_make(&next, 3000, 1);
	const struct object root = derived_fixture_put(&fixture, "b", "base", &base);
	const int64_t versions[] = {find("bad").sequence,
		derived_fixture_put_swapped(&fixture, "b", "lost", &base, &root, &next).sequence,
		derived_fixture_put_swapped(&fixture, "b", "good", &base, &root, &next).sequence};
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE segments SET bytes = bytes + 1 WHERE part_set = -1", &err),
		0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			arena_format(fixture.arena,
				"UPDATE derivations SET recipe = x'00' WHERE version = %lld",
				(long long)versions[1]),
			&err),
		0);
	for (size_t i = 0; i < 3; i++)
		forget(versions[i]);
	ck_assert_int_eq(give(versions, 3, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_msg(strstr(err.text, "part set -1 is damaged") != NULL, "%s", err.text);
	ck_assert(find("good").has_file_hash);
	ck_assert_int_eq(give(&versions[1], 2, &err), -1);
	ck_assert(!find("bad").has_file_hash && !find("lost").has_file_hash);
	derived_checkpoint_release(&base);
	derived_checkpoint_release(&next);
}
END_TEST

struct setting {
	struct change change; /* first */
	int64_t version;
	uint64_t contents;
};

static int apply_set(struct change *change, struct db *db, struct error *err)
{
	static const struct chunk_id hash = {{1, 2, 3}};
	const struct setting *const setting = (const struct setting *)change;
	return version_set_file_hash(db, setting->version, setting->contents, &hash, err);
}

/* A hash of contents that were replaced meanwhile, or one that comes late, is not written. */
START_TEST(test_a_hash_stays)
{
	struct error err = {0};
	ck_assert_int_eq(
		fixture_put(fixture.store, "b", "key", span_of(noise, LAST_BYTES), &err), 0);
	const struct object object = find("key");
	struct setting setting = {.change = {.apply = apply_set}, .version = object.sequence};
	setting.contents = (uint64_t)fixture_count(fixture.store, "SELECT contents FROM versions");
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &setting.change, &err), 0);
	struct object now = find("key");
	ck_assert(chunk_id_equal(&now.file_hash, &object.file_hash));
	forget(object.sequence);
	setting.contents++;
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &setting.change, &err), 0);
	now = find("key");
	ck_assert(!now.has_file_hash || chunk_id_equal(&now.file_hash, &object.file_hash));
}
END_TEST

Suite *test_file_hash_suite(void);
Suite *test_file_hash_suite(void)
{
	Suite *const suite = suite_create("file_hash");
	TCase *const tcase = tcase_create("file_hash");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_parts_are_chunked_apart);
	tcase_add_test(tcase, test_the_worker_fills);
	tcase_add_test(tcase, test_the_worker_fills_what_is_old);
	tcase_add_test(tcase, test_the_worker_fills_many);
	tcase_add_test(tcase, test_many_are_given_at_once);
	tcase_add_test(tcase, test_those_without_one_are_listed_in_pages);
	tcase_add_test(tcase, test_packs_are_let_go_of);
	tcase_add_test(tcase, test_copied_parts);
	tcase_add_test(tcase, test_derived_versions);
	tcase_add_test(tcase, test_one_that_fails_holds_up_no_other);
	tcase_add_test(tcase, test_one_that_cannot_be_decoded_holds_up_no_other);
	tcase_add_test(tcase, test_a_hash_stays);
	suite_add_tcase(suite, tcase);
	return suite;
}
