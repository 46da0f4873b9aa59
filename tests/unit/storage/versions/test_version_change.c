#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/change_feed.h"
#include "storage/core/committer.h"
#include "storage/db/row_sum.h"
#include "storage/objects/object_change.h"
#include "storage/objects/object_copy.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/versions/part.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/store_fixture.h"

enum { LARGE = 2000000 };

static struct store_fixture fixture;
static uint8_t *noise;

static void set_up(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	noise = fixture_noise(LARGE, 21);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
	free(noise);
}

static int put(const char *key, size_t len, struct object *out, struct error *err)
{
	struct object_put_params params = {
		.bucket = bucket_named(span_text("bucket")), .key = span_text(key)};
	return fixture_put_object(fixture.store, &params, span_of(noise, len), out, err);
}

/* Operations on the key "k", which has a null version and two with ids. */
static int put_small(struct error *err)
{
	struct object object;
	return put("k", 100, &object, err);
}

static int put_large(struct error *err)
{
	struct object object;
	return put("k", LARGE / 2, &object, err);
}

static int copy_onto(const char *from, struct error *err)
{
	struct object source;
	struct object object;
	ck_assert_int_eq(fixture_find(&fixture, "bucket", from, &source, err), 0);
	struct object_copy_params params = {.source = &source,
		.bucket = bucket_named(span_text("bucket")),
		.key = span_text("k")};
	return fixture_copy(fixture.store, &params, &object, err);
}

static int copy_small(struct error *err)
{
	return copy_onto("small", err);
}

static int copy_large(struct error *err)
{
	return copy_onto("large", err);
}

static int delete_with(struct object_delete_item *item, struct error *err)
{
	const int result = fixture_delete_items(fixture.store, "bucket", item, 1, err);
	ck_assert(result != 0 || item->error.kind == ERROR_NONE);
	return result;
}

static int delete_key(struct error *err)
{
	struct object_delete_item item = {.key = span_text("k")};
	return delete_with(&item, err);
}

static int delete_version(struct error *err)
{
	struct object object;
	struct object_delete_item item = {.key = span_text("k"), .ref.kind = VERSION_REF_ID};
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "k", &object, err), 0);
	memcpy(item.ref.id, object.version, VERSION_ID_BYTES);
	return delete_with(&item, err);
}

/* Makes a copy the only holder of its bytes by deleting its source. */
static int put_copied(struct error *err)
{
	struct object twin;
	struct object_delete_item item = {.key = span_text("twin")};
	ck_assert_int_eq(put("twin", LARGE / 3, &twin, err), 0);
	ck_assert_int_eq(copy_onto("twin", err), 0);
	item.ref.kind = twin.has_id ? VERSION_REF_ID : VERSION_REF_NULL;
	memcpy(item.ref.id, twin.version, VERSION_ID_BYTES);
	return delete_with(&item, err);
}

static int delete_null(struct error *err)
{
	struct object_delete_item item = {.key = span_text("k"), .ref.kind = VERSION_REF_NULL};
	return delete_with(&item, err);
}

static int set_acl(struct error *err)
{
	struct object_change_params params = {
		.object = {.bucket = bucket_named(span_text("bucket")), .key = span_text("k")},
		.sets_acl = true,
		.acl = ACL_PUBLIC_READ};
	return fixture_change(fixture.store, &params, err);
}

static int (*const acts[])(struct error *err) = {put_small, put_large, copy_small, copy_large,
	delete_key, delete_version, delete_null, set_acl};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };
static int (*const preparations[])(struct error *err) = {put_large, put_small, put_copied};
enum { PREPARATIONS = sizeof(preparations) / sizeof(preparations[0]) };

#define FAULT(event)                         \
	"CREATE TRIGGER fault BEFORE " event \
	" BEGIN SELECT RAISE(ABORT, 'a fault of the test'); END"
static const char *const faults[] = {
	FAULT("INSERT ON versions"),
	FAULT("UPDATE ON versions"),
	FAULT("DELETE ON versions"),
	FAULT("INSERT ON inline_bytes"),
	FAULT("DELETE ON inline_bytes"),
	FAULT("INSERT ON part_sets"),
	FAULT("UPDATE ON part_sets"),
	FAULT("DELETE ON part_sets"),
	FAULT("INSERT ON segments"),
	FAULT("DELETE ON segments"),
};

static void make_history(void)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(put("small", 50, &object, &err), 0);
	ck_assert_int_eq(put("large", LARGE, &object, &err), 0);
	ck_assert_int_eq(put("k", LARGE, &object, &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	ck_assert_int_eq(put("k", 200, &object, &err), 0);
	ck_assert_int_eq(put("k", LARGE / 4, &object, &err), 0);
}

static const char *const facts[] = {
	"SELECT COUNT(*) FROM versions",
	"SELECT SUM(sequence * (state + 3) * (acl + 5) + COALESCE(retired_ms, 0)) FROM versions",
	"SELECT SUM(version) FROM inline_bytes",
	"SELECT SUM(id * 7 + holders + is_dead * 1000) FROM part_sets",
	"SELECT SUM(part_set * 7 + start) FROM segments",
};
enum { FACTS = sizeof(facts) / sizeof(facts[0]) };

static void read_facts(int64_t out[FACTS])
{
	for (size_t i = 0; i < FACTS; i++)
		out[i] = fixture_count(fixture.store, facts[i]);
}

/* Whichever statement of a change fails, the key stays as it was, and the same change succeeds
 * afterwards. */
START_TEST(a_change_that_fails_leaves_no_half_version)
{
	struct error err = {0};
	int hits = 0;
	make_history();
	for (int versioning = 1; versioning <= 2; versioning++) {
		ck_assert_int_eq(fixture_run(fixture.store,
					 versioning == 1 ? "UPDATE buckets SET versioning = 1"
							 : "UPDATE buckets SET versioning = 2",
					 &err),
			0);
		for (int i = 0; i < ACTS; i++) {
			int64_t before[FACTS];
			int64_t after[FACTS];
			ck_assert_int_eq(preparations[i % PREPARATIONS](&err), 0);
			read_facts(before);
			ck_assert_msg(
				fixture_run(fixture.store, faults[_i], &err) == 0, "%s", err.text);
			const bool failed = acts[i](&err) != 0;
			ck_assert_int_eq(fixture_run(fixture.store, "DROP TRIGGER fault", &err), 0);
			read_facts(after);
			hits += failed;
			for (int k = 0; failed && k < FACTS; k++)
				ck_assert_msg(before[k] == after[k], "act %d: %s", i, facts[k]);
			if (failed)
				ck_assert_msg(acts[i](&err) == 0, "%s", err.text);
		}
	}
	ck_assert_int_gt(hits, 0);
}
END_TEST

struct db_call {
	struct change change; /* first */
	int (*run)(struct db *db, struct error *err);
};

static int apply_call(struct change *change, struct db *db, struct error *err)
{
	return ((struct db_call *)change)->run(db, err);
}

static void run_call(int (*run)(struct db *db, struct error *err))
{
	struct error err = {0};
	struct db_call call = {.change.apply = apply_call, .run = run};
	ck_assert_msg(committer_run(store_committer(fixture.store), &call.change, &err) == 0, "%s",
		err.text);
}

static int check_plain_sum(struct db *db, struct error *err)
{
	static const char sql[] = "SELECT checksum FROM versions";
	struct arena *const arena = arena_new(10000);
	struct version version;
	uint64_t sum;
	int64_t checksum = 0;
	ck_assert_int_eq(version_find_current(db, 1, span_text("old"), arena, &version, err), 1);
	sum = row_sum_bytes(0, span_of(version.id, VERSION_ID_BYTES));
	sum = row_sum_number(sum, 1);
	sum = row_sum_bytes(sum, span_text("old"));
	sum = row_sum_number(sum, 0);
	sum = row_sum_number(sum, 3);
	sum = row_sum_bytes(sum, span_text("etag"));
	sum = row_sum_bytes(sum, span_of(version.digest.bytes, 16));
	sum = row_sum_bytes(sum, span_of(version.file_hash.bytes, 32));
	sum = row_sum_number(sum, 77);
	sum = row_sum_bytes(sum, version.headers);
	sum = row_sum_number(sum, 0);
	sum = row_sum_number(sum, 5);
	ck_assert_int_eq(db_find_i64(db, sql, &checksum, err), 1);
	ck_assert(sum == (uint64_t)checksum);
	arena_free(arena);
	return 0;
}

static int push_plain(struct db *db, struct error *err)
{
	struct version version = {.id = {1, 2, 3},
		.bucket = 1,
		.key = span_text("old"),
		.size = 3,
		.etag = "etag",
		.has_digest = true,
		.digest.bytes = {4, 5},
		.has_file_hash = true,
		.file_hash.bytes = {6, 7},
		.modified_ms = 77,
		.contents = 5};
	return version_push(db, BUCKET_UNVERSIONED, NULL, &version, err);
}

/* Rows of a catalog before this schema keep their sums: docs/FORMAT.md, "Checksums". */
START_TEST(a_row_that_uses_no_new_column_has_the_sum_of_the_first_schema)
{
	run_call(push_plain);
	run_call(check_plain_sum);
}
END_TEST

/* The sum covers each new column. */
static const char *const damages[] = {
	"UPDATE versions SET has_id = 1 - has_id",
	"UPDATE versions SET is_marker = 1 - is_marker",
	"UPDATE versions SET part_count = 2",
	"UPDATE versions SET checksum_kind = checksum_kind + 16",
	"UPDATE versions SET checksum_value = zeroblob(8)",
	"UPDATE versions SET checksum_value = zeroblob(100)",
	"UPDATE versions SET storage_class = 3",
	"UPDATE versions SET acl = 1",
	"UPDATE versions SET tags = x'010061010062'",
	"UPDATE versions SET digest = NULL",
	"UPDATE versions SET digest = x'00'",
	"UPDATE versions SET file_hash = x''",
	"UPDATE versions SET id = x''",
};

START_TEST(damaged_columns_are_noticed)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(put("k", 10, &object, &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store, damages[_i], &err), 0);
	ck_assert_int_eq(
		object_find_sequence(fixture.store, object.sequence, fixture.arena, &object, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
}
END_TEST

static const struct digest128 late = {{9, 8, 7}};

static int push_without_digest(struct db *db, struct error *err)
{
	struct version version = {.id = {1},
		.bucket = 1,
		.key = span_text("k"),
		.size = 3,
		.etag = "e-2",
		.part_count = 2,
		.modified_ms = 77,
		.checksum = {CHECKSUM_CRC32, CHECKSUM_COMPOSITE, 4, {1, 2, 3, 4}},
		.tags = span_text("\1\0a\1\0b")};
	return version_push(db, BUCKET_VERSIONED, NULL, &version, err);
}

static int give_digest(struct db *db, struct error *err)
{
	struct version version;
	ck_assert_int_eq(version_find_current(db, 1, span_text("k"), NULL, &version, err), 1);
	ck_assert(!version.has_digest && !version.has_file_hash && version.part_count == 2);
	ck_assert_int_eq(version.checksum.type, CHECKSUM_COMPOSITE);
	return version_set_digest(db, version.sequence, &late, err);
}

START_TEST(a_digest_can_come_later)
{
	struct error err = {0};
	struct object object;
	run_call(push_without_digest);
	run_call(give_digest);
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "k", &object, &err), 0);
	ck_assert(object.has_digest && digest128_equal(&object.digest, &late));
	ck_assert_uint_eq(object.checksum.len, 4);
}
END_TEST

struct unpin {
	struct change change; /* first */
	int64_t sequence;
};

static int apply_unpin(struct change *change, struct db *db, struct error *err)
{
	return version_drop_unless_named(db, ((struct unpin *)change)->sequence, err);
}

START_TEST(a_damaged_version_that_no_step_needs_holds_nothing_up)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(put("k", 10, &object, &err), 0);
	ck_assert_int_eq(
		fixture_run(fixture.store,
			"UPDATE versions SET state = 0, size = size + 1 WHERE key = x'6b'", &err),
		0);
	struct unpin change = {.change.apply = apply_unpin, .sequence = object.sequence};
	ck_assert_msg(committer_run(store_committer(fixture.store), &change.change, &err) == 0,
		"%s", err.text);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(*) FROM versions WHERE key = x'6b'"), 1);
}
END_TEST

START_TEST(a_bucket_with_markers_or_older_versions_alone_is_not_empty)
{
	struct error err = {0};
	struct object object;
	struct object_delete_item item = {.key = span_text("k")};
	ck_assert_int_eq(fixture_run(fixture.store, "UPDATE buckets SET versioning = 1", &err), 0);
	ck_assert_int_eq(put("k", 10, &object, &err), 0);
	ck_assert_int_eq(delete_key(&err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_NOT_EMPTY);
	item.ref.kind = VERSION_REF_ID;
	memcpy(item.ref.id, object.version, VERSION_ID_BYTES);
	ck_assert_int_eq(delete_with(&item, &err), 0);
	/* the marker is still there */
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "bucket", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_NOT_EMPTY);
}
END_TEST

static int64_t count(const char *sql)
{
	return fixture_count(fixture.store, sql);
}

static void run_sql(const char *sql)
{
	struct error err = {0};
	ck_assert_msg(fixture_run(fixture.store, sql, &err) == 0, "%s", err.text);
}

static struct object put_k(void)
{
	struct error err = {0};
	struct object object;
	ck_assert_msg(put("k", 10, &object, &err) == 0, "%s", err.text);
	return object;
}

/* A null version that a step names is not the null version that the key shows. */
START_TEST(a_hidden_null_version_is_not_the_older_one)
{
	put_k();
	run_sql("INSERT INTO step_objects (step, form, name, version) SELECT 1, 0, key, sequence FROM versions");
	put_k();
	run_sql("UPDATE buckets SET versioning = 1");
	put_k();
	run_sql("UPDATE buckets SET versioning = 2");
	put_k();
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state = 0"), 1);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state <> 0"), 2);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state <> 0 AND has_id = 0"), 1);
}
END_TEST

START_TEST(a_bucket_with_hidden_versions_alone_is_empty)
{
	struct error err = {0};
	put_k();
	run_sql("INSERT INTO scratch_versions (version) SELECT sequence FROM versions");
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "k", NULL, &err), 0);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state = 0"), 1);
	ck_assert_msg(fixture_delete_bucket(fixture.store, "bucket", &err) == 0, "%s", err.text);
}
END_TEST

START_TEST(a_put_into_a_suspended_bucket_makes_its_null_version)
{
	ck_assert(!put_k().in_versioned_bucket);
	run_sql("UPDATE buckets SET versioning = 1");
	const struct object with_id = put_k();
	ck_assert(with_id.in_versioned_bucket && with_id.has_id);
	run_sql("UPDATE buckets SET versioning = 2");
	const struct object null = put_k();
	ck_assert(null.in_versioned_bucket && !null.has_id);
}
END_TEST

static int64_t shown_sequence;
static enum error_kind shown_kind;

static int show(struct db *db, struct error *err)
{
	shown_kind = version_show(db, shown_sequence, err) == 0 ? ERROR_NONE : err->kind;
	return 0;
}

static enum error_kind try_show(int64_t sequence)
{
	shown_sequence = sequence;
	run_call(show);
	return shown_kind;
}

START_TEST(a_hidden_version_is_shown_where_its_key_shows_none)
{
	const struct object object = put_k();
	ck_assert_int_eq(try_show(object.sequence), ERROR_PRECONDITION); /* it is not hidden */
	run_sql("UPDATE versions SET state = 0");
	run_sql("UPDATE bucket_totals SET files = 0, bytes = 0");
	ck_assert_int_eq(try_show(object.sequence), ERROR_NONE);
	ck_assert(fixture_holds(&fixture, "bucket", "k", span_of(noise, 10)));
	ck_assert_int_eq(count("SELECT 1000 * files + bytes FROM bucket_totals"), 1010);
}
END_TEST

START_TEST(a_hidden_version_is_not_shown_beside_another)
{
	const struct object object = put_k();
	run_sql("UPDATE versions SET state = 0");
	put_k();
	ck_assert_int_eq(try_show(object.sequence), ERROR_PRECONDITION);
	ck_assert_int_eq(try_show(999), ERROR_PRECONDITION);
	ck_assert_int_eq(count("SELECT COUNT(*) FROM versions WHERE state = 1"), 1);
}
END_TEST

static int give_other_digest(struct db *db, struct error *err)
{
	static const struct digest128 other = {{1}};
	struct version version;
	ck_assert_int_eq(version_find_current(db, 1, span_text("k"), NULL, &version, err), 1);
	return version_set_digest(db, version.sequence, &other, err);
}

START_TEST(a_digest_stays_what_it_is)
{
	struct error err = {0};
	struct object object;
	run_call(push_without_digest);
	run_call(give_digest);
	run_call(give_other_digest);
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "k", &object, &err), 0);
	ck_assert(object.has_digest && digest128_equal(&object.digest, &late));
}
END_TEST

static int give_hash(struct db *db, struct error *err)
{
	static const struct chunk_id hash = {{1}};
	return version_set_file_hash(db, shown_sequence, 0, &hash, err);
}

/* A row that cannot be read does not keep the other rows of its batch from getting their hash. */
START_TEST(a_damaged_version_gets_no_hash_and_holds_nothing_up)
{
	shown_sequence = put_k().sequence;
	run_sql("UPDATE versions SET size = size + 1, file_hash = x''");
	run_call(give_hash);
	ck_assert_int_eq(count("SELECT LENGTH(file_hash) FROM versions"), 0);
}
END_TEST

static int64_t updated_ms(void)
{
	return count("SELECT updated_ms FROM bucket_totals");
}

static int push_without_hash(struct db *db, struct error *err)
{
	struct version version = {.id = {1},
		.bucket = 1,
		.key = span_text("k"),
		.size = 3,
		.etag = "e",
		.modified_ms = fixture.clock.now_ms};
	if (version_push(db, BUCKET_VERSIONED, NULL, &version, err) != 0)
		return -1;
	shown_sequence = version.sequence;
	return 0;
}

/* Gives a hash to the version that was pushed. Returns how many changes the feed tells of it. */
static size_t give_hash_and_read(void)
{
	struct change_feed *const feed = store_change_feed(fixture.store);
	struct change_position at;
	struct change_seen seen[4];
	struct change_page page = {.changes = seen, .limit = 4};
	ck_assert(change_feed_seek(feed, 1, updated_ms(), updated_ms(), &at));
	run_call(give_hash);
	ck_assert_int_eq(
		count("SELECT COUNT(*) FROM versions WHERE id = x'01000000000000000000000000000000' AND LENGTH(file_hash) = 32"),
		1);
	run_sql("DELETE FROM versions WHERE 0"); /* the feed shows earlier commits by now */
	ck_assert(change_feed_read(feed, 1, updated_ms(), &at, fixture.arena, &page));
	return page.count;
}

START_TEST(only_the_hash_of_what_shows_is_told)
{
	run_call(push_without_hash);
	if (_i == 1) {
		run_sql("UPDATE buckets SET versioning = 1");
		put_k();
	}
	ck_assert_uint_eq(give_hash_and_read(), _i == 0);
}
END_TEST

START_TEST(a_removal_is_the_moment_of_the_last_change)
{
	struct error err = {0};
	put_k();
	fixture.clock.now_ms += 5000;
	ck_assert_int_eq(fixture_delete(fixture.store, "bucket", "k", NULL, &err), 0);
	ck_assert_int_eq(updated_ms(), fixture.clock.now_ms);
}
END_TEST

START_TEST(the_moment_of_the_last_change_never_goes_back)
{
	put_k();
	const int64_t before_ms = updated_ms();
	fixture.clock.now_ms -= 100000;
	put_k();
	ck_assert_int_gt(updated_ms(), before_ms);
}
END_TEST

Suite *test_version_change_suite(void);
Suite *test_version_change_suite(void)
{
	Suite *const suite = suite_create("version_change");
	TCase *const tests = tcase_create("version_change");
	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_loop_test(tests, a_change_that_fails_leaves_no_half_version, 0,
		sizeof(faults) / sizeof(faults[0]));
	tcase_add_test(tests, a_row_that_uses_no_new_column_has_the_sum_of_the_first_schema);
	tcase_add_loop_test(
		tests, damaged_columns_are_noticed, 0, sizeof(damages) / sizeof(damages[0]));
	tcase_add_test(tests, a_digest_can_come_later);
	tcase_add_test(tests, a_damaged_version_that_no_step_needs_holds_nothing_up);
	tcase_add_test(tests, a_bucket_with_markers_or_older_versions_alone_is_not_empty);
	tcase_add_test(tests, a_hidden_null_version_is_not_the_older_one);
	tcase_add_test(tests, a_bucket_with_hidden_versions_alone_is_empty);
	tcase_add_test(tests, a_put_into_a_suspended_bucket_makes_its_null_version);
	tcase_add_test(tests, a_hidden_version_is_shown_where_its_key_shows_none);
	tcase_add_test(tests, a_hidden_version_is_not_shown_beside_another);
	tcase_add_test(tests, a_digest_stays_what_it_is);
	tcase_add_loop_test(tests, only_the_hash_of_what_shows_is_told, 0, 2);
	tcase_add_test(tests, a_damaged_version_gets_no_hash_and_holds_nothing_up);
	tcase_add_test(tests, a_removal_is_the_moment_of_the_last_change);
	tcase_add_test(tests, the_moment_of_the_last_change_never_goes_back);
	suite_add_tcase(suite, tests);
	return suite;
}
