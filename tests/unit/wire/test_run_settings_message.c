#include "tests/unit/unit.h"

#include "wire/run_settings_message.h"

static struct run_settings settings;
static struct error err;

static void set_up(void)
{
	settings = run_settings_default();
	err = (struct error){0};
}

START_TEST(a_new_run_has_defaults)
{
	ck_assert_uint_eq(settings.keep_steps, 64);
	ck_assert_uint_eq(settings.lease_s, 120);
	ck_assert(settings.verify);
}
END_TEST

START_TEST(only_what_is_given_changes)
{
	ck_assert_int_eq(
		run_settings_parse(&settings, span_text("{\"verify\":false}"), true, &err), 0);
	ck_assert(!settings.verify && settings.keep_steps == 64 && settings.lease_s == 120);
	ck_assert_int_eq(run_settings_parse(&settings,
				 span_text("{\"keep_steps\":0,\"lease_s\":10}"), true, &err),
		0);
	ck_assert(!settings.verify && settings.keep_steps == 0 && settings.lease_s == 10);
	ck_assert_int_eq(run_settings_parse(&settings, span_text("{}"), true, &err), 0);
	ck_assert(!settings.verify && settings.keep_steps == 0 && settings.lease_s == 10);
}
END_TEST

START_TEST(unknown_settings_are_named_when_strict)
{
	const struct span later = span_text("{\"lease_s\":60,\"colour\":\"red\"}");
	ck_assert_int_eq(run_settings_parse(&settings, later, true, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	ck_assert_ptr_nonnull(strstr(err.text, "\"colour\""));
	ck_assert_ptr_nonnull(strstr(err.text, "keep_steps, lease_s"));
	settings = run_settings_default();
	ck_assert_int_eq(run_settings_parse(&settings, later, false, &err), 0);
	ck_assert_uint_eq(settings.lease_s, 60);
}
END_TEST

static const char *const bad_settings[] = {"", "[]", "null", "{\"keep_steps\":-1}",
	"{\"keep_steps\":null}", "{\"keep_steps\":\"3\"}", "{\"keep_steps\":9223372036854775808}",
	"{\"lease_s\":9}", "{\"lease_s\":86401}", "{\"lease_s\":1.5}", "{\"verify\":1}",
	"{\"verify\":\"true\"}", "{\"verify\":true,\"verify\":true}", "{\"adopt\":\"gpt\"}",
	"{\"adopt\":1}", "{\"hot_load\":7}", "{\"adopt_prefix\":\"a\\nb\"}", "{\"verify\":true}x"};

START_TEST(bad_settings_are_refused)
{
	ck_assert_int_eq(
		run_settings_parse(&settings, span_text(bad_settings[_i]), true, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(printed_settings_read_back)
{
	struct buffer text;
	struct json_writer writer;
	struct run_settings read = run_settings_default();
	settings =
		(struct run_settings){.keep_steps = INT64_MAX, .lease_s = 86400, .verify = false};
	buffer_init(&text, RUN_SETTINGS_MAX_BYTES);
	json_writer_init(&writer, &text);
	run_settings_print(&settings, NULL, &writer);
	ck_assert_int_eq(run_settings_parse(&read, buffer_span(&text), true, &err), 0);
	ck_assert(read.keep_steps == INT64_MAX && read.lease_s == 86400 && !read.verify);
	buffer_release(&text);
}
END_TEST

static const struct {
	const char *setting, *prefix;
} prefix_rows[] = {{"{run}/", "llm/"}, {"a/{run}/b{run}", "a/llm/b{run}"}, {"a/", "a/"}, {"", ""}};

START_TEST(a_prefix_holds_the_runs_name)
{
	char out[2 * RUN_PREFIX_MAX_BYTES];
	const size_t len = run_settings_prefix(prefix_rows[_i].setting, span_text("llm"), out);
	ck_assert(span_equal_text(span_of(out, len), prefix_rows[_i].prefix));
}
END_TEST

/* Requests may name runs that cannot exist: the prefix must stay within its 1024 bytes. */
START_TEST(a_name_that_no_run_has_is_cut)
{
	char name[8192];
	char out[2 * RUN_PREFIX_MAX_BYTES];
	memset(name, 'x', sizeof(name));
	const size_t len = run_settings_prefix("a/{run}/", span_of(name, sizeof(name)), out);
	ck_assert_uint_eq(len, strlen("a/") + RUN_PREFIX_MAX_BYTES + strlen("/"));
	ck_assert(out[len - 1] == '/');
}
END_TEST

Suite *test_run_settings_message_suite(void);
Suite *test_run_settings_message_suite(void)
{
	Suite *const suite = suite_create("run_settings_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, NULL);
	tcase_add_test(tc, a_new_run_has_defaults);
	tcase_add_test(tc, only_what_is_given_changes);
	tcase_add_test(tc, unknown_settings_are_named_when_strict);
	tcase_add_loop_test(
		tc, bad_settings_are_refused, 0, sizeof(bad_settings) / sizeof(bad_settings[0]));
	tcase_add_test(tc, printed_settings_read_back);
	tcase_add_loop_test(
		tc, a_prefix_holds_the_runs_name, 0, sizeof(prefix_rows) / sizeof(prefix_rows[0]));
	tcase_add_test(tc, a_name_that_no_run_has_is_cut);
	suite_add_tcase(suite, tc);
	return suite;
}
