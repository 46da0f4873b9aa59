/* Which files are shards, and which one is the index. */
#include "tests/unit/unit.h"

#include "weights/model/shard_rule.h"

static unsigned find(const char *names, size_t out[2])
{
	struct span paths[8];
	size_t count = 0;
	struct span rest = span_text(names);
	while (rest.len > 0 && span_split(&rest, ' ', &paths[count]))
		count++;
	return shard_rule_find_index(paths, count, out);
}

START_TEST(the_index_has_its_usual_name_or_is_alone)
{
	size_t at[2] = {9, 9};
	ck_assert_uint_eq(find("", at), 0);
	ck_assert_uint_eq(find("a.safetensors sub/model.safetensors.index.json", at), 0);
	ck_assert_uint_eq(find("config.json x.safetensors.index.json", at), 1);
	ck_assert_uint_eq(at[0], 1);
	ck_assert_uint_eq(find("a.safetensors.index.json b.safetensors.index.json "
			       "model.safetensors.index.json",
				  at),
		1);
	ck_assert_uint_eq(at[0], 2);
	ck_assert_uint_eq(find("a.safetensors.index.json x b.safetensors.index.json "
			       "c.safetensors.index.json",
				  at),
		2);
	ck_assert_uint_eq(at[0], 0);
	ck_assert_uint_eq(at[1], 2);
}
END_TEST

START_TEST(without_an_index_shards_lie_in_the_folder_itself)
{
	ck_assert(shard_rule_takes(NULL, span_text("model.safetensors")));
	ck_assert(!shard_rule_takes(NULL, span_text("sub/model.safetensors")));
	ck_assert(!shard_rule_takes(NULL, span_text("config.json")));
	ck_assert(!shard_rule_takes(NULL, span_text("")));
}
END_TEST

START_TEST(an_index_names_them_wherever_they_lie)
{
	struct error err = {0};
	struct shard_index *const index = shard_index_parse(
		span_text("{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"sub/y.safetensors\"}}"),
		"index", &err);
	ck_assert_msg(index != NULL, "%s", err.text);
	ck_assert(shard_rule_takes(index, span_text("x.safetensors")));
	ck_assert(shard_rule_takes(index, span_text("sub/y.safetensors")));
	ck_assert(!shard_rule_takes(index, span_text("y.safetensors")));
	ck_assert(!shard_rule_takes(index, span_text("z.safetensors")));
	shard_index_free(index);
}
END_TEST

Suite *test_shard_rule_suite(void);
Suite *test_shard_rule_suite(void)
{
	Suite *const suite = suite_create("shard_rule");
	TCase *const tests = tcase_create("rule");
	tcase_add_test(tests, the_index_has_its_usual_name_or_is_alone);
	tcase_add_test(tests, without_an_index_shards_lie_in_the_folder_itself);
	tcase_add_test(tests, an_index_names_them_wherever_they_lie);
	suite_add_tcase(suite, tests);
	return suite;
}
