/* The content digest shows which facts of a step a republish may change. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "tests/unit/wire/message_text.h"
#include "wire/step_message.h"

static const char request[] =
	"{\"step\":5,\"epoch\":3,\"label\":\"1200\",\"digest\":\"" DIGEST_A
	"\",\"schema_digest\":\"" DIGEST_B "\","
	"\"base\":{\"step\":4,\"digest\":\"" DIGEST_B
	"\"},\"metadata\":{\"loss\":\"0.5\"},\"tensors\":\"000102030405060708090a0b0c0d0e0f\","
	"\"files\":[{\"path\":\"a\",\"size\":1,\"digest\":\"" DIGEST_A
	"\"},{\"path\":\"b\",\"size\":2,\"digest\":\"" DIGEST_B "\"}],"
	"\"forms\":[" DELTA_TEXT "," ANCHOR_TEXT "]}";

static struct arena *arena;

static void set_up(void)
{
	arena = arena_new(1024 * 1024);
}

static void tear_down(void)
{
	arena_free(arena);
}

static struct digest128 content_of(const char *text)
{
	struct step_message step;
	struct error err = {0};
	ck_assert_msg(step_message_parse(span_text(text), arena, &step, &err) == 0, "%s: %s",
		err.text, text);
	return step_message_content_digest(&step);
}

static bool changes_content(const char *old, const char *with)
{
	char *const text = message_text_replace(request, old, with);
	const struct digest128 before = content_of(request);
	const struct digest128 after = content_of(text);
	free(text);
	return !digest128_equal(&before, &after);
}

static const struct {
	const char *old, *with;
} same_rows[] = {
	{"\"epoch\":3", "\"epoch\":4"},
	{"\"epoch\":3",
		"\"epoch\":3,\"run\":\"x/y\",\"created\":\"2026-01-02T03:04:05.000Z\",\"unknown\":1"},
	{"\"key\":\"llm/steps/000005/delta.safetensors\"", "\"key\":\"elsewhere\""},
	{"\"size\":7", "\"version\":\"00112233445566778899aabbccddeeff\",\"url\":\"u\",\"size\":7"},
	{DELTA_TEXT "," ANCHOR_TEXT, ANCHOR_TEXT "," DELTA_TEXT},
	{"{\"path\":\"a\",\"size\":1,\"digest\":\"" DIGEST_A
	 "\"},{\"path\":\"b\",\"size\":2,\"digest\":\"" DIGEST_B "\"}",
		"{\"digest\":\"" DIGEST_B
		"\",\"path\":\"b\",\"size\":2},{\"path\":\"a\",\"size\":1,\"digest\":\"" DIGEST_A
		"\"}"},
	{"\"0.5\"", "\"\\u0030.5\""},
};

START_TEST(a_republish_may_change_these)
{
	ck_assert(!changes_content(same_rows[_i].old, same_rows[_i].with));
}
END_TEST

static const struct {
	const char *old, *with;
} other_rows[] = {
	{"\"1200\"", "\"1201\""},
	{"\"label\":\"1200\",", ""},
	{DIGEST_A, DIGEST_B},
	{"\"schema_digest\":\"" DIGEST_B "\"", "\"schema_digest\":\"" DIGEST_A "\""},
	{"\"step\":4,\"digest\":\"" DIGEST_B "\"", "\"step\":4,\"digest\":\"" DIGEST_A "\""},
	{"\"0.5\"", "\"0.6\""},
	{"\"tensors\":\"00", "\"tensors\":\"01"},
	{"\"path\":\"a\"", "\"path\":\"c\""},
	{"\"size\":1,", "\"size\":2,"},
	{"\"size\":1,\"digest\":\"" DIGEST_A "\"", "\"size\":1,\"digest\":\"" DIGEST_B "\""},
	{DELTA_TEXT ",", ""},
	{"," ANCHOR_TEXT, ""},
	{"\"trl-gap\"", "\"trl-raw\""},
	{"\"name\":\"delta.safetensors\"", "\"name\":\"delta2.safetensors\""},
	{"\"size\":7", "\"size\":8"},
	{"\"size\":7,\"digest\":\"" DIGEST_B "\"", "\"size\":7,\"digest\":\"" DIGEST_A "\""},
	{"[" OBJECT_TEXT("delta.safetensors") "]", "[]"},
};

START_TEST(a_republish_may_not_change_these)
{
	ck_assert_msg(changes_content(other_rows[_i].old, other_rows[_i].with),
		"%s made no difference", other_rows[_i].old);
}
END_TEST

START_TEST(step_numbers_count)
{
	const struct step_message one = {.step = 5, .has_base = true, .base_step = 4};
	const struct step_message other = {.step = 6, .has_base = true, .base_step = 5};
	const struct digest128 first = step_message_content_digest(&one);
	const struct digest128 second = step_message_content_digest(&other);
	ck_assert(!digest128_equal(&first, &second));
}
END_TEST

START_TEST(texts_do_not_run_into_each_other)
{
	const struct step_message one = {.label = span_text("ab"), .metadata = span_text("c")};
	const struct step_message other = {.label = span_text("a"), .metadata = span_text("bc")};
	const struct digest128 first = step_message_content_digest(&one);
	const struct digest128 second = step_message_content_digest(&other);
	ck_assert(!digest128_equal(&first, &second));
}
END_TEST

/* Catalogs hold this digest: the value never changes. */
START_TEST(content_digest_is_pinned)
{
	char text[DIGEST128_TEXT_BYTES];
	const struct digest128 digest = content_of(request);
	digest128_format(&digest, text);
	ck_assert_str_eq(text, "xxh3-128:44737e2f4db66c0e2094635c349dd0c3");
}
END_TEST

Suite *test_step_content_suite(void);
Suite *test_step_content_suite(void)
{
	Suite *const suite = suite_create("step_content");
	TCase *const tc = tcase_create("all");
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(
		tc, a_republish_may_change_these, 0, sizeof(same_rows) / sizeof(same_rows[0]));
	tcase_add_loop_test(tc, a_republish_may_not_change_these, 0,
		sizeof(other_rows) / sizeof(other_rows[0]));
	tcase_add_test(tc, step_numbers_count);
	tcase_add_test(tc, texts_do_not_run_into_each_other);
	tcase_add_test(tc, content_digest_is_pinned);
	suite_add_tcase(suite, tc);
	return suite;
}
