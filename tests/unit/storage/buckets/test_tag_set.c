#include "storage/buckets/tag_set.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

START_TEST(tags_come_back_in_their_order)
{
	const struct tag tags[] = {{span_text("team"), span_text("rl")},
		{span_text("empty"), span_text("")},
		{span_text("\xc3\xa9"), span_text("\xe2\x82\xac")}};
	struct arena *const arena = arena_new(4096);
	struct error err = {0};
	struct buffer blob;
	struct tag *got = NULL;
	size_t count = 0;
	buffer_init(&blob, 4096);
	ck_assert_int_eq(tag_set_check(tags, 3, TAG_SET_OBJECT_MAX, &err), 0);
	tag_set_write(tags, 3, &blob);
	ck_assert_uint_eq(blob.len, 3 * 4 + 4 + 2 + 5 + 0 + 2 + 3);
	ck_assert_uint_eq(tag_set_count(buffer_span(&blob)), 3);
	ck_assert_int_eq(tag_set_read(buffer_span(&blob), arena, &got, &count, &err), 0);
	ck_assert_uint_eq(count, 3);
	for (size_t i = 0; i < 3; i++)
		ck_assert(span_equal(got[i].key, tags[i].key) &&
			span_equal(got[i].value, tags[i].value));
	ck_assert_int_eq(tag_set_read(span_of(NULL, 0), arena, &got, &count, &err), 0);
	ck_assert_uint_eq(count, 0);
	buffer_release(&blob);
	arena_free(arena);
}
END_TEST

START_TEST(a_cut_blob_is_corrupt)
{
	const struct tag tags[] = {{span_text("key"), span_text("value")}};
	struct arena *const arena = arena_new(4096);
	struct buffer blob;
	buffer_init(&blob, 4096);
	tag_set_write(tags, 1, &blob);
	for (size_t len = 1; len < blob.len; len++) {
		struct error err = {0};
		struct tag *got = NULL;
		size_t count = 0;
		ck_assert_int_eq(
			tag_set_read(span_of(blob.data, len), arena, &got, &count, &err), -1);
		ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	}
	buffer_release(&blob);
	arena_free(arena);
}
END_TEST

static char text[1200];

static struct span repeated(const char *character, size_t count)
{
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		memcpy(text + i * strlen(character), character, strlen(character) + 1);
	return span_text(text);
}

static bool is_refused(const struct tag *tags, size_t count, size_t most)
{
	struct error err = {0};
	const int result = tag_set_check(tags, count, most, &err);
	ck_assert(result == 0 || err.kind == (count > most ? ERROR_TOO_MANY_TAGS : ERROR_BAD_TAG));
	return result != 0;
}

START_TEST(rules_count_characters_not_bytes)
{
	struct tag tag = {.value = span_text("")};
	static const char *const characters[] = {"a", "\xc3\xa9", "\xf0\x9f\x98\x80"};
	for (size_t i = 0; i < 3; i++) {
		tag = (struct tag){repeated(characters[i], 128), span_text("")};
		ck_assert(!is_refused(&tag, 1, 10));
		tag = (struct tag){repeated(characters[i], 129), span_text("")};
		ck_assert(is_refused(&tag, 1, 10));
		tag = (struct tag){span_text("k"), repeated(characters[i], 256)};
		ck_assert(!is_refused(&tag, 1, 10));
		tag = (struct tag){span_text("k"), repeated(characters[i], 257)};
		ck_assert(is_refused(&tag, 1, 10));
	}
}
END_TEST

START_TEST(other_rules)
{
	const struct tag none = {span_text(""), span_text("v")};
	const struct tag reserved = {span_text("aws:x"), span_text("v")};
	const struct tag not_utf8 = {span_text("k"), span_text("\xff")};
	const struct tag twice[] = {{span_text("k"), span_text("1")},
		{span_text("l"), span_text("2")}, {span_text("k"), span_text("3")}};
	ck_assert(is_refused(&none, 1, 10));
	ck_assert(is_refused(&reserved, 1, 10));
	ck_assert(is_refused(&not_utf8, 1, 10));
	ck_assert(is_refused(twice, 3, 10));
	ck_assert(!is_refused(twice, 2, 2));
	ck_assert(is_refused(twice, 2, 1));
	ck_assert(!is_refused(twice, 0, 0));
}
END_TEST

Suite *test_tag_set_suite(void);
Suite *test_tag_set_suite(void)
{
	Suite *const suite = suite_create("tag_set");
	TCase *const tests = tcase_create("tag_set");
	tcase_add_test(tests, tags_come_back_in_their_order);
	tcase_add_test(tests, a_cut_blob_is_corrupt);
	tcase_add_test(tests, rules_count_characters_not_bytes);
	tcase_add_test(tests, other_rules);
	suite_add_tcase(suite, tests);
	return suite;
}
