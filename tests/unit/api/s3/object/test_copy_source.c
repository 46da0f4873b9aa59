#include "api/s3/object/copy_source.h"

#include "tests/unit/unit.h"

static const struct {
	const char *text;
	const char *bucket;
	const char *key;
	const char *version;
} good[] = {
	{"bkt/key", "bkt", "key", NULL},
	{"/bkt/key", "bkt", "key", NULL},
	{"bkt/dir/key", "bkt", "dir/key", NULL},
	{"bkt//key", "bkt", "/key", NULL},
	{"%2Fbkt%2Fdir%2Fkey", "bkt", "dir/key", NULL},
	{"bkt/a%25b", "bkt", "a%b", NULL},
	{"bkt/a+b", "bkt", "a b", NULL},
	{"bkt/a%2Bb", "bkt", "a+b", NULL},
	{"bkt/a%20b", "bkt", "a b", NULL},
	{"bkt/what?", "bkt", "what?", NULL},
	{"bkt/what%3FversionId=null", "bkt", "what?versionId=null", NULL},
	{"bkt/what%3FversionId=x?versionId=null", "bkt", "what?versionId=x", "null"},
	{"bkt/k?versionId=00112233445566778899aabbccddeeff", "bkt", "k",
		"00112233445566778899aabbccddeeff"},
	{" bkt/k ", "bkt", "k", NULL},
};

START_TEST(test_good)
{
	struct object_ref source;
	struct error err = {0};
	struct arena *const arena = arena_new(65536);
	ck_assert_msg(copy_source_parse(span_text(good[_i].text), arena, &source, &err) == 0,
		"%s: %s", good[_i].text, err.text);
	ck_assert(span_equal_text(source.bucket.name, good[_i].bucket));
	ck_assert(span_equal_text(source.key, good[_i].key));
	if (good[_i].version == NULL) {
		ck_assert_int_eq(source.version.kind, VERSION_REF_CURRENT);
	} else {
		struct version_ref ref;
		ck_assert(version_ref_parse(span_text(good[_i].version), &ref));
		ck_assert_int_eq(source.version.kind, ref.kind);
		ck_assert_mem_eq(source.version.id, ref.id, sizeof(ref.id));
	}
	arena_free(arena);
}
END_TEST

static const char *const bad[] = {"", "/", "bkt", "bkt/", "/bkt", "//key", "bkt/%zz", "bkt/%ff",
	"bkt/a%00b", "bkt/k?versionId=", "bkt/k?versionId=rubbish",
	"bkt/k?versionId=null?versionId=null"};

START_TEST(test_bad)
{
	struct object_ref source;
	struct error err = {0};
	struct arena *const arena = arena_new(65536);
	ck_assert_msg(copy_source_parse(span_text(bad[_i]), arena, &source, &err) == -1,
		"%s was taken", bad[_i]);
	ck_assert_int_eq(err.kind, ERROR_INVALID);
	arena_free(arena);
}
END_TEST

Suite *test_copy_source_suite(void);
Suite *test_copy_source_suite(void)
{
	Suite *const suite = suite_create("copy_source");
	TCase *const all = tcase_create("all");
	tcase_add_loop_test(all, test_good, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(all, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	suite_add_tcase(suite, all);
	return suite;
}
