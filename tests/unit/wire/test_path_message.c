#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/wire/message_text.h"
#include "wire/step_message.h"

#define PRINTED_FORM(kind, format)                    \
	"{\"kind\":\"" kind "\",\"format\":\"" format \
	"\",\"bytes\":7,\"objects\":[" OBJECT_TEXT("o") "]}"
#define FROM(from, step, form)                                                            \
	"{\"step\":" step ",\"from\":" from ",\"digest\":\"" DIGEST_A "\",\"form\":" form \
	",\"files\":" FILES_TEXT "}"
#define LINK(step, form) \
	"{\"step\":" step ",\"digest\":\"" DIGEST_A "\",\"form\":" form ",\"files\":" FILES_TEXT "}"
#define ANCHOR(step)          LINK(step, PRINTED_FORM("anchor", "full"))
#define DELTA(step)           LINK(step, PRINTED_FORM("delta", "trl-gap"))
#define FOLD(from, step)      FROM(from, step, PRINTED_FORM("delta", "ulp-class"))
#define PATH(from, to, links) "{\"from\":" from ",\"to\":" to ",\"bytes\":14,\"links\":[" links "]}"

static struct arena *arena;
static struct error err;

static void set_up(void)
{
	arena = arena_new(1024 * 1024);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
}

static const char *const good_rows[] = {
	PATH("null", "5", ANCHOR("5")),
	PATH("null", "6", ANCHOR("4") "," FOLD("4", "5") "," FOLD("5", "6")),
	PATH("4", "6", FOLD("4", "5") "," FOLD("5", "6")),
	PATH("3", "6", ANCHOR("5") "," FOLD("5", "6")),
	PATH("6", "5", ANCHOR("5")),
	PATH("6", "6", ""),
	PATH("3", "20", FOLD("3", "4") "," FOLD("4", "20")),
	PATH("null", "16", ANCHOR("0") "," FOLD("0", "16")),
	PATH("4", "37", FOLD("4", "37")),
	PATH("0", "1", FOLD("0", "1")),
	PATH("null", "0", ANCHOR("0")),
};

START_TEST(walks_go_there_and_back)
{
	struct path_message path;
	struct buffer out;
	buffer_init(&out, 100000);
	ck_assert_msg(path_message_parse(span_text(good_rows[_i]), arena, &path, &err) == 0, "%s",
		err.text);
	path_message_print(&path, &out);
	ck_assert_str_eq(buffer_text(&out), good_rows[_i]);
	buffer_release(&out);
}
END_TEST

START_TEST(a_delta_that_names_no_base_follows_the_step_before)
{
	struct path_message path;
	ck_assert_msg(path_message_parse(span_text(PATH("4", "6", DELTA("5") "," DELTA("6"))),
			      arena, &path, &err) == 0,
		"%s", err.text);
	ck_assert(path.links[0].from == 4 && path.links[1].from == 5);
}
END_TEST

START_TEST(links_are_read)
{
	struct path_message path;
	ck_assert_int_eq(path_message_parse(span_text(good_rows[1]), arena, &path, &err), 0);
	ck_assert(
		path.from_nothing && path.to_step == 6 && path.bytes == 14 && path.link_count == 3);
	ck_assert(path.links[0].step == 4 && path.links[0].form.kind == STEP_ANCHOR);
	ck_assert(path.links[2].step == 6 && path.links[2].form.kind == STEP_DELTA &&
		path.links[2].form.object_count == 1);
	ck_assert(path.links[2].file_count == 1 &&
		span_equal_text(path.links[2].files[0].path, "model.safetensors"));
	ck_assert_int_eq(path_message_parse(span_text(good_rows[2]), arena, &path, &err), 0);
	ck_assert(!path.from_nothing && path.from_step == 4);
}
END_TEST

static const char *const bad_rows[] = {
	"",
	"{}",
	"[]",
	"{\"to\":1,\"bytes\":0}",
	PATH("null", "5", ""),
	PATH("4", "5", ""),
	PATH("null", "5", DELTA("5")),
	PATH("4", "6", DELTA("6")),
	PATH("4", "8", FOLD("5", "8")),
	PATH("4", "8", FOLD("3", "8")),
	PATH("4", "8", FOLD("4", "6") "," FOLD("5", "8")),
	PATH("4", "8", FOLD("4", "7")),
	PATH("4", "4", FOLD("4", "4")),
	PATH("8", "4", FOLD("8", "4")),
	PATH("null", "8", FOLD("0", "8")),
	PATH("4", "8", FOLD("\"4\"", "8")),
	PATH("4", "5", DELTA("4")),
	PATH("4", "6", DELTA("5")),
	PATH("4", "7", DELTA("5") "," DELTA("7")),
	PATH("4", "6", DELTA("5") "," ANCHOR("6")),
	PATH("null", "5", ANCHOR("5") "," ANCHOR("5")),
	PATH("0", "0", DELTA("0")),
	PATH("-1", "0", DELTA("0")),
	PATH("\"4\"", "5", DELTA("5")),
	PATH("4", "5", "5"),
	PATH("4", "5", "{\"step\":5}"),
	PATH("4", "5", "{\"step\":5,\"digest\":\"" DIGEST_A "\",\"files\":[]}"),
	PATH("4", "5", LINK("5", "{\"kind\":\"other\",\"format\":\"full\",\"objects\":[]}")),
	PATH("null", "5", LINK("5", "{\"kind\":\"anchor\",\"format\":\"full\",\"objects\":[]}")),
};

START_TEST(walks_that_lead_nowhere_are_refused)
{
	struct path_message path;
	ck_assert_msg(path_message_parse(span_text(bad_rows[_i]), arena, &path, &err) == -1,
		"taken: %s", bad_rows[_i]);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
}
END_TEST

START_TEST(unsafe_names_are_refused)
{
	struct path_message path;
	char *const text = message_text_replace(
		good_rows[0], "\"path\":\"model.safetensors\"", "\"path\":\"../../etc/cron.d/x\"");
	ck_assert_int_eq(path_message_parse(span_text(text), arena, &path, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	free(text);
}
END_TEST

START_TEST(full_arena_is_told)
{
	struct path_message path;
	struct arena *const small = arena_new(256);
	ck_assert_int_eq(path_message_parse(span_text(good_rows[1]), small, &path, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_TOO_LARGE);
	arena_free(small);
}
END_TEST

Suite *test_path_message_suite(void);
Suite *test_path_message_suite(void)
{
	Suite *const suite = suite_create("path_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(
		tc, walks_go_there_and_back, 0, sizeof(good_rows) / sizeof(good_rows[0]));
	tcase_add_test(tc, a_delta_that_names_no_base_follows_the_step_before);
	tcase_add_test(tc, links_are_read);
	tcase_add_loop_test(
		tc, walks_that_lead_nowhere_are_refused, 0, sizeof(bad_rows) / sizeof(bad_rows[0]));
	tcase_add_test(tc, unsafe_names_are_refused);
	tcase_add_test(tc, full_arena_is_told);
	suite_add_tcase(suite, tc);
	return suite;
}
