#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/storage/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
	memset(&fixture, 0, sizeof(fixture));
	store_fixture_open(&fixture);
}

static void tear_down(void)
{
	store_fixture_close(&fixture);
}

static const struct {
	const char *name;
	const char *namespace;
	bool good;
} names[] = {
	{"abc", "main", true},
	{"a.b-c9", "main", true},
	{"123456789012345678901234567890123456789012345678901234567890123", "main", true},
	{"1234567890123456789012345678901234567890123456789012345678901234", "main", false},
	{"ab", "main", false},
	{"", "main", false},
	{"Abc", "main", false},
	{"a_c", "main", false},
	{"abc-", "main", false},
	{".abc", "main", false},
	{"a..b", "main", false},
	{"a.-b", "main", false},
	{"a-.b", "main", false},
	{"192.168.5.4", "main", false},
	{"192.168.5.4x", "main", true},
	{"1.2.3", "main", true},
	{"xn--abc", "xn", false},
	{"sthree-abc", "main", false},
	{"abc-s3alias", "main", false},
	{"abc--ol-s3", "abc", false},
	{"abc--x-s3", "abc", false},
	{"team--model", "team", true},
	{"team--model", "main", false},
	{"team--a--b", "team", true},
	{"api", "main", false},
	{"console", "main", false},
	{"v1", "main", false},
	{"xet", "main", false},
	{"health", "main", false},
	{"buckets", "main", false},
};

START_TEST(names_follow_the_rules)
{
	struct error err = {0};
	const int result =
		bucket_check_name(span_text(names[_i].name), span_text(names[_i].namespace), &err);
	ck_assert_msg(result == (names[_i].good ? 0 : -1), "%s", names[_i].name);
	ck_assert_int_eq(err.kind, names[_i].good ? ERROR_NONE : ERROR_BAD_NAME);
}
END_TEST

START_TEST(a_bucket_has_one_owner)
{
	struct error err = {0};
	struct bucket bucket;
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_OWNED);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_TAKEN);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert(span_equal_text(bucket.name, "abc"));
	ck_assert(span_equal_text(bucket.owner, "main"));
	ck_assert_int_eq(bucket.created_ms, 1700000000000);
}
END_TEST

START_TEST(only_an_empty_bucket_is_deleted)
{
	struct error err = {0};
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	ck_assert_int_eq(fixture_put(fixture.store, "abc", "k", span_text("x"), &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_NOT_EMPTY);
	ck_assert_int_eq(fixture_delete(fixture.store, "abc", "k", NULL, &err), 0);
	ck_assert_int_eq(fixture_open_run(fixture.store, "abc", "run", NULL, &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_BUCKET_HAS_RUNS);
	const struct run_ref run = run_named(span_text("abc"), span_text("run"));
	ck_assert_int_eq(fixture_call(run_delete_call(fixture.store, &run), &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), 0);
	ck_assert_int_eq(fixture_delete(fixture.store, "abc", "k", NULL, &err), 0);
}
END_TEST

static void expect_document(enum bucket_document_kind kind, const char *text)
{
	struct error err = {0};
	struct span document;
	ck_assert_int_eq(bucket_document_find(fixture.store, fixture_bucket("abc"), kind,
				 fixture.arena, &document, &err),
		0);
	ck_assert_msg(span_equal_text(document, text), "%.*s", (int)document.len,
		(const char *)document.data);
}

START_TEST(an_edit_is_whole_and_lasts)
{
	struct error err = {0};
	struct bucket bucket;
	const struct bucket_document documents[] = {
		{BUCKET_CORS, span_text("cors")}, {BUCKET_POLICY, span_text("policy")}};
	const struct bucket_document fewer[] = {
		{BUCKET_CORS, {NULL, 0}}, {BUCKET_POLICY, span_text("other")}};
	struct bucket_edit edit = {.sets_versioning = true,
		.versioning = BUCKET_VERSIONED,
		.sets_etag_policy = true,
		.etag_policy = ETAG_FAST,
		.documents = documents,
		.document_count = 2};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	expect_document(BUCKET_CORS, "");
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
	store_fixture_reopen(&fixture);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket.versioning, BUCKET_VERSIONED);
	ck_assert_int_eq(bucket.etag_policy, ETAG_FAST);
	expect_document(BUCKET_CORS, "cors");
	expect_document(BUCKET_POLICY, "policy");
	edit = (struct bucket_edit){.documents = fewer, .document_count = 2};
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
	expect_document(BUCKET_CORS, "");
	expect_document(BUCKET_POLICY, "other");
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket.versioning, BUCKET_VERSIONED);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM bucket_documents"), 0);
}
END_TEST

START_TEST(an_edit_is_of_one_bucket_not_of_its_name)
{
	struct error err = {0};
	struct bucket bucket;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	const struct bucket_ref ref = bucket_ref_of(&bucket);
	const struct bucket_edit edit = {.sets_etag_policy = true, .etag_policy = ETAG_FAST};
	ck_assert_int_eq(fixture_call(bucket_edit_call(fixture.store, ref, &edit), &err), 0);
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "other", &err), 0);
	ck_assert_int_eq(fixture_call(bucket_edit_call(fixture.store, ref, &edit), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NO_BUCKET);
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket.etag_policy, ETAG_DEFAULT);
}
END_TEST

START_TEST(an_edit_too_large_changes_nothing)
{
	struct error err = {0};
	uint8_t *const bytes = fixture_noise(BUCKET_DOCUMENT_MAX_BYTES + 1, 1);
	const struct bucket_document document = {
		BUCKET_CORS, span_of(bytes, BUCKET_DOCUMENT_MAX_BYTES + 1)};
	static const struct bucket_grant grants[BUCKET_GRANTS_MAX + 1];
	const struct bucket_edit edits[] = {
		{.sets_etag_policy = true,
			.etag_policy = ETAG_FAST,
			.documents = &document,
			.document_count = 1},
		{.sets_etag_policy = true,
			.etag_policy = ETAG_FAST,
			.replaces_grants = BUCKET_GRANTS_OF_ACL,
			.grants = grants,
			.grant_count = BUCKET_GRANTS_MAX + 1},
	};
	struct bucket bucket;
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edits[i], &err), -1);
		ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	}
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket.etag_policy, ETAG_DEFAULT);
	free(bytes);
}
END_TEST

/* questions, and whether the grants below allow them */
static const struct {
	const char *account;
	const char *key;
	unsigned permissions;
	bool allowed;
} asked[] = {
	{"", "pub/k", PERMISSION_READ, true},
	{"", "pub/k", PERMISSION_READ | PERMISSION_VERSIONS, false},
	{"", "pub/k", PERMISSION_WRITE, false},
	{"", "puB/k", PERMISSION_READ, false},
	{"", "", PERMISSION_LIST, true},
	{"anybody", "pub/k", PERMISSION_READ, true},
	{"team", "in/k", PERMISSION_WRITE, true},
	{"team", "in/k", PERMISSION_DELETE, false},
	{"team", "in/k", PERMISSION_READ, false},
	{"team", "out/k", PERMISSION_WRITE, false},
	{"teams", "in/k", PERMISSION_WRITE, false},
	{"", "in/k", PERMISSION_WRITE, false},
};

static void grant_all(void)
{
	static const struct bucket_grant acl[] = {{{NULL, 0}, {NULL, 0}, PERMISSION_LIST}};
	const struct bucket_grant policy[] = {
		{{NULL, 0}, span_text("pub/"), PERMISSION_READ},
		{span_text("team"), span_text("in/"), PERMISSION_WRITE},
	};
	struct error err = {0};
	const struct bucket_edit edits[] = {
		{.replaces_grants = BUCKET_GRANTS_OF_ACL, .grants = acl, .grant_count = 1},
		{.replaces_grants = BUCKET_GRANTS_OF_POLICY, .grants = policy, .grant_count = 2},
	};
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "abc", "main", &err), 0);
	for (size_t i = 0; i < 2; i++)
		ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edits[i], &err), 0);
}

static bool allows(const char *account, const char *key, unsigned permissions, bool anywhere)
{
	struct error err = {0};
	struct bucket bucket;
	bool out = false;
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	const struct bucket_question question = {.bucket = bucket.id,
		.account = span_text(account),
		.key = span_text(key),
		.permissions = permissions,
		.anywhere = anywhere};
	ck_assert_int_eq(bucket_grant_allows(fixture.store, &question, &out, &err), 0);
	return out;
}

START_TEST(grants_give_what_they_say)
{
	grant_all();
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		ck_assert_msg(allows(asked[i].account, asked[i].key, asked[i].permissions, false) ==
				asked[i].allowed,
			"row %zu", i);
	ck_assert(allows("", "", 0, true));
}
END_TEST

START_TEST(a_block_takes_public_grants_out_of_force)
{
	static const uint8_t bits[] = {IGNORE_PUBLIC_ACLS, RESTRICT_PUBLIC_BUCKETS};
	struct error err = {0};
	grant_all();
	for (size_t i = 0; i < 2; i++) {
		const struct bucket_document document = {
			BUCKET_PUBLIC_ACCESS, span_of(&bits[i], 1)};
		const struct bucket_edit edit = {.documents = &document, .document_count = 1};
		ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
		ck_assert_int_eq(
			allows("", "", PERMISSION_LIST, false), bits[i] != IGNORE_PUBLIC_ACLS);
		ck_assert_int_eq(allows("", "pub/k", PERMISSION_READ, false),
			bits[i] != RESTRICT_PUBLIC_BUCKETS);
		/* named, so not public */
		ck_assert(allows("team", "in/k", PERMISSION_WRITE, false));
	}
}
END_TEST

START_TEST(grants_go_with_their_source_and_bucket)
{
	struct error err = {0};
	struct bucket bucket;
	struct bucket_grants listed;
	const struct bucket_edit edit = {.replaces_grants = BUCKET_GRANTS_OF_POLICY};
	grant_all();
	ck_assert_int_eq(
		bucket_find(fixture.store, fixture_bucket("abc"), fixture.arena, &bucket, &err), 0);
	ck_assert_int_eq(bucket_grant_list(fixture.store, bucket.id, BUCKET_GRANTS_OF_POLICY,
				 fixture.arena, &listed, &err),
		0);
	ck_assert_uint_eq(listed.count, 2);
	ck_assert(span_equal_text(listed.grants[1].account, "team") &&
		span_equal_text(listed.grants[1].prefix, "in/"));
	ck_assert_uint_eq(listed.grants[1].permissions, PERMISSION_WRITE);
	ck_assert_int_eq(fixture_edit_bucket(fixture.store, "abc", &edit, &err), 0);
	ck_assert(!allows("", "pub/k", PERMISSION_READ, false));
	ck_assert(allows("", "", PERMISSION_LIST, false));
	ck_assert_int_eq(fixture_delete_bucket(fixture.store, "abc", &err), 0);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT count(*) FROM bucket_grants"), 0);
}
END_TEST

static size_t list(const struct bucket_list_params *params, struct bucket **out)
{
	struct error err = {0};
	size_t count = 0;
	ck_assert_int_eq(bucket_list(fixture.store, params, fixture.arena, out, &count, &err), 0);
	return count;
}

START_TEST(listing_filters_and_pages)
{
	struct error err = {0};
	struct bucket *buckets;
	size_t count;
	static const char *const mine[] = {"aaa", "model-1", "model-2", "model-3", "zzz"};
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(fixture_create_bucket(fixture.store, mine[i], "main", &err), 0);
	ck_assert_int_eq(fixture_create_bucket(fixture.store, "model-0", "other", &err), 0);
	count = list(
		&(struct bucket_list_params){
			.owner = span_text("main"), .prefix = span_text("model-"), .limit = 2},
		&buckets);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(buckets[0].name, "model-1") &&
		span_equal_text(buckets[1].name, "model-2"));
	count = list(&(struct bucket_list_params){.owner = span_text("main"),
			     .prefix = span_text("model-"),
			     .after = buckets[1].name,
			     .limit = 2},
		&buckets);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(buckets[0].name, "model-3"));
	count = list(
		&(struct bucket_list_params){
			.owner = span_text("main"), .after = span_text("model-"), .limit = 2},
		&buckets);
	ck_assert_uint_eq(count, 2);
	ck_assert(span_equal_text(buckets[0].name, "model-1") &&
		span_equal_text(buckets[0].owner, "main"));
	count = list(
		&(struct bucket_list_params){.owner = span_text("nobody"), .limit = 2}, &buckets);
	ck_assert_uint_eq(count, 0);
	count = list(
		&(struct bucket_list_params){
			.prefix = span_text("model-"), .after = span_text("aaa"), .limit = 1},
		&buckets);
	ck_assert_uint_eq(count, 1);
	ck_assert(span_equal_text(buckets[0].name, "model-0"));
	count = list(
		&(struct bucket_list_params){
			.prefix = span_text("model-"), .after = span_text("zzz"), .limit = 1},
		&buckets);
	ck_assert_uint_eq(count, 0);
	count = list(&(struct bucket_list_params){.limit = 100}, &buckets);
	ck_assert_uint_eq(count, 6);
	ck_assert(span_equal_text(buckets[1].owner, "other"));
}
END_TEST

Suite *test_bucket_suite(void);
Suite *test_bucket_suite(void)
{
	Suite *const suite = suite_create("bucket");
	TCase *const plain = tcase_create("names");
	tcase_add_loop_test(plain, names_follow_the_rules, 0, sizeof(names) / sizeof(names[0]));
	suite_add_tcase(suite, plain);
	TCase *const tests = tcase_create("bucket");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, a_bucket_has_one_owner);
	tcase_add_test(tests, only_an_empty_bucket_is_deleted);
	tcase_add_test(tests, an_edit_is_whole_and_lasts);
	tcase_add_test(tests, an_edit_is_of_one_bucket_not_of_its_name);
	tcase_add_test(tests, an_edit_too_large_changes_nothing);
	tcase_add_test(tests, grants_give_what_they_say);
	tcase_add_test(tests, a_block_takes_public_grants_out_of_force);
	tcase_add_test(tests, grants_go_with_their_source_and_bucket);
	tcase_add_test(tests, listing_filters_and_pages);
	suite_add_tcase(suite, tests);
	return suite;
}
