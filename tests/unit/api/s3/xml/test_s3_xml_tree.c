#include "api/s3/xml/xml_tree.h"

#include <string.h>

#include "tests/unit/unit.h"

static struct arena *arena;

static void setup(void)
{
	arena = arena_new(64 * 1024);
}

static void teardown(void)
{
	arena_free(arena);
}

START_TEST(test_walk)
{
	struct xml_node *root;
	struct error err = {0};
	ck_assert_int_eq(
		xml_tree_parse(
			span_text(
				"<R xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"> <a>1</a>\n<b><c>x &amp; y</c></b><a>2</a><d/></R>"),
			"R", arena, &root, &err),
		0);
	const struct xml_node *const first = xml_tree_child(root, "a");
	ck_assert(span_equal_text(first->text, "1"));
	ck_assert(span_equal_text(xml_tree_again(first)->text, "2"));
	ck_assert_ptr_null(xml_tree_again(xml_tree_again(first)));
	ck_assert_uint_eq(xml_tree_count(root, "a"), 2);
	ck_assert_uint_eq(xml_tree_count(root, "z"), 0);
	ck_assert(span_equal_text(xml_tree_text(xml_tree_child(root, "b"), "c"), "x & y"));
	ck_assert_uint_eq(xml_tree_text(root, "d").len, 0);
	ck_assert_ptr_null(xml_tree_child(root, "c"));
	ck_assert_ptr_null(xml_tree_child(NULL, "c"));
	ck_assert_int_eq(xml_tree_check(root, "a|b|d", "b|d", &err), 0);
}
END_TEST

START_TEST(test_check)
{
	struct xml_node *root;
	struct error err = {0};
	ck_assert_int_eq(
		xml_tree_parse(span_text("<R><a/><b/><a/></R>"), "R", arena, &root, &err), 0);
	ck_assert_int_eq(xml_tree_check(root, "a|b", "b", &err), 0);
	ck_assert_int_eq(xml_tree_check(root, "a|b", "a", &err), -1);
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
	ck_assert_int_eq(xml_tree_check(root, "a", NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "must not contain an element b"));
}
END_TEST

static const char *const bad[] = {"", "<R>", "<Q/>", "<R/><R/>", "<R><a></R>", "text"};

START_TEST(test_bad)
{
	struct xml_node *root;
	struct error err = {0};
	ck_assert_int_eq(xml_tree_parse(span_text(bad[_i]), "R", arena, &root, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_MALFORMED_XML);
}
END_TEST

START_TEST(test_other_root)
{
	struct xml_node *root;
	struct error err = {0};
	ck_assert_int_eq(
		xml_tree_parse(span_text("<Q/>"), "AccessControlPolicy", arena, &root, &err), -1);
	ck_assert_str_eq(err.text, "The root of the body must be AccessControlPolicy.");
}
END_TEST

START_TEST(test_full_arena)
{
	struct arena *const small = arena_new(256);
	struct xml_node *root;
	struct error err = {0};
	ck_assert_int_eq(xml_tree_parse(span_text("<R><a/><a/><a/><a/><a/><a/><a/><a/></R>"), "R",
				 small, &root, &err),
		-1);
	ck_assert_int_eq(err.kind, ERROR_NO_MEMORY);
	arena_free(small);
}
END_TEST

Suite *test_s3_xml_tree_suite(void);
Suite *test_s3_xml_tree_suite(void)
{
	Suite *const suite = suite_create("s3_xml_tree");
	TCase *const tree = tcase_create("tree");
	tcase_add_checked_fixture(tree, setup, teardown);
	tcase_add_test(tree, test_walk);
	tcase_add_test(tree, test_check);
	tcase_add_loop_test(tree, test_bad, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tree, test_other_root);
	tcase_add_test(tree, test_full_arena);
	suite_add_tcase(suite, tree);
	return suite;
}
