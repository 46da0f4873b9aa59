#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "storage/buckets/account.h"
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

static struct key_record make_key(const char *id)
{
	return (struct key_record){.id = span_text(id),
		.name = span_text("trainer"),
		.namespace = span_text("main"),
		.sealed_secret = span_of("\x00\x01\x02", 3),
		.token_hash = span_text("0123456789abcdef0123456789abcdef")};
}

static size_t list(struct key_record **out)
{
	struct error err = {0};
	size_t count;
	ck_assert_msg(account_list_keys(fixture.store, fixture.arena, out, &count, &err) == 0, "%s",
		err.text);
	return count;
}

START_TEST(keys_come_back_with_their_grants)
{
	struct error err = {0};
	struct key_record *keys;
	const struct grant grants[] = {
		{span_text("weights"), span_text("run/"), PERMISSION_READ | PERMISSION_LIST},
		{span_text("other"), span_text(""), PERMISSION_ADMIN},
	};
	struct key_record key = make_key("AK1");
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	key = make_key("AK2");
	key.grants = grants;
	key.grant_count = 2;
	key.created_ms = 5;
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	store_fixture_reopen(&fixture);
	ck_assert_uint_eq(list(&keys), 2);
	ck_assert(span_equal_text(keys[0].id, "AK1"));
	ck_assert_uint_eq(keys[0].grant_count, 0);
	ck_assert_int_eq(keys[0].created_ms, 1700000000000);
	ck_assert(span_equal(keys[1].sealed_secret, span_of("\x00\x01\x02", 3)));
	ck_assert(span_equal(keys[1].token_hash, key.token_hash));
	ck_assert(span_equal_text(keys[1].namespace, "main") &&
		span_equal_text(keys[1].name, "trainer"));
	ck_assert_int_eq(keys[1].created_ms, 5);
	ck_assert_uint_eq(keys[1].grant_count, 2);
	ck_assert(span_equal_text(keys[1].grants[0].bucket, "weights") &&
		span_equal_text(keys[1].grants[0].prefix, "run/"));
	ck_assert_uint_eq(keys[1].grants[0].permissions, PERMISSION_READ | PERMISSION_LIST);
	ck_assert_uint_eq(keys[1].grants[1].prefix.len, 0);
	ck_assert_uint_eq(keys[1].grants[1].permissions, PERMISSION_ADMIN);
}
END_TEST

START_TEST(ids_are_taken_once)
{
	struct error err = {0};
	const struct key_record key = make_key("AK1");
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
}
END_TEST

START_TEST(revoked_keys_are_gone_and_the_root_key_stays)
{
	struct error err = {0};
	struct key_record *keys;
	const struct grant grant = {span_text("weights"), span_text(""), PERMISSION_READ};
	struct key_record key = make_key("AK1");
	key.grants = &grant;
	key.grant_count = 1;
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	key = make_key("ROOT");
	key.is_root = true;
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("AK1"), &err), 0);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("AK1"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text(""), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("ROOT"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	ck_assert_uint_eq(list(&keys), 1);
	ck_assert_int_eq(fixture_count(fixture.store, "SELECT COUNT(*) FROM grants"), 0);
}
END_TEST

START_TEST(a_new_root_key_replaces_the_old_one)
{
	struct error err = {0};
	struct key_record *keys;
	struct key_record key = make_key("ROOT1");
	key.is_root = true;
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	/* each start adds the same key again */
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	key.id = span_text("ROOT2");
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	ck_assert_uint_eq(list(&keys), 1);
	ck_assert(keys[0].is_root && span_equal_text(keys[0].id, "ROOT2"));
}
END_TEST

START_TEST(many_keys_come_back_each_with_its_own)
{
	enum { KEYS = 40 };
	struct error err = {0};
	struct key_record *keys;
	char id[16];
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(id, sizeof id, "AK%02u", i);
		const struct grant grant = {span_text("weights"), span_text(id), PERMISSION_READ};
		struct key_record key = make_key(id);
		key.namespace = span_text(i % 2 == 0 ? "main" : "team");
		key.grants = &grant;
		key.grant_count = 1;
		ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	}
	ck_assert_int_eq(account_revoke_key(fixture.store, span_text("AK00"), &err), 0);
	ck_assert_uint_eq(list(&keys), KEYS - 1);
	for (unsigned i = 1; i < KEYS; i++) {
		snprintf(id, sizeof id, "AK%02u", i);
		ck_assert(span_equal_text(keys[i - 1].id, id) &&
			span_equal_text(keys[i - 1].namespace, i % 2 == 0 ? "main" : "team"));
		ck_assert(keys[i - 1].grant_count == 1 &&
			span_equal_text(keys[i - 1].grants[0].prefix, id));
	}
}
END_TEST

START_TEST(an_account_exists_by_its_own_name)
{
	static const struct {
		const char *name;
		bool exists;
	} asked[] = {{"main", true}, {"ma", false}, {"mains", false}, {"", false}, {"a", false}};
	struct error err = {0};
	bool exists = false;
	const struct key_record key = make_key("AK1");
	ck_assert_int_eq(account_add_key(fixture.store, &key, &err), 0);
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		ck_assert_int_eq(
			account_exists(fixture.store, span_text(asked[i].name), &exists, &err), 0);
		ck_assert_msg(exists == asked[i].exists, "%s", asked[i].name);
	}
}
END_TEST

Suite *test_account_suite(void);
Suite *test_account_suite(void)
{
	Suite *const suite = suite_create("account");
	TCase *const tests = tcase_create("account");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, keys_come_back_with_their_grants);
	tcase_add_test(tests, ids_are_taken_once);
	tcase_add_test(tests, revoked_keys_are_gone_and_the_root_key_stays);
	tcase_add_test(tests, a_new_root_key_replaces_the_old_one);
	tcase_add_test(tests, many_keys_come_back_each_with_its_own);
	tcase_add_test(tests, an_account_exists_by_its_own_name);
	suite_add_tcase(suite, tests);
	return suite;
}
