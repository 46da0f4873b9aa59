/* The ring of changes: alone, and in a store, where every way to change the file of a key must
 * reach it. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/buckets/bucket_totals.h"
#include "storage/core/change_feed.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/files/batch.h"
#include "storage/files/file_hash.h"
#include "storage/objects/object_delete.h"
#include "storage/objects/object_put.h"
#include "storage/objects/object_read.h"
#include "storage/versions/version.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"
#include "tests/unit/storage/upload_fixture.h"

enum { LIMIT = 100, ONE = 1, TWO = 2 };

static struct clock_fake now;
static struct change_feed *feed;
static struct arena *arena;
static int64_t updated[3]; /* of the buckets, as the catalog would have them */

static void open_feed(size_t changes, size_t key_bytes)
{
	const struct change_feed_options options = {
		.clock = &now.source, .changes_max = changes, .key_bytes_max = key_bytes};
	change_feed_free(feed);
	feed = change_feed_new(&options);
}

static void set_up(void)
{
	clock_fake_init(&now, 5000);
	arena = arena_new(1024 * 1024);
	feed = NULL;
	updated[ONE] = updated[TWO] = 100;
	open_feed(8, 1000);
}

static void tear_down(void)
{
	change_feed_free(feed);
	arena_free(arena);
}

static void note(int64_t bucket, const char *key, int64_t at_ms)
{
	const struct change_note change = {.bucket = bucket,
		.key = span_text(key),
		.updated_ms = updated[bucket],
		.now_ms = at_ms};
	updated[bucket] = change_feed_note(feed, &change);
}

static void change(int64_t bucket, const char *key, int64_t at_ms)
{
	note(bucket, key, at_ms);
	change_feed_show(feed);
}

/* The keys that a reader gets, each followed by a blank; "lost" when the ring lacks changes. */
static const char *read_on(int64_t bucket, struct change_position *position, size_t limit)
{
	struct change_seen seen[LIMIT];
	struct change_page page = {.changes = seen, .limit = limit};
	struct buffer text;
	buffer_init(&text, 4096);
	const bool found = change_feed_read(feed, bucket, updated[bucket], position, arena, &page);
	for (size_t i = 0; i < page.count; i++)
		buffer_format(&text, "%.*s ", (int)seen[i].key.len, (const char *)seen[i].key.data);
	if (page.has_more)
		buffer_add_text(&text, "...");
	const char *const result = arena_text(arena, buffer_span(&text));
	buffer_release(&text);
	return found ? result : "lost";
}

static const char *read_since(int64_t bucket, int64_t since_ms)
{
	struct change_position position;
	return change_feed_seek(feed, bucket, since_ms, updated[bucket], &position)
		? read_on(bucket, &position, LIMIT)
		: "lost";
}

START_TEST(changes_are_seen_once_they_are_shown)
{
	struct change_position position;
	ck_assert(change_feed_seek(feed, ONE, 100, 100, &position));
	note(ONE, "a", 200);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	note(TWO, "other", 200);
	note(ONE, "b", 201);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	change_feed_show(feed);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "a b ");
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	ck_assert_str_eq(read_since(TWO, 100), "other ");
}
END_TEST

START_TEST(what_is_taken_back_never_was)
{
	note(ONE, "a", 200);
	const uint64_t mark = change_feed_mark(feed);
	note(ONE, "b", 300);
	note(ONE, "c", 300);
	change_feed_take_back(feed, mark);
	change_feed_show(feed);
	updated[ONE] = 200;
	ck_assert_str_eq(read_since(ONE, 100), "a ");
	note(ONE, "d", 400);
	change_feed_take_back_all(feed);
	change_feed_show(feed);
	updated[ONE] = 200;
	ck_assert_str_eq(read_since(ONE, 100), "a ");
	ck_assert_str_eq(read_since(ONE, 200), "");
}
END_TEST

START_TEST(each_transaction_has_a_moment_above_all_before)
{
	note(ONE, "a", 200);
	note(ONE, "b", 150);
	ck_assert_int_eq(updated[ONE], 200);
	note(ONE, "c", 203);
	ck_assert_int_eq(updated[ONE], 203);
	change_feed_show(feed);
	change(ONE, "d", 203); /* the same millisecond: the time of the clock, if that is later */
	ck_assert_int_eq(updated[ONE], 5000);
	change(ONE, "e", 203); /* else the next one */
	ck_assert_int_eq(updated[ONE], 5001);
	change(ONE, "f", 0);
	ck_assert_int_eq(updated[ONE], 5002);
	ck_assert_str_eq(read_since(ONE, 100), "a b c d e f ");
	ck_assert_str_eq(read_since(ONE, 203), "d e f ");
	ck_assert_str_eq(read_since(ONE, 5001), "f ");
	ck_assert_str_eq(read_since(ONE, 5002), "");
	ck_assert_str_eq(read_since(ONE, 9999), "");
}
END_TEST

START_TEST(who_asks_for_what_was_forgotten_is_told_so)
{
	struct change_position early;
	struct change_position late;
	change(ONE, "a", 200);
	ck_assert(change_feed_seek(feed, ONE, 200, updated[ONE], &early));
	change(ONE, "b", 300);
	ck_assert(change_feed_seek(feed, ONE, 300, updated[ONE], &late));
	for (int i = 0; i < 8; i++)
		change(ONE, "x", 400 + i);
	ck_assert_str_eq(read_since(ONE, 100), "lost");
	ck_assert_str_eq(read_since(ONE, 200), "lost");
	ck_assert_str_eq(read_on(ONE, &early, LIMIT), "lost");
	ck_assert_str_eq(read_on(ONE, &late, LIMIT), "x x x x x x x x ");
	ck_assert_str_eq(read_since(ONE, 300), "x x x x x x x x ");
}
END_TEST

START_TEST(a_busy_bucket_costs_a_quiet_one_nothing)
{
	struct change_position position;
	change(ONE, "a", 200);
	ck_assert(change_feed_seek(feed, ONE, 200, updated[ONE], &position));
	for (int i = 0; i < 50; i++)
		change(TWO, "x", 300 + i);
	ck_assert_str_eq(read_since(ONE, 200), "");
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	ck_assert_str_eq(read_since(ONE, 100), "lost");
	change(ONE, "b", 400);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "b ");
}
END_TEST

START_TEST(half_a_transaction_is_nothing)
{
	struct change_position position;
	ck_assert(change_feed_seek(feed, ONE, 100, 100, &position));
	for (int i = 0; i < 12; i++)
		note(ONE, "x", 300 + i);
	change_feed_show(feed);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "lost");
	ck_assert_str_eq(read_since(ONE, 100), "lost");
	ck_assert_str_eq(read_since(ONE, updated[ONE]), "");
	change(ONE, "y", 400);
	ck_assert_str_eq(read_since(ONE, 311), "y ");
}
END_TEST

START_TEST(keys_take_bounded_memory)
{
	char key[601];
	memset(key, 'k', 600);
	key[600] = '\0';
	change(ONE, "a", 200);
	change(ONE, key, 300);
	change(ONE, key, 400);
	ck_assert_str_eq(read_since(ONE, 200), "lost");
	ck_assert_uint_eq(strlen(read_since(ONE, 300)), 601);
}
END_TEST

/* Forgotten changes do not count against the limit. */
START_TEST(what_fits_is_kept_however_much_went_before)
{
	char key[301];
	memset(key, 'k', 300);
	key[300] = '\0';
	for (int i = 0; i < 20; i++)
		change(ONE, key, 300 + i);
	ck_assert_uint_eq(strlen(read_since(ONE, 316)), 3 * 301);
	ck_assert_str_eq(read_since(ONE, 315), "lost");
}
END_TEST

/* The transaction has more changes than the ring has slots. */
START_TEST(behind_a_large_transaction_that_failed_changes_are_seen)
{
	for (int i = 0; i < 12; i++)
		note(ONE, "x", 300 + i);
	change_feed_take_back_all(feed);
	updated[ONE] = 100;
	ck_assert_str_eq(read_since(ONE, 100), "");
	change(ONE, "y", 400);
	ck_assert_str_eq(read_since(ONE, 100), "y ");
}
END_TEST

START_TEST(pages_can_be_resumed_and_so_can_their_moments)
{
	struct change_position position;
	ck_assert(change_feed_seek(feed, ONE, 100, 100, &position));
	note(ONE, "a", 200);
	note(ONE, "b", 200);
	note(ONE, "c", 200);
	change_feed_show(feed);
	ck_assert_str_eq(read_on(ONE, &position, 2), "a b ...");
	/* half of the transaction: a reader that has lost the number must see all of it again */
	ck_assert_int_eq(position.moment_ms, 100);
	struct change_position stranger = {.number = 0, .moment_ms = position.moment_ms};
	ck_assert_str_eq(read_on(ONE, &stranger, LIMIT), "a b c ");
	ck_assert_str_eq(read_on(ONE, &position, 2), "c ");
	ck_assert_int_eq(position.moment_ms, 200);
}
END_TEST

START_TEST(another_feed_goes_on_where_nothing_was_missed)
{
	struct change_position position = {.number = 3, .moment_ms = 100};
	const uint64_t life = change_feed_id(feed);
	open_feed(8, 1000);
	ck_assert(change_feed_id(feed) != life);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	change(ONE, "a", 200);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "a ");
	position = (struct change_position){.number = 3, .moment_ms = 99};
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "lost");
	ck_assert_str_eq(read_since(ONE, 100), "a ");
}
END_TEST

/* A listing may see a commit a moment before the feed shows it. */
START_TEST(what_is_committed_and_not_shown_yet_is_not_lost)
{
	struct change_position position;
	note(ONE, "a", 200);
	ck_assert(change_feed_seek(feed, ONE, 100, 200, &position));
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
	change_feed_show(feed);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "a ");
}
END_TEST

START_TEST(details_move_nothing)
{
	struct change_note detail = {
		.bucket = ONE, .key = span_text("a"), .existed = true, .now_ms = 4000};
	struct change_position position;
	change(ONE, "a", 200);
	ck_assert(change_feed_seek(feed, ONE, 200, 200, &position));
	detail.updated_ms = updated[ONE];
	change_feed_note_detail(feed, &detail);
	note(ONE, "b", 300);
	change_feed_note_detail(feed, &detail);
	change_feed_show(feed);
	ck_assert_str_eq(read_since(ONE, 200), "b a ");
	ck_assert_str_eq(read_since(ONE, 300), "");
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "a b a ");
	now.now_ms = 4000 + 16 * 60 * 1000;
	change_feed_note_detail(feed, &detail);
	change_feed_show(feed);
	ck_assert_str_eq(read_on(ONE, &position, LIMIT), "");
}
END_TEST

/* The tests below use a store. */

static struct store_fixture fixture;
static struct change_position stood;

static struct bucket find_bucket(void)
{
	struct bucket bucket;
	struct error err = {0};
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("bucket"), fixture.arena, &bucket, &err),
		0);
	return bucket;
}

static int64_t find_updated(void)
{
	const struct bucket bucket = find_bucket();
	struct bucket_totals totals;
	struct error err = {0};
	ck_assert_int_eq(bucket_totals_find(fixture.store, &bucket, 1, &totals, &err), 0);
	return totals.updated_ms;
}

static void set_up_store(void)
{
	struct error err = {0};
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
	arena = fixture.arena;
	feed = store_change_feed(fixture.store);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "bucket", "main", &err), 0);
	const struct bucket bucket = find_bucket();
	ck_assert(change_feed_seek(feed, bucket.id, bucket.created_ms, find_updated(), &stood));
}

static void tear_down_store(void)
{
	store_fixture_close(&fixture);
}

/* Compares the changes since the last call: "+key " when the key was absent before, "=key " when it
 * was there. */
static void expect_told(const char *wanted)
{
	const struct bucket bucket = find_bucket();
	struct change_seen seen[LIMIT];
	struct change_page page = {.changes = seen, .limit = LIMIT};
	struct buffer text;
	buffer_init(&text, 4096);
	ck_assert(change_feed_read(feed, bucket.id, find_updated(), &stood, fixture.arena, &page));
	for (size_t i = 0; i < page.count; i++)
		buffer_format(&text, "%s%.*s ", seen[i].existed ? "=" : "+", (int)seen[i].key.len,
			(const char *)seen[i].key.data);
	ck_assert_str_eq(buffer_text(&text), wanted);
	ck_assert_int_eq(stood.moment_ms, find_updated());
	buffer_release(&text);
}

static void put(const char *key, const char *text)
{
	struct error err = {0};
	ck_assert_msg(fixture_put(fixture.store, "bucket", key, span_text(text), &err) == 0, "%s",
		err.text);
}

static void delete (const char *key)
{
	struct error err = {0};
	ck_assert_msg(
		fixture_delete(fixture.store, "bucket", key, NULL, &err) == 0, "%s", err.text);
}

START_TEST(puts_and_deletes_are_told)
{
	const int64_t made_ms = find_updated();
	put("a", "one");
	put("a", "two");
	put("b", "");
	expect_told("+a =a +b ");
	ck_assert_int_gt(find_updated(), made_ms);
	const int64_t before_ms = find_updated();
	delete ("a");
	delete ("absent");
	expect_told("=a ");
	ck_assert_int_gt(find_updated(), before_ms);
}
END_TEST

START_TEST(refused_changes_are_not_told)
{
	struct error err = {0};
	struct object_put_params params = {.bucket = fixture_bucket("bucket"),
		.key = span_text("a"),
		.conditions = {.if_none_match = span_text("*")}};
	put("a", "one");
	const int64_t before_ms = find_updated();
	ck_assert_int_ne(fixture_put_with(fixture.store, &params, span_text("two"), NULL, &err), 0);
	ck_assert_int_ne(fixture_delete(fixture.store, "bucket", "a", "\"another\"", &err), 0);
	ck_assert_int_ne(
		fixture_run(fixture.store, "INSERT INTO no_such_table VALUES (1)", &err), 0);
	expect_told("+a ");
	ck_assert_int_eq(find_updated(), before_ms);
}
END_TEST

/* The transaction of a batch is lost: no reader sees what it noted before. */
START_TEST(changes_of_a_lost_batch_are_not_told)
{
	struct error err = {0};
	put("a", "one");
	expect_told("+a ");
	const int64_t before_ms = find_updated();
	struct batch_line line = {.kind = BATCH_DELETE, .path = span_text("a")};
	struct settled *const settled = settled_new();
	const struct batch_params params = {
		.bucket = fixture_bucket("bucket"), .lines = &line, .count = 1};
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct call *const batch = batch_call(fixture.store, &params);
	call_start(batch, settled_done, settled);
	struct lost_batch *const lost = lost_batch_submit(fixture.store);
	committer_hold_end(hold);
	ck_assert_int_eq(fixture_settle(batch, settled, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_IO);
	lost_batch_wait(lost);
	ck_assert(fixture_holds(&fixture, "bucket", "a", span_text("one")));
	expect_told("");
	ck_assert_int_eq(find_updated(), before_ms);
	put("b", "two"); /* later changes do not show the lost ones */
	expect_told("+b ");
}
END_TEST

static int note_then_refuse(struct change *change, struct db *db, struct error *err)
{
	const struct change_note note = {.bucket = *(const int64_t *)(change + 1),
		.key = span_text("a"),
		.existed = true,
		.updated_ms = 1,
		.now_ms = 1};
	(void)db;
	change_feed_note(feed, &note);
	return error_set(err, ERROR_PRECONDITION, "refused after it was noted");
}

START_TEST(what_a_change_noted_before_it_was_refused_is_not_told)
{
	struct error err = {0};
	struct {
		struct change change;
		int64_t bucket;
	} refused = {.change.apply = note_then_refuse, .bucket = find_bucket().id};
	put("a", "one");
	expect_told("+a ");
	ck_assert_int_eq(committer_run(store_committer(fixture.store), &refused.change, &err), -1);
	put("b", "two");
	expect_told("+b ");
}
END_TEST

START_TEST(in_versioned_buckets_what_shows_counts)
{
	struct error err = {0};
	struct object object;
	put("a", "one");
	expect_told("+a ");
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "bucket",
				 &(struct bucket_edit){
					 .sets_versioning = true, .versioning = BUCKET_VERSIONED},
				 &err),
		0);
	put("a", "two");
	delete ("a");  /* a marker */
	delete ("a");  /* another marker: no change */
	delete ("zz"); /* a marker on nothing */
	expect_told("=a =a ");
	put("a", "three");
	expect_told("+a ");
	ck_assert_int_eq(fixture_find(&fixture, "bucket", "a", &object, &err), 0);
	struct object_delete_item item = {.key = span_text("a"), .ref = {.kind = VERSION_REF_ID}};
	memcpy(item.ref.id, object.version, VERSION_ID_BYTES);
	ck_assert_int_eq(fixture_delete_items(fixture.store, "bucket", &item, 1, &err), 0);
	expect_told("=a "); /* the marker is current again: the key is absent */
}
END_TEST

static void upload(const char *key, const char *text)
{
	struct error err = {0};
	struct upload_ref ref;
	struct uploaded_part part;
	struct upload_create_params create = {.bucket = fixture_bucket("bucket"),
		.key = span_text(key),
		.initiator = span_text("main")};
	ck_assert_int_eq(fixture_upload_create(fixture.store, &create, &ref, &err), 0);
	ck_assert_int_eq(
		fixture_upload_put(fixture.store, &ref, 1, span_text(text), NULL, &part, &err), 0);
	struct upload_listed_part listed = {.number = 1};
	memcpy(listed.etag, part.etag, sizeof(listed.etag));
	struct upload_complete_params params = {.ref = ref, .parts = &listed, .part_count = 1};
	struct upload_fault fault;
	struct upload_result result;
	ck_assert_msg(fixture_upload_complete(fixture.store, &params, &result, &fault, &err) == 0,
		"%s", err.text);
}

static void wait_for_hash(const char *key)
{
	struct error err = {0};
	struct object object;
	ck_assert_int_eq(fixture_find(&fixture, "bucket", key, &object, &err), 0);
	struct settled *const settled = settled_new();
	struct file_hash_wait *const wait =
		file_hash_start(fixture.store, &object.sequence, 1, settled_done, settled);
	settled_wait(settled);
	ck_assert_msg(file_hash_outcome(wait, &err) == 0, "%s", err.text);
	file_hash_free(wait);
	/* what was committed before is shown by now */
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM versions WHERE 0", &err), 0);
}

START_TEST(a_hash_found_later_is_told)
{
	upload("m", "in one part");
	wait_for_hash("m");
	expect_told("+m =m ");
	wait_for_hash("m");
	expect_told("");
}
END_TEST

START_TEST(a_new_life_goes_on_where_nothing_was_missed)
{
	put("a", "one");
	expect_told("+a ");
	store_fixture_reopen(&fixture);
	feed = store_change_feed(fixture.store);
	stood.number = 0;
	put("b", "two");
	expect_told("+b ");
}
END_TEST

Suite *test_change_feed_suite(void);
Suite *test_change_feed_suite(void)
{
	Suite *const suite = suite_create("change_feed");
	TCase *const ring = tcase_create("ring");
	tcase_add_checked_fixture(ring, set_up, tear_down);
	tcase_add_test(ring, changes_are_seen_once_they_are_shown);
	tcase_add_test(ring, what_is_taken_back_never_was);
	tcase_add_test(ring, each_transaction_has_a_moment_above_all_before);
	tcase_add_test(ring, who_asks_for_what_was_forgotten_is_told_so);
	tcase_add_test(ring, a_busy_bucket_costs_a_quiet_one_nothing);
	tcase_add_test(ring, half_a_transaction_is_nothing);
	tcase_add_test(ring, keys_take_bounded_memory);
	tcase_add_test(ring, what_fits_is_kept_however_much_went_before);
	tcase_add_test(ring, behind_a_large_transaction_that_failed_changes_are_seen);
	tcase_add_test(ring, pages_can_be_resumed_and_so_can_their_moments);
	tcase_add_test(ring, another_feed_goes_on_where_nothing_was_missed);
	tcase_add_test(ring, what_is_committed_and_not_shown_yet_is_not_lost);
	tcase_add_test(ring, details_move_nothing);
	suite_add_tcase(suite, ring);
	TCase *const store = tcase_create("store");
	tcase_set_timeout(store, 120);
	tcase_add_checked_fixture(store, set_up_store, tear_down_store);
	tcase_add_test(store, puts_and_deletes_are_told);
	tcase_add_test(store, refused_changes_are_not_told);
	tcase_add_test(store, changes_of_a_lost_batch_are_not_told);
	tcase_add_test(store, what_a_change_noted_before_it_was_refused_is_not_told);
	tcase_add_test(store, in_versioned_buckets_what_shows_counts);
	tcase_add_test(store, a_hash_found_later_is_told);
	tcase_add_test(store, a_new_life_goes_on_where_nothing_was_missed);
	suite_add_tcase(suite, store);
	return suite;
}
