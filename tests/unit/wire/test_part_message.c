#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/wire/message_text.h"
#include "wire/part_message.h"

static const char full_part[] =
	"{\"epoch\":3,\"label\":\"1200\",\"base\":{\"step\":4,\"digest\":\"" DIGEST_A
	"\"},\"metadata\":{},"
	"\"files\":[{\"path\":\"b.safetensors\",\"size\":5,\"digest\":\"" DIGEST_B "\"}],"
	"\"forms\":[{\"kind\":\"delta\",\"format\":\"ulp-class\",\"bytes\":7,\"objects\":[{\"name\":\"b.safetensors\",\"key\":\"run/b\",\"size\":7,"
	"\"digest\":\"" DIGEST_B "\"}]}],\"tensors\":{\"x.1\":\"" DIGEST_A
	"\",\"\\\"y\\\"\":\"" DIGEST_B "\"}}";

static struct arena *arena;
static struct error err;
static struct buffer out;

static void set_up(void)
{
	arena = arena_new(1024 * 1024);
	buffer_init(&out, 100000);
	err = (struct error){0};
}

static void tear_down(void)
{
	arena_free(arena);
	buffer_release(&out);
}

START_TEST(a_part_goes_there_and_back)
{
	struct part_message part;
	ck_assert_msg(part_message_parse(span_text(full_part), 5, arena, &part, &err) == 0, "%s",
		err.text);
	ck_assert(part.step.step == 5 && part.step.epoch == 3 && part.step.base_step == 4 &&
		part.tensor_count == 2);
	ck_assert(span_equal_text(part.tensors[1].name, "\"y\""));
	part_message_print(&part, &out);
	ck_assert_str_eq(buffer_text(&out), full_part);
}
END_TEST

static const struct {
	const char *old, *with;
} bad_rows[] = {
	{"\"epoch\":3,", ""},
	{"\"step\":4", "\"step\":3"},
	{"\"tensors\":{", "\"tensors\":{\"x.1\":\"" DIGEST_A "\","},
	{"{\"x.1\":\"" DIGEST_A "\"", "{\"x.1\":1"},
	{"\"forms\":[", "\"forms\":[],\"f\":["},
	{"\"b.safetensors\",\"key\"", "\"../b\",\"key\""},
	{"\"files\":[", "\"files\":[5,"},
	{"\"tensors\":{\"x.1\":\"" DIGEST_A "\",\"\\\"y\\\"\":\"" DIGEST_B "\"}",
		"\"tensors\":\"00\""},
};

START_TEST(bad_parts_are_refused)
{
	struct part_message part;
	char *const text = message_text_replace(full_part, bad_rows[_i].old, bad_rows[_i].with);
	ck_assert_msg(part_message_parse(span_text(text), 5, arena, &part, &err) == -1, "taken: %s",
		text);
	ck_assert(err.kind == ERROR_INVALID || err.kind == ERROR_BASE_MISSING);
	free(text);
}
END_TEST

/* Catalogs hold this digest: the value never changes. */
START_TEST(the_content_digest_is_pinned)
{
	struct part_message part;
	char text[DIGEST128_TEXT_BYTES];
	ck_assert_int_eq(part_message_parse(span_text(full_part), 5, arena, &part, &err), 0);
	const struct digest128 digest = part_message_content_digest(&part, 2);
	digest128_format(&digest, text);
	ck_assert_str_eq(text, "xxh3-128:741ed356692c0ea9e6d09922aaa0a177");
	part.step.epoch = 4;
	const struct digest128 later = part_message_content_digest(&part, 2);
	ck_assert(digest128_equal(&digest, &later));
	const struct digest128 other = part_message_content_digest(&part, 3);
	ck_assert(!digest128_equal(&digest, &other));
}
END_TEST

START_TEST(an_answer_says_what_was_received)
{
	const struct part_answer answer = {
		.step = 5, .part = 2, .parts = 16, .received = 3, .published = true};
	part_answer_print(&answer, &out);
	ck_assert_str_eq(buffer_text(&out),
		"{\"step\":5,\"part\":2,\"of\":16,\"received\":3,\"published\":true}");
}
END_TEST

Suite *test_part_message_suite(void);
Suite *test_part_message_suite(void)
{
	Suite *const suite = suite_create("part_message");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, a_part_goes_there_and_back);
	tcase_add_loop_test(tc, bad_parts_are_refused, 0, sizeof(bad_rows) / sizeof(bad_rows[0]));
	tcase_add_test(tc, the_content_digest_is_pinned);
	tcase_add_test(tc, an_answer_says_what_was_received);
	suite_add_tcase(suite, tc);
	return suite;
}
