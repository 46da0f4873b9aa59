/* Derived versions that Xet clients ask for are made into records that give their file hash, once,
 * and within a limit of bytes. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/file_hash.h"
#include "storage/files/xet_file.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version.h"
#include "storage/xet/made_file.h"
#include "tests/unit/storage/derived_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { LARGE = 3 * 1024 * 1024, NEXT = 4, ASKERS = 8, PART_BYTES = 5 * 1024 * 1024 + 99 };

static struct store_fixture fixture;
static struct derived_checkpoint base;
static struct derived_checkpoint next[NEXT];
static struct object root;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	fixture.metrics = metrics_new();
	derived_checkpoint_make(&base, LARGE, 0);
	for (unsigned i = 0; i < NEXT; i++)
		derived_checkpoint_make(&next[i], LARGE, i + 1);
	fixture.made_max_bytes = 2 * base.bytes.len + base.bytes.len / 2;
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "b", "main", &err), 0);
	root = derived_fixture_put(&fixture, "b", "base", &base);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	metrics_free(fixture.metrics);
	derived_checkpoint_release(&base);
	for (unsigned i = 0; i < NEXT; i++)
		derived_checkpoint_release(&next[i]);
}

static struct object put_derived(unsigned index)
{
	const char *const key = arena_format(fixture.arena, "next-%u", index);
	struct object object =
		derived_fixture_put_swapped(&fixture, "b", key, &base, &root, &next[index]);
	object.key = span_text(key);
	return object;
}

static int make(int64_t version, struct error *err)
{
	return derived_fixture_make(fixture.store, version, err);
}

static bool find_file(const struct chunk_id *hash, struct xet_file *out)
{
	struct error err = {0};
	struct db *const db = store_reader_take(fixture.store, &err);
	const int found = xet_file_row_find(db, hash, out, &err);
	store_reader_give(fixture.store, db);
	ck_assert_msg(found >= 0, "%s", err.text);
	return found == 1;
}

/* Reads the file from its segments only. */
static void check_file(const struct chunk_id *hash, struct span expected)
{
	ck_assert(derived_fixture_made_holds(&fixture, hash, expected));
}

static bool is_made(const struct object *object)
{
	struct xet_file file;
	return find_file(&object->file_hash, &file);
}

static int64_t expiry_of(const struct object *object)
{
	struct xet_file file;
	ck_assert(find_file(&object->file_hash, &file));
	return file.expires_ms;
}

static void pass(int64_t ms)
{
	atomic_fetch_add(&fixture.clock.now_ms, ms);
}

START_TEST(test_a_made_file_is_the_version)
{
	struct error err = {0};
	const struct object object = put_derived(0);
	ck_assert_msg(make(object.sequence, &err) == 0, "%s", err.text);
	check_file(&object.file_hash, buffer_span(&next[0].bytes));
	/* the version stays derived */
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM versions WHERE kind = 3"), 1);
	ck_assert(fixture_holds(&fixture, "b", "next-0", buffer_span(&next[0].bytes)));
	ck_assert_msg(make(root.sequence, &err) == 0, "%s", err.text); /* never was derived */
	ck_assert(!is_made(&root));
	ck_assert_int_eq(make(999, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_KEY);
}
END_TEST

/* Its parts were chunked one by one, and so are the records. */
START_TEST(test_parts)
{
	struct error err = {0};
	struct upload_ref ref;
	struct upload_listed_part listed[2];
	struct upload_fault fault;
	struct upload_result result;
	struct upload_create_params create = {.bucket = bucket_named(span_text("b")),
		.key = span_text("parts"),
		.initiator = span_text("main")};
	const struct span bytes = buffer_span(&next[0].bytes);
	const struct span parts[] = {
		span_slice(bytes, 0, PART_BYTES), span_slice(bytes, PART_BYTES, SIZE_MAX)};
	const struct object single = put_derived(0);
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct uploaded_part part;
		ck_assert_int_eq(
			fixture_upload_put(fixture.store, &ref, i + 1, parts[i], NULL, &part, &err),
			0);
		listed[i] = (struct upload_listed_part){.number = i + 1};
		memcpy(listed[i].etag, part.etag, sizeof(listed[i].etag));
	}
	struct upload_complete_params params = {.ref = ref, .parts = listed, .part_count = 2};
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
	struct object object;
	ck_assert_int_eq(fixture_find(&fixture, "b", "parts", &object, &err), 0);
	struct settled *const settled = settled_new();
	struct file_hash_wait *const wait =
		file_hash_start(fixture.store, &object.sequence, 1, settled_done, settled);
	settled_wait(settled);
	file_hash_free(wait);
	struct derived_recipe *const recipe =
		derived_fixture_recipe(&fixture, &base, &root, &next[0], false);
	ck_assert_msg(derived_fixture_swap(
			      fixture.store, object.sequence, recipe, &single.digest, &err) == 0,
		"%s", err.text);
	derived_recipe_free(recipe);
	ck_assert_int_eq(fixture_find(&fixture, "b", "parts", &object, &err), 0);
	ck_assert(object.has_file_hash && !chunk_id_equal(&object.file_hash, &single.file_hash));
	ck_assert_msg(make(object.sequence, &err) == 0, "%s", err.text);
	check_file(&object.file_hash, bytes);
}
END_TEST

START_TEST(test_the_least_recently_used_goes)
{
	struct error err = {0};
	struct object objects[NEXT];
	for (unsigned i = 0; i < NEXT; i++)
		objects[i] = put_derived(i);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_msg(make(objects[i].sequence, &err) == 0, "%s", err.text);
		pass(1000);
	}
	ck_assert_int_eq(make(objects[0].sequence, &err), 0); /* used again */
	ck_assert_int_eq(make(objects[2].sequence, &err), 0);
	ck_assert(is_made(&objects[0]));
	ck_assert(!is_made(&objects[1]));
	ck_assert(is_made(&objects[2]));
	check_file(&objects[2].file_hash, buffer_span(&next[2].bytes));
	fixture_sweep(fixture.store);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM part_sets WHERE id > 0"), 2);
}
END_TEST

START_TEST(test_one_that_is_too_large)
{
	struct error err = {0};
	const struct object object = put_derived(0);
	fixture.made_max_bytes = object.size - 1;
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(make(object.sequence, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_UNSUPPORTED);
	ck_assert(strstr(err.text, "xet_made_max") != NULL);
	ck_assert(!is_made(&object));
	fixture.made_max_bytes = object.size;
	store_fixture_reopen(&fixture);
	ck_assert_msg(make(object.sequence, &err) == 0, "%s", err.text);
}
END_TEST

START_TEST(test_made_once_for_all_who_ask)
{
	struct error err = {0};
	const struct object one = put_derived(0);
	const struct object two = put_derived(1);
	struct object twin; /* the same file by another name */
	struct object_copy_params copy = {
		.bucket = bucket_named(span_text("b")), .key = span_text("twin"), .source = &two};
	ck_assert_int_eq(fixture_copy(fixture.store, &copy, &twin, &err), 0);
	ck_assert_int_eq(make(one.sequence, &err), 0);
	const int64_t before = metrics_get(fixture.metrics, METRIC_BYTES_INGESTED);
	struct settled *settled[ASKERS];
	struct made_file_request *waits[ASKERS];
	for (unsigned i = 0; i < ASKERS; i++) {
		settled[i] = settled_new();
		waits[i] = made_file_request_start(
			fixture.store, two.sequence, settled_done, settled[i]);
	}
	for (unsigned i = 0; i < ASKERS; i++) {
		settled_wait(settled[i]);
		ck_assert_int_eq(made_file_request_outcome(waits[i], &err), 0);
		made_file_request_free(waits[i]);
	}
	ck_assert_int_eq(make(twin.sequence, &err), 0);
	ck_assert_int_eq(
		metrics_get(fixture.metrics, METRIC_BYTES_INGESTED) - before, (int64_t)two.size);
	check_file(&two.file_hash, buffer_span(&next[1].bytes));
}
END_TEST

/* Three files are made at a time: the fourth has not begun when its request is given up. */
START_TEST(test_what_nobody_waits_for_is_not_begun)
{
	struct object objects[NEXT];
	struct settled *settled[NEXT];
	struct made_file_request *waits[NEXT];
	fixture.made_max_bytes = 2 * NEXT * base.bytes.len;
	store_fixture_reopen(&fixture);
	for (unsigned i = 0; i < NEXT; i++) {
		objects[i] = put_derived(i);
		settled[i] = settled_new();
	}
	for (unsigned i = 0; i < NEXT; i++)
		waits[i] = made_file_request_start(
			fixture.store, objects[i].sequence, settled_done, settled[i]);
	made_file_request_give_up(fixture.store, waits[NEXT - 1]);
	for (unsigned i = 0; i < NEXT; i++) {
		settled_wait(settled[i]);
		made_file_request_free(waits[i]);
	}
	nanosleep(&(struct timespec){.tv_nsec = 300 * 1000 * 1000}, NULL);
	for (unsigned i = 0; i < NEXT; i++)
		ck_assert_int_eq(is_made(&objects[i]), i < NEXT - 1);
}
END_TEST

START_TEST(test_its_time)
{
	struct error err = {0};
	const struct object object = put_derived(0);
	ck_assert_int_eq(make(object.sequence, &err), 0);
	const int64_t first = expiry_of(&object);
	ck_assert_int_eq(first, fixture.clock.now_ms + MADE_FILE_MS);
	pass(MADE_FILE_MS / 4);
	made_file_touch(fixture.store, &object.file_hash);
	ck_assert_int_eq(make(999, &err), -1);       /* the committer has run what came before */
	ck_assert_int_eq(expiry_of(&object), first); /* not half over */
	ck_assert_int_eq(make(object.sequence, &err), 0);
	ck_assert_int_eq(expiry_of(&object), first + MADE_FILE_MS / 4);
	store_fixture_reopen(&fixture);
	check_file(&object.file_hash, buffer_span(&next[0].bytes));
	pass(MADE_FILE_MS - 1000);
	made_file_touch(fixture.store, &object.file_hash);
	/* the touch has run before this change */
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET id = id", &err), 0);
	ck_assert_int_eq(expiry_of(&object), fixture.clock.now_ms + MADE_FILE_MS);
	fixture_sweep(fixture.store);
	ck_assert(is_made(&object));
	pass(MADE_FILE_MS);
	fixture_sweep(fixture.store);
	ck_assert(!is_made(&object));
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT count(*) FROM part_sets WHERE id > 0"), 0);
	ck_assert_int_eq(make(object.sequence, &err), 0);
	check_file(&object.file_hash, buffer_span(&next[0].bytes));
}
END_TEST

static int apply_other_hash(struct change *change, struct db *db, struct error *err)
{
	static const struct chunk_id hash = {{1}};
	struct arena *const arena = arena_new(100000);
	struct version version;
	(void)change;
	ck_assert_int_eq(version_find_current(db, 1, span_text("next-0"), arena, &version, err), 1);
	version.has_file_hash = false;
	ck_assert_int_eq(version_update(db, &version, err), 0);
	ck_assert_int_eq(db_run(db, "UPDATE versions SET file_hash = x'' WHERE sequence = ?1", err,
				 db_i64(version.sequence)),
		0);
	const int result =
		version_set_file_hash(db, version.sequence, version.contents, &hash, err);
	arena_free(arena);
	return result;
}

START_TEST(test_other_bytes_than_the_hash)
{
	struct error err = {0};
	struct change change = {.apply = apply_other_hash};
	const struct object object = put_derived(0);
	ck_assert_msg(
		committer_run(store_committer(fixture.store), &change, &err) == 0, "%s", err.text);
	const int64_t packs = fixture_count(fixture.store, "SELECT count(*) FROM packs");
	ck_assert_int_eq(make(object.sequence, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM xet_files"), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM packs"), packs);
}
END_TEST

START_TEST(test_given_up_and_asked_again)
{
	struct error err = {0};
	const struct object object = put_derived(0);
	struct settled *const settled = settled_new();
	struct made_file_request *const wait =
		made_file_request_start(fixture.store, object.sequence, settled_done, settled);
	made_files_quiesce(store_parts(fixture.store)->made_files);
	settled_wait(settled);
	if (made_file_request_outcome(wait, &err) != 0)
		ck_assert_int_eq(err.kind, ERROR_BUSY);
	made_file_request_free(wait);
	ck_assert_int_eq(make(object.sequence, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUSY);
	store_fixture_reopen(&fixture);
	ck_assert_msg(make(object.sequence, &err) == 0, "%s", err.text);
	check_file(&object.file_hash, buffer_span(&next[0].bytes));
}
END_TEST

Suite *test_made_file_suite(void);
Suite *test_made_file_suite(void)
{
	Suite *const suite = suite_create("made_file");
	TCase *const tcase = tcase_create("made_file");
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_a_made_file_is_the_version);
	tcase_add_test(tcase, test_parts);
	tcase_add_test(tcase, test_the_least_recently_used_goes);
	tcase_add_test(tcase, test_one_that_is_too_large);
	tcase_add_test(tcase, test_made_once_for_all_who_ask);
	tcase_add_test(tcase, test_what_nobody_waits_for_is_not_begun);
	tcase_add_test(tcase, test_its_time);
	tcase_add_test(tcase, test_other_bytes_than_the_hash);
	tcase_add_test(tcase, test_given_up_and_asked_again);
	suite_add_tcase(suite, tcase);
	return suite;
}
