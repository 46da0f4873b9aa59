#include "tests/unit/server/server_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "server/root_key.h"

static char *nothing[] = {NULL};
static char *all[] = {"DELTABUCKET_ROOT_KEY_ID=ROOT", "DELTABUCKET_ROOT_SECRET=secret",
	"DELTABUCKET_ROOT_TOKEN=token", NULL};
static char *other[] = {"DELTABUCKET_ROOT_KEY_ID=ROOT2", "DELTABUCKET_ROOT_SECRET=secret2",
	"DELTABUCKET_ROOT_TOKEN=token2", NULL};
static char *token_only[] = {"DELTABUCKET_ROOT_TOKEN=mine-alone", "DELTABUCKET_ROOT_SECRET=", NULL};

static struct start_place place;

static void prepare(struct server_fixture *fixture, char *const *environment, struct buffer *notice)
{
	struct error err = {0};
	buffer_reset(notice);
	ck_assert_msg(
		root_key_prepare(fixture->keyring, "main", environment, &place, notice, &err) == 0,
		"%s", err.text);
}

static bool is_root(struct server_fixture *fixture, const char *token)
{
	struct arena *const arena = arena_new(1024 * 1024);
	const struct principal *const found =
		keyring_find_token(fixture->keyring, span_text(token), arena);
	const bool root = found != NULL && found->is_root;
	arena_free(arena);
	return root;
}

static const struct {
	char *setting;
	bool good;
} checked[] = {
	{"DELTABUCKET_ROOT_SECRET=x", false},
	{"DELTABUCKET_ROOT_SECRET=1234567", false},
	{"DELTABUCKET_ROOT_TOKEN=1234567", false},
	{"DELTABUCKET_ROOT_SECRET=12345678", true},
	{"DELTABUCKET_ROOT_TOKEN=12345678", true},
	{"DELTABUCKET_ROOT_SECRET=", true},
	{"DELTABUCKET_ROOT_KEY_ID=x", true},
};

START_TEST(a_secret_that_can_be_guessed_is_refused)
{
	char *environment[] = {checked[_i].setting, NULL};
	struct error err = {0};
	ck_assert_int_eq(root_key_check(environment, &err), checked[_i].good ? 0 : -1);
	if (!checked[_i].good)
		ck_assert_ptr_nonnull(strstr(err.text, "DELTABUCKET_ROOT_"));
}
END_TEST

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

/* The lines can be pasted: the values are those of the key, quoted where a shell needs it. */
START_TEST(lines_to_paste_come_with_the_key)
{
	struct server_fixture fixture;
	struct buffer notice;
	char endpoint[] = "https://127.0.0.1:9000", others[] = "https://bucket.example:9000";
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
	static const char *const lines[] = {
		"  export DELTABUCKET_ENDPOINT=https://127.0.0.1:9000\n",
		"  export DELTABUCKET_CA='/a b/it'\\''s.pem'\n",
		"  export DELTABUCKET_TOKEN=$DELTABUCKET_ROOT_TOKEN\n",
		"  export AWS_ACCESS_KEY_ID=", "  export AWS_DEFAULT_REGION=us-east-1\n",
		"DELTABUCKET_ROOT_KEY_ID, DELTABUCKET_ROOT_SECRET.\n",
		"  deltabucket login https://bucket.example:9000 --fingerprint sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"};
	place = (struct start_place){.endpoint = endpoint,
		.others = others,
		.ca_path = "/a b/it's.pem",
		.ca_pem = pem,
		.region = "us-east-1"};
	server_fixture_open(&fixture);
	buffer_init(&notice, 10000);
	prepare(&fixture, token_only, &notice);
	place = (struct start_place){.endpoint = NULL};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		ck_assert_msg(strstr(buffer_text(&notice), lines[i]) != NULL,
			"%s is missing in: %s", lines[i], buffer_text(&notice));
	ck_assert_ptr_null(strstr(buffer_text(&notice), "mine"));
	buffer_release(&notice);
	server_fixture_close(&fixture);
}
END_TEST

static const struct {
	const char *listen[2];
	const char *public_url;
	const char *name;
	bool http;
	const char *endpoint, *others;
} places[] = {
	{{"127.0.0.1:9000"}, NULL, NULL, false, "https://127.0.0.1:7", NULL},
	{{"unix:/x", "[::1]:80"}, NULL, NULL, true, "http://[::1]:7", NULL},
	{{"0.0.0.0:9000"}, NULL, "bucket.example", false, "https://127.0.0.1:7",
		"https://bucket.example:7"},
	{{"[::]:9000"}, NULL, NULL, false, "https://127.0.0.1:7", "https://HOST:7"},
	{{"10.0.0.7:0"}, NULL, NULL, false, "https://10.0.0.7:7", "https://10.0.0.7:7"},
	{{"0.0.0.0:9000"}, "https://front.example", NULL, false, "https://front.example",
		"https://front.example"},
	{{"unix:/x"}, NULL, NULL, false, NULL, NULL},
};

START_TEST(the_endpoint_is_one_to_connect_to)
{
	char *listen[2] = {
		(char *)(uintptr_t)places[_i].listen[0], (char *)(uintptr_t)places[_i].listen[1]};
	char *name[1] = {(char *)(uintptr_t)places[_i].name};
	struct configuration configuration = {.http = places[_i].http,
		.public_url = (char *)(uintptr_t)places[_i].public_url,
		.listen = {.items = listen, .count = listen[1] != NULL ? 2 : 1},
		.tls_name = {.items = name, .count = name[0] != NULL ? 1 : 0}};
	static const unsigned ports[] = {7, 7};
	char *const endpoint = start_notice_endpoint(&configuration, ports);
	char *const others = start_notice_others(&configuration, ports);
	ck_assert_pstr_eq(endpoint, places[_i].endpoint);
	ck_assert_pstr_eq(others, places[_i].others);
	free(endpoint);
	free(others);
}
END_TEST

START_TEST(what_the_environment_leaves_out_is_made_and_shown)
{
	struct server_fixture fixture;
	struct buffer notice;
	server_fixture_open(&fixture);
	buffer_init(&notice, 10000);
	prepare(&fixture, token_only, &notice);
	ck_assert(is_root(&fixture, "mine-alone"));
	ck_assert_ptr_nonnull(strstr(buffer_text(&notice), "secret  "));
	buffer_release(&notice);
	server_fixture_close(&fixture);
}
END_TEST

static char *bad[][2] = {{"DELTABUCKET_ROOT_KEY_ID=a/b", NULL},
	{"DELTABUCKET_ROOT_SECRET=a b", NULL}, {"DELTABUCKET_ROOT_TOKEN=a b", NULL}};

START_TEST(what_cannot_be_a_key_is_refused_by_its_variable_and_not_shown)
{
	struct error err = {0};
	const size_t name_len = strcspn(bad[_i][0], "=");
	ck_assert_int_eq(root_key_check(nothing, &err), 0);
	ck_assert_int_eq(root_key_check(token_only, &err), 0);
	ck_assert_int_eq(root_key_check(bad[_i], &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_msg(strncmp(err.text, "environment, ", 13) == 0 &&
			strncmp(err.text + 13, bad[_i][0], name_len) == 0,
		"%s", err.text);
	ck_assert_msg(strstr(err.text, ": a key id is 1 to ") != NULL ||
			strstr(err.text, ": secret and token are 1 to ") != NULL,
		"%s", err.text);
	ck_assert_ptr_null(strstr(err.text, bad[_i][0] + name_len + 1));
}
END_TEST

Suite *test_root_key_suite(void);

Suite *test_root_key_suite(void)
{
	Suite *const suite = suite_create("root_key");
	TCase *const tcase = tcase_create("root_key");
	tcase_add_test(tcase, lines_to_paste_come_with_the_key);
	tcase_add_loop_test(
		tcase, the_endpoint_is_one_to_connect_to, 0, sizeof places / sizeof places[0]);
	tcase_add_test(tcase, the_first_start_makes_and_shows_a_key_and_the_second_keeps_it);
	tcase_add_loop_test(tcase, a_secret_that_can_be_guessed_is_refused, 0,
		sizeof(checked) / sizeof(checked[0]));
	tcase_add_test(tcase, the_environment_defines_it_at_every_start);
	tcase_add_test(tcase, what_the_environment_leaves_out_is_made_and_shown);
	tcase_add_loop_test(
		tcase, what_cannot_be_a_key_is_refused_by_its_variable_and_not_shown, 0, 3);
	suite_add_tcase(suite, tcase);
	return suite;
}
