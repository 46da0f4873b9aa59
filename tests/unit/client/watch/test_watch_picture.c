#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "client/watch/watch_picture.h"

enum { WORKERS = 50, TEXT_MAX_BYTES = 1024 * 1024 };

static void fill(struct watch_model *model)
{
	*model = (struct watch_model){.has_run = true,
		.has_fleet = true,
		.run = {.epoch = 3, .has_head = true, .head = 9, .has_step = true}};
	model->fleet.workers = memory_new_array(WORKERS, sizeof(*model->fleet.workers));
	model->fleet.count = WORKERS;
	model->fleet.counts.states[REPLICA_READY] = WORKERS;
	for (size_t i = 0; i < WORKERS; i++) {
		struct watch_worker *const worker = &model->fleet.workers[i];
		snprintf(worker->id, sizeof(worker->id), "node-%02zu", i);
		worker->state = i == 7 ? REPLICA_ERROR : REPLICA_READY;
		worker->expired = i == 8;
		worker->has_lag = true;
		worker->behind_steps = i % 10;
		snprintf(worker->error, sizeof(worker->error), "%s",
			i == 7 ? "a \033[2J and a \xc3\xbc and much that is too long for a line, "
				 "however wide that is, and even for the widest that there are"
			       : "");
	}
}

/* Every picture fits, however small the screen is, and has nothing but printable ASCII. */
START_TEST(pictures_fit)
{
	static const char *const EVENTS[] = {"one", "two", "three", "four", "five", "six", "seven"};
	struct watch_model model;
	fill(&model);
	for (size_t height = 1; height < 40; height++) {
		struct buffer out;
		size_t lines = 0;
		struct span line;
		const struct watch_view view = {.run = "models/policy",
			.width = 20 + 5 * height,
			.height = height,
			.events = EVENTS,
			.event_count = 7,
			.has_keys = true};
		buffer_init(&out, TEXT_MAX_BYTES);
		watch_picture_draw(&view, &model, "\n", &out);
		struct span rest = buffer_span(&out);
		while (rest.len > 0 && span_split(&rest, '\n', &line)) {
			ck_assert_uint_le(line.len, view.width);
			for (size_t i = 0; i < line.len; i++)
				ck_assert(line.data[i] >= ' ' && line.data[i] <= '~');
			lines++;
		}
		ck_assert_uint_le(lines, height);
		if (height > 5)
			ck_assert_uint_eq(lines, height); /* the keys are the last line */
		buffer_release(&out);
	}
	watch_model_release(&model);
}
END_TEST

/* An older server does not say how old they are. */
START_TEST(reports_have_an_age)
{
	const struct watch_view view = {.run = "models/policy", .width = 100, .rows = 1};
	struct watch_model model;
	struct buffer out;
	fill(&model);
	model.fleet.counts.has_report = _i == 1;
	model.fleet.counts.oldest_report_s = 574;
	buffer_init(&out, TEXT_MAX_BYTES);
	watch_picture_draw(&view, &model, "\n", &out);
	ck_assert_ptr_nonnull(strstr(buffer_text(&out),
		_i == 1 ? "50 workers, reports up to 9 min old\n" : "50 workers\n"));
	buffer_release(&out);
	watch_model_release(&model);
}
END_TEST

START_TEST(orders_and_filters)
{
	static const struct {
		enum watch_order order;
		const char *filter;
		size_t count;
		const char *first;
	} CASES[] = {
		{WATCH_BY_LAG, "", WORKERS, "node-07"},
		{WATCH_BY_STATE, "", WORKERS, "node-08"},
		{WATCH_BY_NAME, "", WORKERS, "node-00"},
		{WATCH_BY_LAG, "node-2", 10, "node-29"},
		{WATCH_BY_LAG, "error", 1, "node-07"},
		{WATCH_BY_NAME, "too long", 1, "node-07"},
		{WATCH_BY_NAME, "expired", 1, "node-08"},
		{WATCH_BY_NAME, "nobody", 0, NULL},
	};
	const struct watch_worker *chosen[WORKERS];
	struct watch_model model;
	fill(&model);
	struct watch_view view = {.order = CASES[_i].order};
	snprintf(view.filter, sizeof(view.filter), "%s", CASES[_i].filter);
	ck_assert_uint_eq(watch_picture_choose(&view, &model.fleet, chosen), CASES[_i].count);
	if (CASES[_i].first != NULL)
		ck_assert_str_eq(chosen[0]->id, CASES[_i].first);
	if (_i == 0) /* nine tenths are behind; then the one that has expired */
		ck_assert_str_eq(chosen[WORKERS / 10 * 9 - 1]->id, "node-08");
	watch_model_release(&model);
}
END_TEST

START_TEST(ages_have_units)
{
	static const struct {
		int64_t ms;
		const char *text;
	} CASES[] = {{-5, "0 s"}, {119999, "119 s"}, {120000, "2 min"}, {7200000, "2 h"},
		{172800000, "2 d"}};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char age[WATCH_AGE_BYTES];
		watch_picture_format_age(CASES[i].ms, age);
		ck_assert_str_eq(age, CASES[i].text);
	}
}
END_TEST

Suite *test_watch_picture_suite(void);
Suite *test_watch_picture_suite(void)
{
	Suite *const suite = suite_create("watch_picture");
	TCase *const tests = tcase_create("watch_picture");
	tcase_add_test(tests, pictures_fit);
	tcase_add_loop_test(tests, reports_have_an_age, 0, 2);
	tcase_add_loop_test(tests, orders_and_filters, 0, 8);
	tcase_add_test(tests, ages_have_units);
	suite_add_tcase(suite, tests);
	return suite;
}
