#include "tests/unit/unit.h"

#include <stdio.h>

#include "storage/buckets/lifecycle_cache.h"

enum { DAY = 1000, BUCKETS = 40 };

static struct lifecycle_cache *cache;
static struct arena *arena;

static void set_up(void)
{
	cache = lifecycle_cache_new(DAY);
	arena = arena_new(1024 * 1024);
}

static void tear_down(void)
{
	lifecycle_cache_free(cache);
	arena_free(arena);
}

/* Sets a rule that expires objects after this number of days; 0: no rules. */
static void set(const char *bucket, unsigned days)
{
	char document[200] = "";
	if (days > 0)
		snprintf(document, sizeof document,
			"{\"rules\":[{\"id\":\"%s\",\"enabled\":true,\"form\":1,\"prefix\":\"\",\"tags\":[],"
			"\"expires_markers\":false,\"expire_days\":%u}]}",
			bucket, days);
	lifecycle_cache_set(cache, span_text(bucket), span_text(document));
}

static bool expires(const char *bucket, struct span tags, struct lifecycle_expiry *out)
{
	const struct lifecycle_subject subject = {.key = span_text("k"), .since_ms = 5 * DAY};
	return lifecycle_cache_expires(cache, span_text(bucket), &subject, tags, arena, out);
}

static void expect(const char *bucket, unsigned days)
{
	struct lifecycle_expiry expiry = {0};
	ck_assert_msg(expires(bucket, (struct span){NULL, 0}, &expiry) == (days > 0), "%s", bucket);
	if (days == 0)
		return;
	ck_assert_int_eq(expiry.due_ms, (5 + (int64_t)days) * DAY);
	ck_assert(span_equal_text(expiry.rule_id, bucket));
}

static const char *name_of(unsigned i)
{
	static char name[16];
	snprintf(name, sizeof name, "b%02u", i);
	return name;
}

START_TEST(each_bucket_has_its_own_rules)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		set(name_of(i * 17 % BUCKETS), 1 + i * 17 % BUCKETS);
	for (unsigned i = 0; i < BUCKETS; i++)
		expect(name_of(i), 1 + i);
	expect("a", 0);
	expect("b000", 0);
	expect("c", 0);
}
END_TEST

START_TEST(rules_that_end_leave_those_of_others)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		set(name_of(i), 1 + i);
	for (unsigned i = 0; i < BUCKETS; i += 3)
		set(name_of(i), 0);
	set(name_of(1), 99);
	for (unsigned i = 0; i < BUCKETS; i++)
		expect(name_of(i), i % 3 == 0 ? 0 : i == 1 ? 99 : 1 + i);
}
END_TEST

START_TEST(rules_that_cannot_be_read_are_none)
{
	set("b", 1);
	lifecycle_cache_set(cache, span_text("b"), span_text("{"));
	expect("b", 0);
}
END_TEST

START_TEST(tags_choose)
{
	static const uint8_t red[] = {1, 0, 'k', 1, 0, 'v'};
	static const uint8_t blue[] = {1, 0, 'k', 1, 0, 'w'};
	struct lifecycle_expiry expiry = {0};
	lifecycle_cache_set(cache, span_text("b"),
		span_text("{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,"
			  "\"tags\":[\"k\",\"v\"],\"expires_markers\":false,\"expire_days\":1}]}"));
	ck_assert(expires("b", span_of(red, sizeof red), &expiry));
	ck_assert(!expires("b", span_of(blue, sizeof blue), &expiry));
	ck_assert(!expires("b", (struct span){NULL, 0}, &expiry));
}
END_TEST

START_TEST(an_object_with_damaged_tags_is_not_said_to_expire)
{
	static const uint8_t damaged[] = {0xff};
	struct lifecycle_expiry expiry = {0};
	set("b", 1);
	ck_assert(!expires("b", span_of(damaged, sizeof damaged), &expiry));
}
END_TEST

START_TEST(the_name_of_a_rule_is_the_callers)
{
	struct lifecycle_expiry first = {0};
	struct lifecycle_expiry second = {0};
	set("b", 1);
	ck_assert(expires("b", (struct span){NULL, 0}, &first));
	ck_assert(expires("b", (struct span){NULL, 0}, &second));
	ck_assert_ptr_ne(first.rule_id.data, second.rule_id.data);
	set("b", 0);
	ck_assert(span_equal_text(first.rule_id, "b"));
}
END_TEST

Suite *test_lifecycle_cache_suite(void);
Suite *test_lifecycle_cache_suite(void)
{
	Suite *const suite = suite_create("lifecycle_cache");
	TCase *const tests = tcase_create("lifecycle_cache");
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, each_bucket_has_its_own_rules);
	tcase_add_test(tests, rules_that_end_leave_those_of_others);
	tcase_add_test(tests, rules_that_cannot_be_read_are_none);
	tcase_add_test(tests, tags_choose);
	tcase_add_test(tests, an_object_with_damaged_tags_is_not_said_to_expire);
	tcase_add_test(tests, the_name_of_a_rule_is_the_callers);
	suite_add_tcase(suite, tests);
	return suite;
}
