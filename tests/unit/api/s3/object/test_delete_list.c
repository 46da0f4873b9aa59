#include "api/s3/object/delete_list.h"

#include <string.h>

#include "tests/unit/unit.h"

enum { ARENA_BYTES = 16 * 1024 * 1024 };

#define ID "00112233445566778899aabbccddeeff"

START_TEST(test_fields)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct delete_list list;
	struct error err = {0};
	const struct span xml = span_text(
		"<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>"
		"<Object><Key>a%20b&amp;c</Key></Object><Object><VersionId>" ID
		"</VersionId><Key>k</Key></Object>"
		"<Object><Key>n</Key><VersionId>null</VersionId><ETag>\"x\"</ETag><Size>7</Size>"
		"<LastModifiedTime>1994-11-06T08:49:37Z</LastModifiedTime></Object><Object><Key>bad</Key><VersionId>no</VersionId></Object></Delete>");
	ck_assert_msg(delete_list_read(xml, arena, &list, &err) == 0, "%s", err.text);
	ck_assert(list.is_quiet);
	ck_assert_uint_eq(list.count, 4);
	ck_assert(span_equal_text(list.entries[0].item.key, "a%20b&c")); /* never URL-decoded */
	ck_assert_int_eq(list.entries[0].item.ref.kind, VERSION_REF_CURRENT);
	ck_assert_int_eq(list.entries[1].item.ref.kind, VERSION_REF_ID);
	ck_assert_int_eq(list.entries[1].item.ref.id[1], 0x11);
	ck_assert(span_equal_text(list.entries[1].version, ID));
	const struct object_conditions *const conditions = &list.entries[2].item.conditions;
	ck_assert_int_eq(list.entries[2].item.ref.kind, VERSION_REF_NULL);
	ck_assert(span_equal_text(conditions->if_match, "\"x\""));
	ck_assert(conditions->has_size && conditions->size == 7);
	ck_assert(conditions->has_modified && conditions->modified_ms == INT64_C(784111777000));
	ck_assert_int_eq(list.entries[2].item.error.kind, ERROR_NONE);
	ck_assert_int_eq(list.entries[3].item.error.kind, ERROR_INVALID);
	arena_free(arena);
}
END_TEST

static void write_many(struct buffer *xml, size_t count)
{
	buffer_add_text(xml, "<Delete>");
	for (size_t i = 0; i < count; i++)
		buffer_format(xml, "<Object><Key>key-%zu</Key></Object>", i);
	buffer_add_text(xml, "</Delete>");
}

START_TEST(test_thousand_and_one)
{
	for (size_t count = OBJECT_DELETE_MAX; count <= OBJECT_DELETE_MAX + 1; count++) {
		struct arena *const arena = arena_new(ARENA_BYTES);
		struct buffer xml;
		struct delete_list list;
		struct error err = {0};
		buffer_init(&xml, 1 << 20);
		write_many(&xml, count);
		const int result = delete_list_read(buffer_span(&xml), arena, &list, &err);
		ck_assert_int_eq(result, count == OBJECT_DELETE_MAX ? 0 : -1);
		if (result == 0)
			ck_assert_uint_eq(list.count, OBJECT_DELETE_MAX);
		else
			ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
		buffer_release(&xml);
		arena_free(arena);
	}
}
END_TEST

static const char *const bad[] = {"", "<Delete/>", "<Delete><Quiet>true</Quiet></Delete>",
	"<Other><Object><Key>a</Key></Object></Other>", "<Delete><Object></Object></Delete>",
	"<Delete><Object><Key></Key></Object></Delete>",
	"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
	"<Delete><Object><VersionId>null</VersionId></Object></Delete>",
	"<Delete><Object><Key>a</Key><Size>x</Size></Object></Delete>",
	"<Delete><Object><Key>a</Key><LastModifiedTime>x</LastModifiedTime></Object></Delete>",
	"<Delete><Object><Key>a</Key></Object>"};

START_TEST(test_bad)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct delete_list list;
	struct error err = {0};
	ck_assert_msg(delete_list_read(span_text(bad[_i]), arena, &list, &err) == -1,
		"%s was taken", bad[_i]);
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
	arena_free(arena);
}
END_TEST

START_TEST(test_long_key_is_that_keys_error)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct buffer xml;
	struct delete_list list;
	struct error err = {0};
	char key[OBJECT_KEY_MAX_BYTES + 2];
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	buffer_init(&xml, 1 << 20);
	buffer_format(&xml,
		"<Delete><Object><Key>%s</Key></Object><Object><Key>ok</Key></Object></Delete>",
		key);
	ck_assert_int_eq(delete_list_read(buffer_span(&xml), arena, &list, &err), 0);
	ck_assert_int_eq(list.entries[0].item.error.kind, ERROR_KEY_TOO_LONG);
	ck_assert_int_eq(list.entries[1].item.error.kind, ERROR_NONE);
	buffer_release(&xml);
	arena_free(arena);
}
END_TEST

/* Listings write such keys so, although XML has no such references, and clients send them as they
 * are. */
START_TEST(test_keys_with_control_characters)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct delete_list list;
	struct error err = {0};
	const struct span xml = span_text(
		"<Delete><Object><Key>a&#x1;b`c</Key></Object><Object><Key>\x02</Key></Object>"
		"<Object><Key>plain</Key></Object></Delete>");
	ck_assert_msg(delete_list_read(xml, arena, &list, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(list.count, 3);
	ck_assert(span_equal_text(list.entries[0].item.key, "a\x01" "b`c"));
	ck_assert(span_equal_text(list.entries[1].item.key, "\x02"));
	ck_assert(span_equal_text(list.entries[2].item.key, "plain"));
	arena_free(arena);
}
END_TEST

Suite *test_delete_list_suite(void);
Suite *test_delete_list_suite(void)
{
	Suite *const suite = suite_create("delete_list");
	TCase *const all = tcase_create("all");
	tcase_add_test(all, test_fields);
	tcase_add_test(all, test_thousand_and_one);
	tcase_add_loop_test(all, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(all, test_long_key_is_that_keys_error);
	tcase_add_test(all, test_keys_with_control_characters);
	suite_add_tcase(suite, all);
	return suite;
}
