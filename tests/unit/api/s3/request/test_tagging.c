#include "api/s3/request/tagging.h"

#include <string.h>

#include "tests/unit/unit.h"

enum { ARENA_BYTES = 1024 * 1024 };

/* "k=v;k2=v2" */
static void show(struct arena *arena, struct span tags, struct buffer *out)
{
	struct tag *list = NULL;
	size_t count = 0;
	struct error err = {0};
	if (tags.len > 0)
		ck_assert_int_eq(tag_set_read(tags, arena, &list, &count, &err), 0);
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s%.*s=%.*s", i > 0 ? ";" : "", (int)list[i].key.len,
			(const char *)list[i].key.data, (int)list[i].value.len,
			(const char *)list[i].value.data);
}

static const struct {
	const char *header;
	const char *tags;
} headers[] = {
	{"", ""},
	{"a=b", "a=b"},
	{"foo=bar&bar", "foo=bar;bar="},
	{"z=1&a=2", "z=1;a=2"},
	{"a%20b=c%2Fd", "a b=c/d"},
	{"a+b=c+d", "a b=c d"},
	{"k=a=b", "k=a=b"},
	{"&a=b&&c=&", "a=b;c="},
	{"k%C3%BC=%E6%97%A5", "k\xc3\xbc=\xe6\x97\xa5"},
	{"1&2&3&4&5&6&7&8&9&10", "1=;2=;3=;4=;5=;6=;7=;8=;9=;10="},
};

START_TEST(test_header)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span tags;
	struct error err = {0};
	struct buffer shown;
	buffer_init(&shown, 4096);
	ck_assert_msg(
		tagging_read_header(span_text(headers[_i].header), 10, arena, &tags, &err) == 0,
		"%s", err.text);
	show(arena, tags, &shown);
	ck_assert_str_eq(buffer_text(&shown), headers[_i].tags);
	buffer_release(&shown);
	arena_free(arena);
}
END_TEST

static const struct {
	const char *header;
	enum error_kind kind;
} bad_headers[] = {
	{"a=%zz", ERROR_INVALID},
	{"%z=a", ERROR_INVALID},
	{"a=b&a=c", ERROR_INVALID},
	{"=b", ERROR_INVALID},
	{"a%2A", ERROR_BAD_TAG},
	{"aws:x=1", ERROR_BAD_TAG},
	{"a=%ff", ERROR_BAD_TAG},
	{"1&2&3&4&5&6&7&8&9&10&11", ERROR_TOO_MANY_TAGS},
};

START_TEST(test_bad_header)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span tags;
	struct error err = {0};
	ck_assert_int_eq(
		tagging_read_header(span_text(bad_headers[_i].header), 10, arena, &tags, &err), -1);
	ck_assert_int_eq(err.kind, bad_headers[_i].kind);
	arena_free(arena);
}
END_TEST

#define TAG(key, value) "<Tag><Key>" key "</Key><Value>" value "</Value></Tag>"
#define TAGGING(tags)                                                              \
	"<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>" tags \
	"</TagSet></Tagging>"

START_TEST(test_document_there_and_back)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span tags;
	struct span again;
	struct error err = {0};
	struct buffer shown;
	struct buffer xml;
	buffer_init(&shown, 4096);
	buffer_init(&xml, 65536);
	ck_assert_int_eq(tagging_read_xml(span_text(TAGGING(TAG("&#x61;@b", "") TAG(" k ", "v "))),
				 10, arena, &tags, &err),
		0);
	show(arena, tags, &shown);
	ck_assert_str_eq(buffer_text(&shown), "a@b=; k =v ");
	ck_assert_int_eq(tagging_write_xml(tags, arena, &xml, &err), 0);
	ck_assert_ptr_nonnull(strstr(buffer_text(&xml), TAGGING(TAG(" k ", "v ") TAG("a@b", ""))));
	ck_assert_int_eq(tagging_read_xml(buffer_span(&xml), 10, arena, &again, &err), 0);
	buffer_reset(&shown);
	show(arena, again, &shown);
	ck_assert_str_eq(buffer_text(&shown), " k =v ;a@b=");
	buffer_release(&shown);
	buffer_release(&xml);
	arena_free(arena);
}
END_TEST

START_TEST(test_empty_document)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span tags;
	struct error err = {0};
	ck_assert_int_eq(tagging_read_xml(span_text(TAGGING("")), 10, arena, &tags, &err), 0);
	ck_assert_uint_eq(tags.len, 0);
	arena_free(arena);
}
END_TEST

static const struct {
	const char *xml;
	enum error_kind kind;
} bad_documents[] = {
	{"", ERROR_MALFORMED_XML},
	{"<Tagging>", ERROR_MALFORMED_XML},
	{"<Other/>", ERROR_MALFORMED_XML},
	{"<Tagging><Tag/></Tagging>", ERROR_MALFORMED_XML},
	{TAGGING("<Tag><Key>a</Key></Tag>"), ERROR_MALFORMED_XML},
	{TAGGING("<Tag><Value>a</Value></Tag>"), ERROR_MALFORMED_XML},
	{TAGGING("<Tag><Key>a</Key><Key>b</Key><Value>a</Value></Tag>"), ERROR_MALFORMED_XML},
	{TAGGING(TAG("a", "<x/>")), ERROR_MALFORMED_XML},
	{TAGGING(TAG("", "v")), ERROR_BAD_TAG},
	{TAGGING(TAG("a", "1") TAG("a", "2")), ERROR_BAD_TAG},
	{TAGGING(TAG("1", "") TAG("2", "") TAG("3", "")), ERROR_TOO_MANY_TAGS},
};

START_TEST(test_bad_document)
{
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct span tags;
	struct error err = {0};
	ck_assert_msg(
		tagging_read_xml(span_text(bad_documents[_i].xml), 2, arena, &tags, &err) == -1,
		"%s was taken", bad_documents[_i].xml);
	ck_assert_int_eq(err.kind, bad_documents[_i].kind);
	arena_free(arena);
}
END_TEST

Suite *test_tagging_suite(void);
Suite *test_tagging_suite(void)
{
	Suite *const suite = suite_create("tagging");
	TCase *const all = tcase_create("all");
	tcase_add_loop_test(all, test_header, 0, sizeof(headers) / sizeof(headers[0]));
	tcase_add_loop_test(all, test_bad_header, 0, sizeof(bad_headers) / sizeof(bad_headers[0]));
	tcase_add_test(all, test_document_there_and_back);
	tcase_add_test(all, test_empty_document);
	tcase_add_loop_test(
		all, test_bad_document, 0, sizeof(bad_documents) / sizeof(bad_documents[0]));
	suite_add_tcase(suite, all);
	return suite;
}
