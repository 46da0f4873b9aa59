#include "tests/unit/server/server_fixture.h"

#include <string.h>

#include "server/root_key.h"

static char *nothing[] = {NULL};
static char *all[] = {"DELTABUCKET_ROOT_KEY_ID=ROOT", "DELTABUCKET_ROOT_SECRET=secret", "DELTABUCKET_ROOT_TOKEN=token", NULL};
static char *other[] = {"DELTABUCKET_ROOT_KEY_ID=ROOT2", "DELTABUCKET_ROOT_SECRET=secret2", "DELTABUCKET_ROOT_TOKEN=token2", NULL};
static char *token_only[] = {"DELTABUCKET_ROOT_TOKEN=mine", "DELTABUCKET_ROOT_SECRET=", NULL};

static void prepare(struct server_fixture *fixture, char *const *environment, struct buffer *notice)
{
	struct error err = {0};
	buffer_reset(notice);
	ck_assert_msg(root_key_prepare(fixture->keyring, "main", environment, notice, &err) == 0, "%s", err.text);
}

static bool is_root(struct server_fixture *fixture, const char *token)
{
	struct arena *const arena = arena_new(1024 * 1024);
	const struct principal *const found = keyring_find_token(fixture->keyring, span_text(token), arena);
	const bool root = found != NULL && found->is_root;
	arena_free(arena);
	return root;
}

START_TEST(the_first_start_makes_and_shows_a_key_and_the_second_keeps_it)
{
	struct server_fixture fixture;
	struct buffer notice;
	char token[64] = {0};
	server_fixture_open(&fixture);
	buffer_init(&notice, 10000);
	prepare(&fixture, nothing, &notice);
	const char *const shown = strstr(buffer_text(&notice), "token   ");
	ck_assert_ptr_nonnull(shown);
	strncpy(token, shown + 8, strcspn(shown + 8, "\n"));
	ck_assert(is_root(&fixture, token));
	prepare(&fixture, nothing, &notice);
	ck_assert_uint_eq(notice.len, 0);
	ck_assert(is_root(&fixture, token));
	buffer_release(&notice);
	server_fixture_close(&fixture);
}
END_TEST

START_TEST(the_environment_defines_it_at_every_start)
{
	struct server_fixture fixture;
	struct buffer notice;
	server_fixture_open(&fixture);
	buffer_init(&notice, 10000);
	prepare(&fixture, all, &notice);
	prepare(&fixture, all, &notice);
	ck_assert_uint_eq(notice.len, 0);
	ck_assert(is_root(&fixture, "token"));
	prepare(&fixture, other, &notice);
	ck_assert(!is_root(&fixture, "token"));
	ck_assert(is_root(&fixture, "token2"));
	prepare(&fixture, nothing, &notice);
	ck_assert(is_root(&fixture, "token2"));
	buffer_release(&notice);
	server_fixture_close(&fixture);
}
END_TEST

START_TEST(what_the_environment_leaves_out_is_made_and_shown)
{
	struct server_fixture fixture;
	struct buffer notice;
	server_fixture_open(&fixture);
	buffer_init(&notice, 10000);
	prepare(&fixture, token_only, &notice);
	ck_assert(is_root(&fixture, "mine"));
	ck_assert_ptr_nonnull(strstr(buffer_text(&notice), "secret  "));
	buffer_release(&notice);
	server_fixture_close(&fixture);
}
END_TEST

Suite *test_root_key_suite(void);

Suite *test_root_key_suite(void)
{
	Suite *const suite = suite_create("root_key");
	TCase *const tcase = tcase_create("root_key");
	tcase_add_test(tcase, the_first_start_makes_and_shows_a_key_and_the_second_keeps_it);
	tcase_add_test(tcase, the_environment_defines_it_at_every_start);
	tcase_add_test(tcase, what_the_environment_leaves_out_is_made_and_shown);
	suite_add_tcase(suite, tcase);
	return suite;
}
