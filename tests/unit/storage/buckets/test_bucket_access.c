/* The rights that a bucket gives to others count only as they were stored. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/thread/lock.h"
#include "storage/buckets/bucket_access.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_grant.h"
#include "storage/core/store.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;
static struct error err;

static void edit(struct bucket_edit change)
{
	ck_assert_msg(
		fixture_edit_bucket(fixture.store, "box", &change, &err) == 0, "%s", err.text);
}

static void set_up(void)
{
	const struct bucket_grant grants[] = {bucket_grant_public_read(),
		{.account = span_text("friend"),
			.prefix = span_text("in/"),
			.permissions = PERMISSION_WRITE}};
	const struct bucket_grant acl = bucket_grant_public_read();
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "box", "main", &err), 0);
	edit((struct bucket_edit){
		.replaces_grants = BUCKET_GRANTS_OF_POLICY, .grants = grants, .grant_count = 2});
	edit((struct bucket_edit){
		.replaces_grants = BUCKET_GRANTS_OF_ACL, .grants = &acl, .grant_count = 1});
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static bool allows(const char *account, const char *key, unsigned permissions)
{
	const struct bucket_question question = {.bucket = 1,
		.account = span_text(account),
		.key = span_text(key),
		.permissions = permissions};
	bool result = true;
	ck_assert_msg(
		bucket_grant_allows(fixture.store, &question, &result, &err) == 0, "%s", err.text);
	return result;
}

static bool is_public(void)
{
	return allows("", "k", PERMISSION_READ);
}

static bool honours(void)
{
	bool result = true;
	ck_assert_int_eq(bucket_grant_honours_object_acl(fixture.store, 1, &result, &err), 0);
	return result;
}

static void block(uint8_t bits)
{
	const struct bucket_document document = {
		BUCKET_PUBLIC_ACCESS, bits == 0 ? (struct span){NULL, 0} : span_of(&bits, 1)};
	edit((struct bucket_edit){.documents = &document, .document_count = 1});
}

struct asker {
	pthread_t thread;
	_Atomic bool ends;
	unsigned asked;
	unsigned refused;
};

static void *ask_always(void *argument)
{
	struct asker *asker = argument;
	while (!atomic_load(&asker->ends)) {
		asker->asked++;
		asker->refused += !honours();
	}
	return NULL;
}

/* A question during a change sees the rights before it, or those after it. */
START_TEST(a_change_is_never_seen_half)
{
	struct asker asker = {.asked = 0};
	struct bucket_grant grants[2] = {bucket_grant_public_read(),
		{.account = span_text("friend"), .permissions = PERMISSION_READ}};
	lock_thread_start(&asker.thread, "asker", ask_always, &asker);
	for (size_t i = 0; i < 300; i++)
		edit((struct bucket_edit){.replaces_grants = BUCKET_GRANTS_OF_ACL,
			.grants = grants,
			.grant_count = 1 + i % 2});
	atomic_store(&asker.ends, true);
	pthread_join(asker.thread, NULL);
	ck_assert_uint_gt(asker.asked, 0);
	ck_assert_uint_eq(asker.refused, 0);
}
END_TEST

START_TEST(what_was_stored_holds)
{
	ck_assert(is_public() && allows("friend", "in/x", PERMISSION_WRITE) &&
		!allows("friend", "out", PERMISSION_WRITE));
	ck_assert(honours());
	block(IGNORE_PUBLIC_ACLS | RESTRICT_PUBLIC_BUCKETS);
	ck_assert(!is_public() && !honours() && allows("friend", "in/x", PERMISSION_WRITE));
	block(0);
	ck_assert(is_public() && honours());
	store_fixture_reopen(&fixture);
	ck_assert(is_public() && honours());
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "box", "chest", "main", &err), 0);
	ck_assert(is_public());
}
END_TEST

static const char *const damage[] = {
	"UPDATE buckets SET access = access + 1",
	"UPDATE bucket_grants SET account = '' WHERE account = CAST('friend' AS BLOB)",
	"UPDATE bucket_grants SET prefix = '' WHERE account = CAST('friend' AS BLOB)",
	"UPDATE bucket_grants SET permissions = 63 WHERE account = CAST('friend' AS BLOB)",
	"UPDATE bucket_grants SET source = 2, ordinal = 7 WHERE source = 1",
	"DELETE FROM bucket_grants WHERE account = CAST('friend' AS BLOB)",
	"INSERT INTO bucket_grants (bucket, source, ordinal, account, prefix, permissions) VALUES (1, 2, 9, '', '', 63)",
	"INSERT INTO bucket_documents (bucket, kind, document) VALUES (1, 5, x'01')",
};

START_TEST(damaged_rows_mean_private)
{
	ck_assert_msg(fixture_run(fixture.store, damage[_i], &err) == 0, "%s", err.text);
	ck_assert(!is_public() && !allows("friend", "in/x", PERMISSION_WRITE) && !honours());
	/* Another setting does not make damaged rights count again. */
	const struct bucket_document cors = {BUCKET_CORS, span_text("<CORSConfiguration/>")};
	edit((struct bucket_edit){.documents = &cors, .document_count = 1});
	ck_assert(!is_public() && !honours());
	/* The owner sets the rights again. */
	const struct bucket_grant grant = {
		.account = span_text("friend"), .permissions = PERMISSION_READ};
	edit((struct bucket_edit){
		.replaces_grants = BUCKET_GRANTS_OF_POLICY, .grants = &grant, .grant_count = 1});
	ck_assert(allows("friend", "k", PERMISSION_READ) &&
		!allows("friend", "in/x", PERMISSION_WRITE));
	ck_assert(!is_public() && !honours());
	block(0);
	ck_assert(!is_public() && honours());
}
END_TEST

START_TEST(a_policy_that_is_not_in_force_is_not_shown)
{
	char sql[100];
	const struct bucket_document policy = {BUCKET_POLICY, span_text("{}")};
	const struct bucket_grant grant = {
		.account = span_text("friend"), .permissions = PERMISSION_READ};
	snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM bucket_documents WHERE kind = %d",
		BUCKET_POLICY);
	edit((struct bucket_edit){.documents = &policy, .document_count = 1});
	ck_assert_int_eq(fixture_count(fixture.store, sql), 1);
	ck_assert_msg(fixture_run(fixture.store, damage[0], &err) == 0, "%s", err.text);
	edit((struct bucket_edit){
		.replaces_grants = BUCKET_GRANTS_OF_ACL, .grants = &grant, .grant_count = 1});
	ck_assert_int_eq(fixture_count(fixture.store, sql), 0);
}
END_TEST

START_TEST(a_block_that_is_lost_opens_nothing)
{
	block(IGNORE_PUBLIC_ACLS | RESTRICT_PUBLIC_BUCKETS);
	ck_assert_int_eq(fixture_run(fixture.store, "DELETE FROM bucket_documents", &err), 0);
	ck_assert(!is_public() && !honours());
}
END_TEST

START_TEST(what_cannot_be_believed_is_blocked_whole)
{
	const struct bucket_grant grant = {
		.account = span_text("friend"), .permissions = PERMISSION_READ};
	const uint8_t all = BLOCK_PUBLIC_ACLS | IGNORE_PUBLIC_ACLS | BLOCK_PUBLIC_POLICY |
		RESTRICT_PUBLIC_BUCKETS;
	struct span document;
	ck_assert_msg(fixture_run(fixture.store, damage[0], &err) == 0, "%s", err.text);
	edit((struct bucket_edit){
		.replaces_grants = BUCKET_GRANTS_OF_POLICY, .grants = &grant, .grant_count = 1});
	ck_assert_int_eq(bucket_document_find(fixture.store, fixture_bucket("box"),
				 BUCKET_PUBLIC_ACCESS, fixture.arena, &document, &err),
		0);
	ck_assert(span_equal(document, span_of(&all, 1)));
}
END_TEST

START_TEST(the_sum_of_one_bucket_is_not_that_of_another)
{
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(
			fixture_create_bucket(fixture.store, i == 0 ? "one" : "two", "main", &err),
			0);
	ck_assert_int_eq(
		fixture_count(fixture.store, "SELECT COUNT(DISTINCT access) FROM buckets"), 3);
}
END_TEST

/* Buckets 2 and 5 of five have a wrong sum. */
START_TEST(each_bucket_with_a_wrong_sum_is_found)
{
	static const char *const names[] = {"two", "three", "four", "five"};
	static const int64_t wrong[] = {2, 5};
	int64_t bucket = 0;
	struct span name;
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(fixture_create_bucket(fixture.store, names[i], "main", &err), 0);
	ck_assert_int_eq(fixture_run(fixture.store,
				 "UPDATE buckets SET access = access + 1 WHERE id IN (2, 5)", &err),
		0);
	struct db *const db = store_reader_take(fixture.store, &err);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(
			bucket_access_next_wrong(db, bucket, fixture.arena, &bucket, &name, &err),
			1);
		ck_assert_int_eq(bucket, wrong[i]);
		ck_assert(span_equal_text(name, names[wrong[i] - 2]));
	}
	ck_assert_int_eq(
		bucket_access_next_wrong(db, bucket, fixture.arena, &bucket, &name, &err), 0);
	store_reader_give(fixture.store, db);
}
END_TEST

Suite *test_bucket_access_suite(void);
Suite *test_bucket_access_suite(void)
{
	Suite *const suite = suite_create("bucket_access");
	TCase *const tests = tcase_create("bucket_access");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, what_was_stored_holds);
	tcase_add_test(tests, a_change_is_never_seen_half);
	tcase_add_loop_test(tests, damaged_rows_mean_private, 0, sizeof damage / sizeof *damage);
	tcase_add_test(tests, a_policy_that_is_not_in_force_is_not_shown);
	tcase_add_test(tests, a_block_that_is_lost_opens_nothing);
	tcase_add_test(tests, what_cannot_be_believed_is_blocked_whole);
	tcase_add_test(tests, the_sum_of_one_bucket_is_not_that_of_another);
	tcase_add_test(tests, each_bucket_with_a_wrong_sum_is_found);
	suite_add_tcase(suite, tests);
	return suite;
}
