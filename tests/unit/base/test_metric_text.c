#include "tests/unit/unit.h"

#include "base/metric_text.h"

START_TEST(labels_are_escaped)
{
	struct buffer labels, out;
	buffer_init(&labels, 1000);
	buffer_init(&out, 1000);
	metric_text_label(&labels, "run", span_text("a\"b\\c\nd"));
	metric_text_label(&labels, "empty", span_text(""));
	metric_text_number(&out, "n", buffer_span(&labels), -3);
	ck_assert_str_eq(buffer_text(&out), "n{run=\"a\\\"b\\\\c\\nd\",empty=\"\"} -3\n");
	buffer_release(&out);
	buffer_release(&labels);
}
END_TEST

START_TEST(a_family_has_help_and_type)
{
	struct buffer out;
	buffer_init(&out, 1000);
	metric_text_family(&out, "n", "gauge", "What it is.");
	metric_text_millionths(&out, "n", span_of(NULL, 0), 1000001);
	ck_assert_str_eq(buffer_text(&out), "# HELP n What it is.\n# TYPE n gauge\nn 1.000001\n");
	buffer_release(&out);
}
END_TEST

Suite *test_metric_text_suite(void);
Suite *test_metric_text_suite(void)
{
	Suite *const suite = suite_create("metric_text");
	TCase *const tc = tcase_create("all");
	tcase_add_test(tc, labels_are_escaped);
	tcase_add_test(tc, a_family_has_help_and_type);
	suite_add_tcase(suite, tc);
	return suite;
}
