#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/auth/grant_text.h"
#include "api/auth/keyring.h"
#include "api/auth/signing_key.h"
#include "base/memory.h"
#include "storage/open/store_open.h"

static const uint8_t master_key[32] = {1, 2, 3};

struct house {
	char *folder;
	struct store *store;
	struct keyring *keyring;
	struct arena *arena;
};

static void open_keyring(struct house *house, const uint8_t key[32])
{
	struct error err = {0};
	house->keyring = keyring_open(house->store, key, &err);
	ck_assert_msg(house->keyring != NULL, "%s", err.text);
}

static void open_house(struct house *house)
{
	struct error err = {0};
	house->folder = unit_scratch_make();
	house->arena = arena_new(16 * 1024 * 1024);
	const struct store_options options = {.folder = house->folder};
	house->store = store_open(&options, &err);
	ck_assert_msg(house->store != NULL, "%s", err.text);
	open_keyring(house, master_key);
}

static void close_house(struct house *house)
{
	keyring_close(house->keyring);
	store_close(house->store);
	arena_free(house->arena);
	unit_scratch_remove(house->folder);
}

static struct keyring_made_key add(struct house *house, const struct keyring_new_key *key)
{
	struct keyring_made_key made;
	struct error err = {0};
	ck_assert_msg(
		keyring_add(house->keyring, key, house->arena, &made, &err) == 0, "%s", err.text);
	return made;
}

START_TEST(a_new_key_is_found_by_id_and_token_at_once_and_after_reopening)
{
	struct house house;
	open_house(&house);
	const struct grant grants[] = {
		{span_text("models"), span_text("run/"), PERMISSION_READ | PERMISSION_LIST}};
	const struct keyring_new_key key = {
		.name = "worker", .namespace = "team", .grants = grants, .grant_count = 1};
	const struct keyring_made_key made = add(&house, &key);
	for (int i = 0; i < 2; i++) {
		struct span secret = {NULL, 0};
		const struct principal *const by_id =
			keyring_find_id(house.keyring, span_text(made.id), house.arena, &secret);
		const struct principal *const by_token =
			keyring_find_token(house.keyring, span_text(made.token), house.arena);
		ck_assert_ptr_nonnull(by_id);
		ck_assert_ptr_nonnull(by_token);
		ck_assert(span_equal_text(secret, made.secret));
		ck_assert(span_equal_text(by_token->key_id, made.id));
		ck_assert(span_equal_text(by_token->namespace, "team"));
		ck_assert(!by_token->is_root);
		ck_assert_uint_eq(by_token->grant_count, 1);
		ck_assert(span_equal_text(by_token->grants[0].bucket, "models"));
		ck_assert(span_equal_text(by_token->grants[0].prefix, "run/"));
		ck_assert_uint_eq(
			by_token->grants[0].permissions, PERMISSION_READ | PERMISSION_LIST);
		keyring_close(house.keyring);
		open_keyring(&house, master_key);
	}
	close_house(&house);
}
END_TEST

START_TEST(made_keys_are_all_different_and_long)
{
	struct house house;
	open_house(&house);
	const struct keyring_new_key key = {.namespace = "main"};
	const struct keyring_made_key a = add(&house, &key);
	const struct keyring_made_key b = add(&house, &key);
	ck_assert_str_ne(a.id, b.id);
	ck_assert_str_ne(a.secret, b.secret);
	ck_assert_str_ne(a.token, b.token);
	ck_assert_uint_eq(strlen(a.id), 20);
	ck_assert_uint_eq(strlen(a.secret), 40);
	ck_assert_uint_ge(strlen(a.token), 40);
	close_house(&house);
}
END_TEST

START_TEST(unknown_and_revoked_keys_are_not_found)
{
	struct house house;
	struct error err = {0};
	struct span secret;
	open_house(&house);
	const struct keyring_new_key key = {.namespace = "main"};
	const struct keyring_made_key made = add(&house, &key);
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text("nonsense"), house.arena));
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text(""), house.arena));
	ck_assert_ptr_null(
		keyring_find_id(house.keyring, span_text("nonsense"), house.arena, &secret));
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text(made.secret), house.arena));
	const struct principal *const before =
		keyring_find_token(house.keyring, span_text(made.token), house.arena);
	ck_assert_int_eq(keyring_revoke(house.keyring, span_text(made.id), &err), 0);
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text(made.token), house.arena));
	ck_assert_ptr_null(
		keyring_find_id(house.keyring, span_text(made.id), house.arena, &secret));
	/* A request that has the key finishes with it. */
	ck_assert(span_equal_text(before->key_id, made.id));
	ck_assert_int_eq(keyring_revoke(house.keyring, span_text(made.id), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_NOT_FOUND);
	close_house(&house);
}
END_TEST

/* The second key comes before or after the first one in the sorted set. A signing key that is
 * cached for one place must not be used for the other. */
START_TEST(signing_keys_are_those_of_the_key_through_all_changes)
{
	static const char *const ids[] = {"MMMM", "AAAA", "ZZZZ"};
	struct house house;
	uint8_t key[32];
	uint8_t expected[32];
	struct error err = {0};
	open_house(&house);
	for (size_t i = 0; i < 3; i++) {
		char secret[32];
		snprintf(secret, sizeof secret, "secret-%zu", i);
		add(&house,
			&(struct keyring_new_key){
				.namespace = "team", .id = ids[i], .secret = secret});
		for (size_t j = 0; j <= i; j++) {
			snprintf(secret, sizeof secret, "secret-%zu", j);
			signing_key_derive(span_text(secret), span_text("20260202"),
				span_text("here"), expected);
			const struct principal *const found =
				keyring_find_signing_key(house.keyring, span_text(ids[j]),
					span_text("20260202"), span_text("here"), house.arena, key);
			ck_assert(found != NULL && span_equal_text(found->key_id, ids[j]));
			ck_assert_mem_eq(key, expected, sizeof key);
		}
	}
	ck_assert_int_eq(keyring_revoke(house.keyring, span_text("MMMM"), &err), 0);
	ck_assert_ptr_null(keyring_find_signing_key(house.keyring, span_text("MMMM"),
		span_text("20260202"), span_text("here"), house.arena, key));
	close_house(&house);
}
END_TEST

START_TEST(another_master_key_opens_nothing)
{
	static const uint8_t other[32] = {9};
	struct house house;
	struct error err = {0};
	open_house(&house);
	const struct keyring_new_key key = {.namespace = "main"};
	add(&house, &key);
	ck_assert_ptr_null(keyring_open(house.store, other, &err));
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	ck_assert_ptr_nonnull(strstr(err.text, "master key"));
	close_house(&house);
}
END_TEST

START_TEST(a_key_that_cannot_be_unsealed_keeps_nobody_from_the_others)
{
	struct house house;
	struct error err = {0};
	struct key_record *keys = NULL;
	size_t count = 0;
	open_house(&house);
	const struct keyring_new_key key = {
		.id = "good", .secret = "s", .token = "t1", .namespace = "main"};
	const struct key_record broken = {.id = span_text("broken"),
		.namespace = span_text("main"),
		.sealed_secret = span_text("not sealed by anybody, and long enough"),
		.token_hash = span_text("0123456789abcdef0123456789abcdef")};
	add(&house, &key);
	ck_assert_int_eq(account_add_key(house.store, &broken, &err), 0);
	ck_assert_msg(keyring_reload(house.keyring, &err) == 0, "%s", err.text);
	ck_assert_ptr_nonnull(keyring_find_token(house.keyring, span_text("t1"), house.arena));
	ck_assert_int_eq(keyring_list(house.keyring, house.arena, &keys, &count, &err), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert(
		!keys[0].is_damaged && keys[1].is_damaged && span_equal_text(keys[1].id, "broken"));
	ck_assert_int_eq(keyring_revoke(house.keyring, span_text("broken"), &err), 0);
	close_house(&house);
}
END_TEST

START_TEST(an_unstored_root_key_replaces_the_others)
{
	struct house house;
	struct error err = {0};
	open_house(&house);
	const struct keyring_new_key key = {
		.id = "good", .secret = "s", .token = "t1", .namespace = "main"};
	const struct keyring_new_key old = {
		.id = "root", .secret = "s", .token = "t2", .namespace = "main", .is_root = true};
	const struct keyring_made_key held = {
		.id = "root", .secret = "s3", .token = "t3", .namespace = "main"};
	add(&house, &key);
	add(&house, &old);
	ck_assert_msg(keyring_set_unstored_root(house.keyring, &held, &err) == 0, "%s", err.text);
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text("t2"), house.arena));
	const struct principal *root =
		keyring_find_token(house.keyring, span_text("t3"), house.arena);
	ck_assert(root != NULL && root->is_root && span_equal_text(root->namespace, "main"));
	struct span secret;
	ck_assert_ptr_nonnull(
		keyring_find_id(house.keyring, span_text("root"), house.arena, &secret));
	ck_assert(span_equal_text(secret, "s3"));
	ck_assert_ptr_nonnull(keyring_find_token(house.keyring, span_text("t1"), house.arena));
	close_house(&house);
}
END_TEST

static const struct {
	const char *id;
	const char *secret;
	const char *token;
	const char *namespace;
} refused[] = {{"a/b", "s", "t", "main"}, {"a b", "s", "t", "main"}, {"", "s", "t", "main"},
	{"a", "s s", "t", "main"}, {"a", "s", "", "main"}, {"a", "s", "t", ""},
	{"a", "s", "t", "-x"}, {"a", "s", "t", "x-"}, {"a", "s", "t", "a--b"}, {"a", "s", "t", "A"},
	{"a", "s", "t", "a/b"}};

START_TEST(texts_that_would_not_work_are_refused)
{
	struct house house;
	struct error err = {0};
	struct keyring_made_key made;
	open_house(&house);
	const struct keyring_new_key key = {.id = refused[_i].id,
		.secret = refused[_i].secret,
		.token = refused[_i].token,
		.namespace = refused[_i].namespace};
	ck_assert_int_eq(keyring_add(house.keyring, &key, house.arena, &made, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	close_house(&house);
}
END_TEST

START_TEST(an_id_can_be_given_once)
{
	struct house house;
	struct error err = {0};
	struct keyring_made_key made;
	open_house(&house);
	const struct keyring_new_key key = {
		.id = "mine", .secret = "s", .token = "t1", .namespace = "main"};
	add(&house, &key);
	ck_assert_int_eq(keyring_add(house.keyring, &key, house.arena, &made, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_EXISTS);
	close_house(&house);
}
END_TEST

START_TEST(a_new_root_key_replaces_the_old_one)
{
	struct house house;
	struct error err = {0};
	open_house(&house);
	const struct keyring_new_key first = {
		.id = "root1", .secret = "s1", .token = "t1", .namespace = "main", .is_root = true};
	const struct keyring_new_key second = {
		.id = "root2", .secret = "s2", .token = "t2", .namespace = "main", .is_root = true};
	add(&house, &first);
	add(&house, &first);
	add(&house, &second);
	ck_assert_ptr_null(keyring_find_token(house.keyring, span_text("t1"), house.arena));
	const struct principal *const root =
		keyring_find_token(house.keyring, span_text("t2"), house.arena);
	ck_assert_ptr_nonnull(root);
	ck_assert(root->is_root);
	ck_assert_int_eq(keyring_revoke(house.keyring, span_text("root2"), &err), -1);
	ck_assert_int_eq(err.kind, ERROR_DENIED);
	close_house(&house);
}
END_TEST

static const struct {
	const char *text;
	const char *bucket;
	const char *prefix;
	unsigned permissions;
} grants[] = {{"b=read", "b", "", PERMISSION_READ}, {"b/p/q=read,write,list,admin", "b", "p/q", 15},
	{"b/=list", "b", "", PERMISSION_LIST}, {"b/a=b=write", "b", "a=b", PERMISSION_WRITE},
	{"b=read,read", "b", "", PERMISSION_READ}, {"", NULL, NULL, 0}, {"b", NULL, NULL, 0},
	{"b=", NULL, NULL, 0}, {"=read", NULL, NULL, 0}, {"/p=read", NULL, NULL, 0},
	{"b=reed", NULL, NULL, 0}, {"b=read,", NULL, NULL, 0}, {"b=,read", NULL, NULL, 0},
	{"b=READ", NULL, NULL, 0}};

START_TEST(grants_as_people_write_them)
{
	struct grant grant;
	struct error err = {0};
	const int parsed = grant_text_parse(span_text(grants[_i].text), &grant, &err);
	ck_assert_int_eq(parsed, grants[_i].bucket != NULL ? 0 : -1);
	if (parsed != 0) {
		ck_assert_int_eq(err.kind, ERROR_INVALID);
		return;
	}
	ck_assert(span_equal_text(grant.bucket, grants[_i].bucket));
	ck_assert(span_equal_text(grant.prefix, grants[_i].prefix));
	ck_assert_uint_eq(grant.permissions, grants[_i].permissions);
}
END_TEST

static const struct {
	const char *text;
	const char *said;
} refused_grants[] = {
	{"files=reed",
		"The grant 'files=reed' names 'reed', which is not one of read, write, list and admin."},
	{"files=read,Write", "The grant 'files=read,Write' names 'Write', which is not one of"},
	{"files=read,",
		"The grant 'files=read,' is neither of the form BUCKET[/PREFIX]=read,write,list,admin"},
	{"metric", "The grant 'metric' is neither of the form"},
	{"*=read",
		"Grants have no wildcards: '*' must be the name of one bucket, as in files=read."},
	{"run*/x=list", "'run*/x' must be the name of one bucket, as in files=list."},
	{"files/*=read,list",
		"Grants have no wildcards: instead of 'files/*' write files/=read,list, which covers all"},
	{"files/run*/x=read",
		"instead of 'files/run*/x' write files/run=read, which covers all keys with this"},
};

START_TEST(a_refused_grant_is_told_what_is_wrong)
{
	struct grant grant;
	struct error err = {0};
	ck_assert_int_eq(grant_text_parse(span_text(refused_grants[_i].text), &grant, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strstr(err.text, refused_grants[_i].said) != NULL, "%s", err.text);
}
END_TEST

START_TEST(a_printed_grant_reads_back)
{
	struct grant grant;
	struct error err = {0};
	struct buffer out;
	buffer_init(&out, 100);
	ck_assert_int_eq(grant_text_parse(span_text("b/run/=list,read"), &grant, &err), 0);
	grant_text_print(&grant, &out);
	ck_assert_str_eq(buffer_text(&out), "b/run/=read,list");
	buffer_release(&out);
}
END_TEST

enum who { ROOT, OWNER, GRANTED, NOBODY };

static const struct {
	enum who who;
	const char *bucket;
	const char *owner;
	const char *key;
	unsigned permission;
	bool allowed;
} cases[] = {
	{ROOT, "x", "other", "k", PERMISSION_ADMIN, true},
	{OWNER, "x", "team", "k", PERMISSION_WRITE, true},
	{OWNER, "x", "team", "", PERMISSION_ADMIN, true},
	{OWNER, "x", "other", "k", PERMISSION_READ, false},
	/* so that the caller learns that the bucket does not exist */
	{OWNER, "x", "", "k", PERMISSION_READ, true},
	{GRANTED, "models", "other", "run/a", PERMISSION_READ, true},
	{GRANTED, "models", "other", "run/a", PERMISSION_WRITE, false},
	{GRANTED, "models", "other", "run", PERMISSION_READ, false},
	{GRANTED, "models", "other", "", PERMISSION_LIST, false},
	{GRANTED, "models", "other", "run/", PERMISSION_LIST, true},
	{GRANTED, "models2", "other", "run/a", PERMISSION_READ, false},
	/* Grants exclude even other buckets of the key's account. */
	{GRANTED, "mine", "team", "k", PERMISSION_READ, false},
	{GRANTED, "gone", "", "k", PERMISSION_READ, false},
	{GRANTED, "whole", "other", "any/key", PERMISSION_READ | PERMISSION_WRITE, true},
	{NOBODY, "x", "", "k", PERMISSION_READ, false},
	{NOBODY, "x", "team", "k", PERMISSION_READ, false},
};

START_TEST(who_may_do_what)
{
	const struct grant two[] = {
		{span_text("models"), span_text("run/"), PERMISSION_READ | PERMISSION_LIST},
		{span_text("whole"), span_text(""), PERMISSION_READ | PERMISSION_WRITE}};
	const struct principal principals[] = {
		[ROOT] = {.namespace = span_text("main"), .is_root = true},
		[OWNER] = {.namespace = span_text("team")},
		[GRANTED] = {.namespace = span_text("team"), .grants = two, .grant_count = 2},
	};
	const struct principal *const who =
		cases[_i].who == NOBODY ? NULL : &principals[cases[_i].who];
	ck_assert_int_eq(
		principal_allows(who, span_text(cases[_i].bucket), span_text(cases[_i].owner),
			span_text(cases[_i].key), cases[_i].permission),
		cases[_i].allowed);
}
END_TEST

Suite *test_keyring_suite(void);

Suite *test_keyring_suite(void)
{
	Suite *const suite = suite_create("keyring");
	TCase *const tcase = tcase_create("keyring");
	tcase_add_test(tcase, a_new_key_is_found_by_id_and_token_at_once_and_after_reopening);
	tcase_add_test(tcase, made_keys_are_all_different_and_long);
	tcase_add_test(tcase, unknown_and_revoked_keys_are_not_found);
	tcase_add_test(tcase, signing_keys_are_those_of_the_key_through_all_changes);
	tcase_add_test(tcase, another_master_key_opens_nothing);
	tcase_add_loop_test(tcase, texts_that_would_not_work_are_refused, 0,
		sizeof refused / sizeof refused[0]);
	tcase_add_test(tcase, an_id_can_be_given_once);
	tcase_add_test(tcase, an_unstored_root_key_replaces_the_others);
	tcase_add_test(tcase, a_key_that_cannot_be_unsealed_keeps_nobody_from_the_others);
	tcase_add_test(tcase, a_new_root_key_replaces_the_old_one);
	tcase_add_loop_test(
		tcase, grants_as_people_write_them, 0, sizeof grants / sizeof grants[0]);
	tcase_add_loop_test(tcase, a_refused_grant_is_told_what_is_wrong, 0,
		sizeof(refused_grants) / sizeof(refused_grants[0]));
	tcase_add_test(tcase, a_printed_grant_reads_back);
	tcase_add_loop_test(tcase, who_may_do_what, 0, sizeof cases / sizeof cases[0]);
	suite_add_tcase(suite, tcase);
	return suite;
}
