/* The effect of rules on one object at one moment, and the stored form of rules. */
#include "tests/unit/unit.h"

#include <string.h>

#include "storage/buckets/lifecycle_document.h"

enum { DAY = 1000 };

/* "Midnight" is every full day of 1000 ms here. */
static const struct {
	int64_t since_ms;
	uint32_t days;
	int64_t due_ms;
} dues[] = {
	{0, 1, 1000},
	{1, 1, 2000},
	{999, 1, 2000},
	{1000, 1, 2000},
	{1001, 3, 5000},
	{0, 100000, 100000000},
};

START_TEST(days_end_at_midnight)
{
	ck_assert_int_eq(lifecycle_due(dues[_i].since_ms, dues[_i].days, DAY), dues[_i].due_ms);
}
END_TEST

#define TEXT(text)                                        \
	{                                                 \
		(const uint8_t *)(text), sizeof(text) - 1 \
	}

static const struct tag red[] = {{TEXT("colour"), TEXT("red")}};
static const struct tag red_and_big[] = {
	{TEXT("colour"), TEXT("red")}, {TEXT("size"), TEXT("big")}};
static const struct tag blue[] = {{TEXT("colour"), TEXT("blue")}};

/* A rule of one day, an object made at 0, and the time of its expiry; 0: never. */
static const struct {
	struct lifecycle_rule rule;
	const char *key;
	uint64_t size;
	const struct tag *tags;
	size_t tag_count;
	int64_t due_ms;
} scopes[] = {
	{{.enabled = true, .expire_days = 1}, "k", 1, NULL, 0, 1000},
	{{.enabled = false, .expire_days = 1}, "k", 1, NULL, 0, 0},
	{{.enabled = true, .expire_days = 1, .has_prefix = true, .prefix = TEXT("logs/")}, "logs/a",
		1, NULL, 0, 1000},
	{{.enabled = true, .expire_days = 1, .has_prefix = true, .prefix = TEXT("logs/")}, "logs",
		1, NULL, 0, 0},
	{{.enabled = true, .expire_days = 1, .has_prefix = true}, "any", 1, NULL, 0, 1000},
	{{.enabled = true, .expire_days = 1, .tags = red, .tag_count = 1}, "k", 1, red, 1, 1000},
	{{.enabled = true, .expire_days = 1, .tags = red, .tag_count = 1}, "k", 1, red_and_big, 2,
		1000},
	{{.enabled = true, .expire_days = 1, .tags = red, .tag_count = 1}, "k", 1, blue, 1, 0},
	{{.enabled = true, .expire_days = 1, .tags = red, .tag_count = 1}, "k", 1, NULL, 0, 0},
	{{.enabled = true, .expire_days = 1, .tags = red_and_big, .tag_count = 2}, "k", 1, red, 1,
		0},
	{{.enabled = true, .expire_days = 1, .has_size_over = true, .size_over = 10}, "k", 10, NULL,
		0, 0},
	{{.enabled = true, .expire_days = 1, .has_size_over = true, .size_over = 10}, "k", 11, NULL,
		0, 1000},
	{{.enabled = true, .expire_days = 1, .has_size_under = true, .size_under = 10}, "k", 10,
		NULL, 0, 0},
	{{.enabled = true, .expire_days = 1, .has_size_under = true, .size_under = 10}, "k", 9,
		NULL, 0, 1000},
	{{.enabled = true, .expire_days = 1, .has_size_under = true}, "k", 0, NULL, 0, 0},
	{{.enabled = true, .has_expire_date = true, .expire_date_ms = 500}, "k", 1, NULL, 0, 500},
	{{.enabled = true, .noncurrent_days = 1}, "k", 1, NULL, 0, 0},
	{{.enabled = true, .expires_markers = true}, "k", 1, NULL, 0, 0},
};

START_TEST(all_of_a_filter_must_hold)
{
	const struct lifecycle lifecycle = {&scopes[_i].rule, 1};
	const struct lifecycle_subject subject = {.key = span_text(scopes[_i].key),
		.size = scopes[_i].size,
		.tags = scopes[_i].tags,
		.tag_count = scopes[_i].tag_count};
	const struct lifecycle_rule *rule;
	int64_t due_ms = 0;
	ck_assert_int_eq(lifecycle_expires(&lifecycle, &subject, DAY, &due_ms, &rule),
		scopes[_i].due_ms != 0);
	ck_assert_int_eq(due_ms, scopes[_i].due_ms);
}
END_TEST

START_TEST(the_earliest_rule_counts)
{
	const struct lifecycle_rule rules[] = {
		{.id = TEXT("five"), .enabled = true, .expire_days = 5},
		{.id = TEXT("two"), .enabled = true, .expire_days = 2},
		{.id = TEXT("date"),
			.enabled = true,
			.has_expire_date = true,
			.expire_date_ms = 3000},
	};
	const struct lifecycle lifecycle = {rules, 3};
	const struct lifecycle_subject subject = {.key = span_text("k")};
	const struct lifecycle_rule *rule;
	int64_t due_ms;
	ck_assert(lifecycle_expires(&lifecycle, &subject, DAY, &due_ms, &rule));
	ck_assert(span_equal_text(rule->id, "two"));
	ck_assert_int_eq(due_ms, 2000);
}
END_TEST

static const struct {
	struct lifecycle_rule rule;
	int64_t now_ms;
	bool goes;
} markers[] = {
	{{.enabled = true, .expires_markers = true}, 0, true},
	{{.enabled = false, .expires_markers = true}, 0, false},
	{{.enabled = true, .expires_markers = true, .has_prefix = true, .prefix = TEXT("other")}, 0,
		false},
	{{.enabled = true, .expire_days = 2}, 1999, false},
	{{.enabled = true, .expire_days = 2}, 2000, true},
	{{.enabled = true, .expire_days = 2, .tags = red, .tag_count = 1}, 9000, false},
	{{.enabled = true, .has_expire_date = true}, 9000, false},
	{{.enabled = true, .noncurrent_days = 1}, 9000, false},
};

START_TEST(markers_go_when_they_are_all_there_is)
{
	const struct lifecycle lifecycle = {&markers[_i].rule, 1};
	const struct lifecycle_clock clock = {markers[_i].now_ms, DAY};
	ck_assert_int_eq(
		lifecycle_removes_marker(&lifecycle, span_text("k"), 0, &clock), markers[_i].goes);
}
END_TEST

static const struct {
	struct lifecycle_rule rule;
	int64_t now_ms;
	uint32_t newer;
	bool goes;
} older[] = {
	{{.enabled = true, .noncurrent_days = 2}, 1999, 0, false},
	{{.enabled = true, .noncurrent_days = 2}, 2000, 0, true},
	{{.enabled = true, .noncurrent_days = 2, .noncurrent_newer = 3}, 9000, 2, false},
	{{.enabled = true, .noncurrent_days = 2, .noncurrent_newer = 3}, 9000, 3, true},
	{{.enabled = true, .noncurrent_days = 2, .tags = red, .tag_count = 1}, 9000, 0, false},
	{{.enabled = true, .expire_days = 1}, 9000, 0, false},
	{{.enabled = false, .noncurrent_days = 1}, 9000, 0, false},
};

START_TEST(older_versions_go_by_age_and_number)
{
	const struct lifecycle lifecycle = {&older[_i].rule, 1};
	const struct lifecycle_clock clock = {older[_i].now_ms, DAY};
	const struct lifecycle_subject subject = {.key = span_text("k")};
	ck_assert_int_eq(
		lifecycle_removes_noncurrent(&lifecycle, &subject, older[_i].newer, &clock),
		older[_i].goes);
}
END_TEST

START_TEST(uploads_are_aborted_by_age)
{
	const struct lifecycle_rule rule = {
		.enabled = true, .abort_days = 1, .has_prefix = true, .prefix = TEXT("a")};
	const struct lifecycle lifecycle = {&rule, 1};
	ck_assert(!lifecycle_aborts(
		&lifecycle, span_text("ab"), 0, &(struct lifecycle_clock){999, DAY}));
	ck_assert(lifecycle_aborts(
		&lifecycle, span_text("ab"), 0, &(struct lifecycle_clock){1000, DAY}));
	ck_assert(!lifecycle_aborts(
		&lifecycle, span_text("b"), 0, &(struct lifecycle_clock){1000, DAY}));
}
END_TEST

START_TEST(work_follows_from_the_enabled_rules)
{
	const struct lifecycle_rule rules[] = {
		{.enabled = false, .abort_days = 1}, {.enabled = true, .noncurrent_days = 1}};
	const struct lifecycle lifecycle = {rules, 2};
	const struct lifecycle_work work = lifecycle_work_of(&lifecycle);
	ck_assert(!work.current && work.noncurrent && !work.uploads);
}
END_TEST

static void print(const struct lifecycle *lifecycle, struct buffer *out)
{
	buffer_init(out, 64 * 1024);
	lifecycle_document_print(lifecycle, out);
}

START_TEST(a_document_comes_back_as_it_was)
{
	const struct lifecycle_rule rules[] = {
		{.id = TEXT("a \"quoted\" id"),
			.enabled = true,
			.form = LIFECYCLE_FILTER_AND,
			.has_prefix = true,
			.prefix = TEXT("logs/"),
			.tags = red_and_big,
			.tag_count = 2,
			.has_size_over = true,
			.size_over = 5,
			.has_size_under = true,
			.size_under = 1ULL << 40,
			.expire_days = 3},
		{.id = TEXT("b"),
			.form = LIFECYCLE_PREFIX,
			.has_prefix = true,
			.has_expire_date = true,
			.expire_date_ms = 1700000000000},
		{.id = TEXT("c"),
			.form = LIFECYCLE_FILTER,
			.has_size_under = true,
			.expires_markers = true,
			.noncurrent_days = 7,
			.noncurrent_newer = 2,
			.abort_days = 9},
	};
	const struct lifecycle lifecycle = {rules, 3};
	struct arena *const arena = arena_new(64 * 1024);
	struct lifecycle again;
	struct buffer first;
	struct buffer second;
	struct error err = {0};
	print(&lifecycle, &first);
	ck_assert_int_eq(lifecycle_document_parse(buffer_span(&first), arena, &again, &err), 0);
	print(&again, &second);
	ck_assert_str_eq(buffer_text(&first), buffer_text(&second));
	ck_assert_uint_eq(again.count, 3);
	ck_assert_int_eq(again.rules[1].expire_date_ms, 1700000000000);
	ck_assert_uint_eq(again.rules[0].tag_count, 2);
	ck_assert(span_equal_text(again.rules[0].tags[1].value, "big"));
	ck_assert(again.rules[1].has_prefix && !again.rules[2].has_prefix);
	ck_assert(again.rules[2].has_size_under && again.rules[2].size_under == 0);
	ck_assert(again.rules[2].expires_markers && !again.rules[2].enabled &&
		!again.rules[1].expires_markers);
	buffer_release(&first);
	buffer_release(&second);
	arena_free(arena);
}
END_TEST

static const char *const damaged[] = {"{", "[]", "{}", "{\"rules\":{}}", "{\"rules\":[1]}",
	"{\"rules\":[{\"id\":\"a\"}]}",
	"{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":3,\"tags\":[],\"expires_markers\":false}]}",
	"{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,\"tags\":[\"k\"],\"expires_markers\":false}]}",
	"{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,\"tags\":[],\"expires_markers\":false,\"expire_days\":-1}]}",
	"{\"rules\":[{\"id\":\"a\",\"enabled\":true,\"form\":1,\"tags\":[],\"expires_markers\":false,\"expire_days\":2147483648}]}"};

START_TEST(a_damaged_document_is_told)
{
	struct arena *const arena = arena_new(64 * 1024);
	struct lifecycle lifecycle;
	struct error err = {0};
	ck_assert_int_eq(
		lifecycle_document_parse(span_text(damaged[_i]), arena, &lifecycle, &err), -1);
	ck_assert_int_eq(err.kind, ERROR_CORRUPT);
	arena_free(arena);
}
END_TEST

Suite *test_lifecycle_suite(void);
Suite *test_lifecycle_suite(void)
{
	Suite *const suite = suite_create("lifecycle");
	TCase *const rules = tcase_create("rules");
	tcase_add_loop_test(rules, days_end_at_midnight, 0, sizeof(dues) / sizeof(dues[0]));
	tcase_add_loop_test(
		rules, all_of_a_filter_must_hold, 0, sizeof(scopes) / sizeof(scopes[0]));
	tcase_add_test(rules, the_earliest_rule_counts);
	tcase_add_loop_test(rules, markers_go_when_they_are_all_there_is, 0,
		sizeof(markers) / sizeof(markers[0]));
	tcase_add_loop_test(
		rules, older_versions_go_by_age_and_number, 0, sizeof(older) / sizeof(older[0]));
	tcase_add_test(rules, uploads_are_aborted_by_age);
	tcase_add_test(rules, work_follows_from_the_enabled_rules);
	tcase_add_test(rules, a_document_comes_back_as_it_was);
	tcase_add_loop_test(
		rules, a_damaged_document_is_told, 0, sizeof(damaged) / sizeof(damaged[0]));
	suite_add_tcase(suite, rules);
	return suite;
}
