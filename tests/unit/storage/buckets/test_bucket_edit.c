/* The effects of a change of one bucket, and what it leaves unchanged. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "storage/buckets/lifecycle_cache.h"
#include "storage/core/store.h"
#include "storage/upkeep/bucket_rename.h"
#include "tests/unit/storage/hold_fixture.h"
#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;
static struct error err;

static void set_up(void)
{
	memset(&fixture, 0, sizeof fixture);
	store_fixture_open(&fixture);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "one", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "two", "main", &err), 0);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static struct bucket find(const char *name)
{
	struct bucket bucket;
	ck_assert_msg(
		bucket_find(fixture.store, fixture_bucket(name), fixture.arena, &bucket, &err) == 0,
		"%s", err.text);
	return bucket;
}

static struct span document_of(const char *bucket, enum bucket_document_kind kind)
{
	struct span document;
	ck_assert_int_eq(bucket_document_find(fixture.store, fixture_bucket(bucket), kind,
				 fixture.arena, &document, &err),
		0);
	return document;
}

static void set_documents(const char *bucket, const struct bucket_document *documents, size_t count)
{
	const struct bucket_edit edit = {.documents = documents, .document_count = count};
	ck_assert_msg(fixture_edit_bucket(fixture.store, bucket, &edit, &err) == 0, "%s", err.text);
}

START_TEST(a_bucket_is_found_by_its_number)
{
	const struct bucket two = find("two");
	struct bucket found;
	ck_assert_int_eq(bucket_find_id(fixture.store, two.id, fixture.arena, &found, &err), 0);
	ck_assert(found.id == two.id && span_equal_text(found.name, "two") &&
		span_equal_text(found.owner, "main"));
	ck_assert_int_eq(
		bucket_find_id(fixture.store, two.id + 1, fixture.arena, &found, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
}
END_TEST

START_TEST(the_bytes_of_an_account_are_those_of_its_buckets)
{
	int64_t bytes = -1;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "theirs", "other", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "one", "k", span_text("12345"), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "two", "k", span_text("123"), &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "theirs", "k", span_text("1"), &err), 0);
	ck_assert_int_eq(bucket_bytes_of(fixture.store, span_text("main"), &bytes, &err), 0);
	ck_assert_int_eq(bytes, 8);
	ck_assert_int_eq(bucket_bytes_of(fixture.store, span_text("other"), &bytes, &err), 0);
	ck_assert_int_eq(bytes, 1);
	ck_assert_int_eq(bucket_bytes_of(fixture.store, span_text("nobody"), &bytes, &err), 0);
	ck_assert_int_eq(bytes, 0);
}
END_TEST

START_TEST(a_name_is_taken_for_any_other_account)
{
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "one", "team", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_TAKEN);
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "one", "two", "team", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_TAKEN);
}
END_TEST

START_TEST(a_rename_is_of_one_bucket_not_of_its_name)
{
	const struct bucket one = find("one");
	const struct bucket_rename rename = {
		.from = bucket_ref_of(&one), .to = span_text("new"), .account = span_text("main")};
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "one", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "one", "other", &err), 0);
	ck_assert_int_eq(fixture_call(bucket_rename_call(fixture.store, &rename), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert(span_equal_text(find("one").owner, "other"));
}
END_TEST

START_TEST(a_bucket_is_made_with_its_settings)
{
	const struct bucket_document cors = {BUCKET_CORS, span_text("cors")};
	const struct bucket_edit edit = {.sets_versioning = true,
		.versioning = BUCKET_SUSPENDED,
		.sets_etag_policy = true,
		.etag_policy = ETAG_MD5,
		.documents = &cors,
		.document_count = 1};
	ck_assert_int_eq(fixture_call(bucket_create_call(fixture.store, span_text("new"),
					      span_text("main"), &edit),
				 &err),
		0);
	const struct bucket made = find("new");
	ck_assert(made.versioning == BUCKET_SUSPENDED && made.etag_policy == ETAG_MD5);
	ck_assert(span_equal_text(document_of("new", BUCKET_CORS), "cors"));
}
END_TEST

START_TEST(settings_are_those_of_one_bucket)
{
	const struct bucket_edit edit = {.sets_versioning = true,
		.versioning = BUCKET_VERSIONED,
		.sets_etag_policy = true,
		.etag_policy = ETAG_FAST};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "one", &edit, &err), 0);
	ck_assert(
		find("one").versioning == BUCKET_VERSIONED && find("one").etag_policy == ETAG_FAST);
	ck_assert(find("two").versioning == BUCKET_UNVERSIONED &&
		find("two").etag_policy == ETAG_DEFAULT);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "one", &err), 0);
	ck_assert_int_gt(find("two").id, 0);
}
END_TEST

START_TEST(documents_of_other_kinds_and_buckets_stay)
{
	const struct bucket_document all[] = {{BUCKET_CORS, span_text("cors")},
		{BUCKET_POLICY, span_text("policy")},
		{BUCKET_LIFECYCLE, span_text("{\"rules\":[]}")}};
	const struct bucket_document none = {.kind = BUCKET_CORS};
	set_documents("two", all, 3);
	ck_assert_uint_eq(document_of("one", BUCKET_CORS).len, 0);
	set_documents("one", all, 3);
	set_documents("one", &none, 1);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(document_of("one", all[i].kind).len > 0, all[i].kind != none.kind);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "one", &err), 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert(span_equal(document_of("two", all[i].kind), all[i].bytes));
}
END_TEST

START_TEST(settings_of_the_largest_size_are_taken)
{
	uint8_t *const bytes = fixture_noise(BUCKET_DOCUMENT_MAX_BYTES, 3);
	const struct bucket_document document = {
		BUCKET_CORS, span_of(bytes, BUCKET_DOCUMENT_MAX_BYTES)};
	struct bucket_grant grants[BUCKET_GRANTS_MAX];
	struct bucket_grants stored;
	for (size_t i = 0; i < BUCKET_GRANTS_MAX; i++)
		grants[i] = (struct bucket_grant){.account = span_text("friend"),
			.prefix = span_text("in/"),
			.permissions = PERMISSION_READ};
	const struct bucket_edit edit = {.documents = &document,
		.document_count = 1,
		.replaces_grants = BUCKET_GRANTS_OF_POLICY,
		.grants = grants,
		.grant_count = BUCKET_GRANTS_MAX};
	ck_assert_msg(fixture_edit_bucket(fixture.store, "one", &edit, &err) == 0, "%s", err.text);
	ck_assert(span_equal(document_of("one", BUCKET_CORS), document.bytes));
	ck_assert_int_eq(bucket_grant_list(fixture.store, find("one").id, BUCKET_GRANTS_OF_POLICY,
				 fixture.arena, &stored, &err),
		0);
	ck_assert_uint_eq(stored.count, BUCKET_GRANTS_MAX);
	ck_assert(span_equal_text(stored.grants[stored.count - 1].account, "friend") &&
		span_equal_text(stored.grants[stored.count - 1].prefix, "in/"));
	free(bytes);
}
END_TEST

/* Each document is small enough, but all of them together are too large. */
START_TEST(settings_too_large_together_change_nothing)
{
	uint8_t *const bytes = fixture_noise(BUCKET_DOCUMENT_MAX_BYTES, 3);
	struct bucket_document documents[8];
	for (size_t i = 0; i < 8; i++)
		documents[i] = (struct bucket_document){
			BUCKET_CORS, span_of(bytes, BUCKET_DOCUMENT_MAX_BYTES)};
	const struct bucket_edit edit = {.sets_etag_policy = true,
		.etag_policy = ETAG_FAST,
		.documents = documents,
		.document_count = 8};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "one", &edit, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	ck_assert_int_eq(find("one").etag_policy, ETAG_DEFAULT);
	ck_assert_uint_eq(document_of("one", BUCKET_CORS).len, 0);
	free(bytes);
}
END_TEST

START_TEST(the_texts_of_a_change_are_copied)
{
	char texts[4][8] = {"one", "friend", "in/", "cors"};
	struct bucket_grants stored;
	const struct bucket_document document = {BUCKET_CORS, span_text(texts[3])};
	const struct bucket_grant grant = {.account = span_text(texts[1]),
		.prefix = span_text(texts[2]),
		.permissions = PERMISSION_READ};
	const struct bucket_edit edit = {.documents = &document,
		.document_count = 1,
		.replaces_grants = BUCKET_GRANTS_OF_POLICY,
		.grants = &grant,
		.grant_count = 1};
	struct committer_hold *const hold = committer_hold_new(fixture.store);
	struct settled *const settled = settled_new();
	struct call *const change =
		bucket_edit_call(fixture.store, fixture_bucket(texts[0]), &edit);
	call_start(change, settled_done, settled);
	memset(texts, 'x', sizeof texts);
	committer_hold_end(hold);
	ck_assert_int_eq(fixture_settle(change, settled, &err), 0);
	ck_assert(span_equal_text(document_of("one", BUCKET_CORS), "cors"));
	ck_assert_int_eq(bucket_grant_list(fixture.store, find("one").id, BUCKET_GRANTS_OF_POLICY,
				 fixture.arena, &stored, &err),
		0);
	ck_assert(stored.count == 1 && span_equal_text(stored.grants[0].account, "friend") &&
		span_equal_text(stored.grants[0].prefix, "in/"));
}
END_TEST

static struct bucket_document make_rules(void)
{
	return (struct bucket_document){BUCKET_LIFECYCLE,
		span_text("{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,\"prefix\":\"\","
			  "\"tags\":[],\"expires_markers\":false,\"expire_days\":1}]}")};
}

static bool expires_in(const char *bucket)
{
	const struct lifecycle_subject subject = {
		.key = span_text("k"), .size = 10, .since_ms = 1700000000000};
	static const struct span none = {NULL, 0};
	struct lifecycle_expiry expiry;
	return lifecycle_cache_expires(store_parts(fixture.store)->lifecycle_cache,
		span_text(bucket), &subject, none, fixture.arena, &expiry);
}

START_TEST(rules_are_in_force_wherever_they_stand_among_documents)
{
	const struct bucket_document both[] = {{BUCKET_CORS, span_text("cors")}, make_rules()};
	set_documents("one", both, 2);
	ck_assert(expires_in("one") && !expires_in("two"));
}
END_TEST

START_TEST(a_change_that_fails_leaves_the_rules_in_force)
{
	const struct bucket_document rules = make_rules();
	const struct bucket_document none = {.kind = BUCKET_LIFECYCLE};
	const struct bucket_edit edit = {.documents = &none, .document_count = 1};
	const struct bucket_ref other = {span_text("one"), 999};
	set_documents("one", &rules, 1);
	ck_assert_int_eq(fixture_open_run(fixture.store, "one", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_drop_bucket(fixture.store, "one", &err), -1);
	ck_assert(expires_in("one"));
	ck_assert_int_eq(fixture_rename_bucket(fixture.store, "one", "two", "main", &err), -1);
	ck_assert(expires_in("one") && !expires_in("two"));
	ck_assert_int_eq(fixture_call(bucket_edit_call(fixture.store, other, &edit), &err), -1);
	ck_assert(expires_in("one"));
}
END_TEST

START_TEST(a_prefix_that_is_a_name_lists_it)
{
	static const char *const owners[] = {"main", ""};
	struct bucket *buckets;
	size_t count = 0;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "one-more", "main", &err), 0);
	for (size_t i = 0; i < 2; i++) {
		const struct bucket_list_params params = {
			.owner = span_text(owners[i]), .prefix = span_text("one"), .limit = 10};
		ck_assert_int_eq(
			bucket_list(fixture.store, &params, fixture.arena, &buckets, &count, &err),
			0);
		ck_assert_uint_eq(count, 2);
		ck_assert(span_equal_text(buckets[0].name, "one") &&
			span_equal_text(buckets[1].name, "one-more"));
	}
}
END_TEST

Suite *test_bucket_edit_suite(void);
Suite *test_bucket_edit_suite(void)
{
	Suite *const suite = suite_create("bucket_edit");
	TCase *const tests = tcase_create("bucket_edit");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_bucket_is_found_by_its_number);
	tcase_add_test(tests, the_bytes_of_an_account_are_those_of_its_buckets);
	tcase_add_test(tests, a_name_is_taken_for_any_other_account);
	tcase_add_test(tests, a_rename_is_of_one_bucket_not_of_its_name);
	tcase_add_test(tests, a_bucket_is_made_with_its_settings);
	tcase_add_test(tests, settings_are_those_of_one_bucket);
	tcase_add_test(tests, documents_of_other_kinds_and_buckets_stay);
	tcase_add_test(tests, settings_of_the_largest_size_are_taken);
	tcase_add_test(tests, settings_too_large_together_change_nothing);
	tcase_add_test(tests, the_texts_of_a_change_are_copied);
	tcase_add_test(tests, rules_are_in_force_wherever_they_stand_among_documents);
	tcase_add_test(tests, a_change_that_fails_leaves_the_rules_in_force);
	tcase_add_test(tests, a_prefix_that_is_a_name_lists_it);
	suite_add_tcase(suite, tests);
	return suite;
}
