/* The lines are: the run, its steps, what is wrong, the counts of the fleet with bars, the slowest
 * with what it was before, the workers, the last events, the keys. Bars and table share what lines
 * there are; the table has the worst workers that fit. */
#include "client/watch/watch_picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/quantity.h"

enum {
	LINE_BYTES = 1024,
	EVENTS_MOST = 6,
	ROWS_LEAST = 3, /* workers that are shown before events are */
	BAR_WIDTH = 30,
	WIDE = 120,
	NAME_NARROW = 22,
	NAME_WIDE = 32,
	SECOND_MS = 1000,
	REPORTS_BYTES = 64,
};

struct picture {
	const struct watch_view *view;
	const struct watch_model *model;
	const char *end;
	struct buffer *out;
	size_t lines;
};

/* Worse states first. */
static const int STATE_ORDER[REPLICA_STATE_COUNT] = {[REPLICA_ERROR] = 1,
	[REPLICA_STAGING] = 2,
	[REPLICA_FETCHING] = 3,
	[REPLICA_IDLE] = 4,
	[REPLICA_READY] = 5};
static const char *const STATE_COLOURS[REPLICA_STATE_COUNT] = {
	[REPLICA_ERROR] = "31", [REPLICA_STAGING] = "33", [REPLICA_FETCHING] = "33"};

static void put(struct picture *picture, const char *colour, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void draw_run(struct picture *picture);
static void draw_steps(struct picture *picture);
static void draw_troubles(struct picture *picture);
static void draw_fleet(struct picture *picture);
static void draw_bars(struct picture *picture);
static void format_reports(const struct watch_fleet *fleet, char out[REPORTS_BYTES]);
static void draw_lag(struct picture *picture);
static void format_lags(const struct watch_model *model, char out[WATCH_LAGS_MAX + 1]);
static void draw_workers(struct picture *picture);
static bool fits(const struct watch_worker *worker, const char *filter);
static size_t rows_of(const struct picture *picture, size_t events);
static size_t event_lines(const struct picture *picture);
static int name_width(const struct watch_view *view);
static void draw_worker(struct picture *picture, const struct watch_worker *worker);
static const char *state_of(const struct watch_worker *worker);
static void draw_events(struct picture *picture, size_t count);
static void draw_keys(struct picture *picture);
static int watch_picture_by_lag(const void *a, const void *b);
static int watch_picture_by_state(const void *a, const void *b);
static int watch_picture_by_name(const void *a, const void *b);
static bool lags(const struct watch_worker *worker);
static int compare(uint64_t a, uint64_t b);
static int badness(const struct watch_worker *worker);

void watch_picture_draw(const struct watch_view *view, const struct watch_model *model,
	const char *end, struct buffer *out)
{
	struct picture picture = {.view = view, .model = model, .end = end, .out = out};
	ASSERT(view->width >= WATCH_WIDTH_MIN && view->width <= WATCH_WIDTH_MAX);
	draw_run(&picture);
	draw_steps(&picture);
	draw_troubles(&picture);
	draw_fleet(&picture);
	const size_t events = event_lines(&picture);
	draw_workers(&picture);
	draw_events(&picture, events);
	draw_keys(&picture);
}

size_t watch_picture_choose(const struct watch_view *view, const struct watch_fleet *fleet,
	const struct watch_worker **out)
{
	static int (*const ORDERS[])(const void *, const void *) = {
		[WATCH_BY_LAG] = watch_picture_by_lag,
		[WATCH_BY_STATE] = watch_picture_by_state,
		[WATCH_BY_NAME] = watch_picture_by_name};
	size_t count = 0;
	for (size_t i = 0; i < fleet->count; i++)
		if (fits(&fleet->workers[i], view->filter))
			out[count++] = &fleet->workers[i];
	qsort(out, count, sizeof(*out), ORDERS[view->order]);
	return count;
}

void watch_picture_format_age(int64_t ms, char out[WATCH_AGE_BYTES])
{
	const int64_t seconds = ms < 0 ? 0 : ms / SECOND_MS;
	if (seconds < 120)
		snprintf(out, WATCH_AGE_BYTES, "%" PRId64 " s", seconds);
	else if (seconds < 2 * 3600)
		snprintf(out, WATCH_AGE_BYTES, "%" PRId64 " min", seconds / 60);
	else if (seconds < 48 * 3600)
		snprintf(out, WATCH_AGE_BYTES, "%" PRId64 " h", seconds / 3600);
	else
		snprintf(out, WATCH_AGE_BYTES, "%" PRId64 " d", seconds / (24 * 3600));
}

void watch_picture_format_cells(
	const struct watch_worker *worker, int64_t now_ms, struct watch_cells *out)
{
	*out = (struct watch_cells){.state = state_of(worker), .step = "-"};
	watch_picture_format_age(now_ms - worker->updated_ms, out->age);
	if (worker->has_step)
		snprintf(out->step, sizeof(out->step), "%" PRIu64, worker->step);
	if (worker->has_lag)
		snprintf(out->behind, sizeof(out->behind), "%" PRIu64 " (%" PRIu64 " s)",
			worker->behind_steps, worker->behind_s);
	if (worker->has_pause)
		snprintf(out->paused, sizeof(out->paused), "%" PRIu64 " ms", worker->pause_ms);
}

void watch_picture_clean(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* One line, cut to the width; `colour` may be NULL. */
static void put(struct picture *picture, const char *colour, const char *format, ...)
{
	char line[LINE_BYTES];
	const bool coloured = colour != NULL && picture->view->colours;
	va_list arguments;
	if (picture->view->height > 0 && picture->lines >= picture->view->height)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	watch_picture_clean(line);
	if (strlen(line) > picture->view->width)
		line[picture->view->width] = '\0';
	for (size_t len = strlen(line); len > 0 && line[len - 1] == ' '; len--)
		line[len - 1] = '\0';
	buffer_format(picture->out, "%s%s%s%s%s%s", coloured ? "\033[" : "", coloured ? colour : "",
		coloured ? "m" : "", line, coloured ? "\033[m" : "", picture->end);
	picture->lines++;
}

static void draw_run(struct picture *picture)
{
	static const char *const PROOFS[] = {[STEP_PROOF_NONE] = "",
		[STEP_PROOF_PENDING] = "   proof pending",
		[STEP_PROOF_OK] = "   proof ok",
		[STEP_PROOF_FAILED] = "   PROOF FAILED"};
	const struct watch_run *const run = &picture->model->run;
	char step[64] = "no step yet";
	char age[WATCH_AGE_BYTES] = "";
	if (run->has_step)
		watch_picture_format_age(picture->view->now_ms - run->created_ms, age);
	if (run->has_head)
		snprintf(step, sizeof(step), "step %" PRIu64 "%s%s%s", run->head,
			run->has_step ? ", " : "", age, run->has_step ? " ago" : "");
	put(picture, "1", "%s   %s%s   epoch %" PRIu64 "%s%s", picture->view->run, step,
		run->has_step ? PROOFS[run->verified] : "", run->epoch,
		run->label[0] != '\0' ? "   " : "", run->label);
}

static void draw_steps(struct picture *picture)
{
	const struct watch_run *const run = &picture->model->run;
	const int64_t pace_ms = watch_model_pace_ms(picture->model);
	char pace[64] = "";
	char kept[QUANTITY_TEXT_BYTES];
	char full[QUANTITY_TEXT_BYTES];
	char delta[QUANTITY_TEXT_BYTES];
	quantity_format(run->bytes, kept);
	quantity_format(run->full_bytes, full);
	quantity_format(run->delta_bytes, delta);
	if (pace_ms > 0)
		snprintf(pace, sizeof(pace), "a step every %.1f s   ", (double)pace_ms / SECOND_MS);
	put(picture, NULL, "%s%s%s%s%s%s%" PRIu64 " kept in %s%s", pace,
		run->has_delta ? "delta " : "", run->has_delta ? delta : "",
		run->has_delta ? " of " : "", run->has_step ? full : "", run->has_step ? "   " : "",
		run->steps, kept, run->anchor_due ? "   anchor due" : "");
}

static void draw_troubles(struct picture *picture)
{
	const struct watch_run *const run = &picture->model->run;
	if (picture->view->trouble != NULL)
		put(picture, "31", "%s", picture->view->trouble);
	if (run->has_step && run->verified == STEP_PROOF_FAILED)
		put(picture, "31", "%s", run->verify_error);
	if (run->rollback.is_on)
		put(picture, "33", "the fleet is held at step %" PRIu64, run->rollback.step);
}

static void draw_fleet(struct picture *picture)
{
	const struct watch_fleet *const fleet = &picture->model->fleet;
	put(picture, NULL, "%s", "");
	if (fleet->is_denied) {
		put(picture, NULL, "the token may not see the workers of this run");
		return;
	}
	draw_bars(picture);
	draw_lag(picture);
	put(picture, NULL, "%s", "");
}

/* A bar for each state that somebody is in. */
static void draw_bars(struct picture *picture)
{
	const struct watch_fleet *const fleet = &picture->model->fleet;
	char reports[REPORTS_BYTES] = "";
	uint64_t all = 0;
	for (enum replica_state i = 0; i < REPLICA_STATE_COUNT; i++)
		all += fleet->counts.states[i];
	if (fleet->counts.has_report)
		format_reports(fleet, reports);
	put(picture, NULL, "%" PRIu64 " worker%s%s", all, all == 1 ? "" : "s",
		all == 0 ? ": none has reported" : reports);
	for (enum replica_state i = REPLICA_STATE_COUNT; i-- > 0 && all > 0;) {
		char bar[BAR_WIDTH + 1];
		const size_t len =
			(size_t)(((double)fleet->counts.states[i] * BAR_WIDTH + (double)all - 1) /
				(double)all);
		memset(bar, '#', sizeof(bar));
		bar[len < BAR_WIDTH ? len : BAR_WIDTH] = '\0';
		if (fleet->counts.states[i] > 0)
			put(picture, STATE_COLOURS[i], "  %-9s %7" PRIu64 "  %s",
				replica_state_name(i), fleet->counts.states[i], bar);
	}
	if (fleet->counts.expired > 0)
		put(picture, "31", "  %-9s %7" PRIu64, "expired", fleet->counts.expired);
	if (fleet->counts.without_step > 0)
		put(picture, NULL, "  %-9s %7" PRIu64, "no step", fleet->counts.without_step);
}

/* How old what is known of the workers may be. */
static void format_reports(const struct watch_fleet *fleet, char out[REPORTS_BYTES])
{
	char age[WATCH_AGE_BYTES];
	watch_picture_format_age((int64_t)(fleet->counts.oldest_report_s * SECOND_MS), age);
	snprintf(out, REPORTS_BYTES, ", reports up to %s old", age);
}

static void draw_lag(struct picture *picture)
{
	const struct watch_lag *const lag = &picture->model->lag;
	char before[WATCH_LAGS_MAX + 1];
	char seconds[48] = "";
	if (!lag->is_known)
		return;
	format_lags(picture->model, before);
	if (lag->has_seconds)
		snprintf(seconds, sizeof(seconds), ", %" PRIu64 " s", lag->seconds);
	put(picture, lag->steps > 0 ? "33" : NULL, "slowest: %" PRIu64 " step%s%s behind   [%s]",
		lag->steps, lag->steps == 1 ? "" : "s", seconds, before);
}

/* The lags of before as one letter each, lower to higher: _.:-=+*#%@ */
static void format_lags(const struct watch_model *model, char out[WATCH_LAGS_MAX + 1])
{
	static const char LEVELS[] = "_.:-=+*#%@";
	const size_t last = sizeof(LEVELS) - 2;
	uint64_t most = 1;
	for (size_t i = 0; i < model->lag_count; i++)
		most = model->lags[i] > most ? model->lags[i] : most;
	for (size_t i = 0; i < model->lag_count; i++)
		out[i] = LEVELS[(size_t)((double)model->lags[i] / (double)most * (double)last)];
	out[model->lag_count] = '\0';
}

static void draw_workers(struct picture *picture)
{
	const struct watch_fleet *const fleet = &picture->model->fleet;
	const struct watch_view *const view = picture->view;
	if (fleet->is_denied || fleet->count == 0)
		return;
	const struct watch_worker **const chosen = memory_new_array(fleet->count, sizeof(*chosen));
	const size_t count = watch_picture_choose(view, fleet, chosen);
	put(picture, "1", "%-*s  %-8s  %8s  %-14s  %-9s  %-8s  %s", name_width(view), "worker",
		"state", "step", "behind", "paused", "heard of",
		view->filter[0] != '\0' ? view->filter : "");
	const size_t rows = rows_of(picture, event_lines(picture));
	for (size_t i = 0; i < count && i < rows; i++)
		draw_worker(picture, chosen[i]);
	if (count > rows)
		put(picture, NULL, "... and %zu more", count - rows);
	free(chosen);
}

static bool fits(const struct watch_worker *worker, const char *filter)
{
	return strstr(worker->id, filter) != NULL || strstr(state_of(worker), filter) != NULL ||
		strstr(worker->error, filter) != NULL;
}

static size_t event_lines(const struct picture *picture)
{
	const struct watch_view *const view = picture->view;
	const size_t wanted = view->event_count < EVENTS_MOST ? view->event_count : EVENTS_MOST;
	const size_t taken = picture->lines + ROWS_LEAST + 3;
	if (view->height == 0)
		return wanted;
	if (view->height <= taken)
		return 0;
	return wanted < view->height - taken ? wanted : view->height - taken;
}

/* Rows that there is room for, above events, keys and the line for those that are left out. */
static size_t rows_of(const struct picture *picture, size_t events)
{
	const size_t below = events + (events > 0 ? 1 : 0) + (picture->view->has_keys ? 1 : 0) + 1;
	if (picture->view->height == 0)
		return picture->view->rows;
	return picture->view->height > picture->lines + below
		? picture->view->height - picture->lines - below
		: 0;
}

/* A narrow screen has room for errors, too. */
static int name_width(const struct watch_view *view)
{
	return view->width < WIDE ? NAME_NARROW : NAME_WIDE;
}

static void draw_worker(struct picture *picture, const struct watch_worker *worker)
{
	struct watch_cells cells;
	const int width = name_width(picture->view);
	watch_picture_format_cells(worker, picture->view->now_ms, &cells);
	put(picture, worker->expired ? "31" : STATE_COLOURS[worker->state],
		"%-*.*s  %-8s  %8s  %-14s  %-9s  %-8s  %s", width, width, worker->id, cells.state,
		cells.step, cells.behind, cells.paused, cells.age, worker->error);
}

static const char *state_of(const struct watch_worker *worker)
{
	return worker->expired ? "expired" : replica_state_name(worker->state);
}

static void draw_events(struct picture *picture, size_t count)
{
	const struct watch_view *const view = picture->view;
	if (count == 0)
		return;
	put(picture, NULL, "%s", "");
	for (size_t i = view->event_count - count; i < view->event_count; i++)
		put(picture, NULL, "%s", view->events[i]);
}

static void draw_keys(struct picture *picture)
{
	static const char *const ORDERS[] = {"lag", "state", "name"};
	const struct watch_view *const view = picture->view;
	if (!view->has_keys)
		return;
	while (picture->lines + 1 < view->height)
		put(picture, NULL, "%s", "");
	if (view->is_typing)
		put(picture, "7", "filter: %s_   Enter keeps it, Esc ends it", view->filter);
	else
		put(picture, "7", "q quit   l lag  s state  n name (now: %s)   / filter%s%s",
			ORDERS[view->order], view->filter[0] != '\0' ? ": " : "", view->filter);
}

/* The farthest behind first, of equals the worse. Those that have expired stand behind all that are
 * on their way. */
static int watch_picture_by_lag(const void *a, const void *b)
{
	const struct watch_worker *const first = *(const struct watch_worker *const *)a;
	const struct watch_worker *const second = *(const struct watch_worker *const *)b;
	int order = (second->state == REPLICA_ERROR) - (first->state == REPLICA_ERROR);
	if (order == 0)
		order = compare(lags(second) ? second->behind_steps : 0,
			lags(first) ? first->behind_steps : 0);
	if (order == 0)
		order = compare(
			lags(second) ? second->behind_s : 0, lags(first) ? first->behind_s : 0);
	if (order == 0)
		order = badness(first) - badness(second);
	return order != 0 ? order : strcmp(first->id, second->id);
}

static int watch_picture_by_state(const void *a, const void *b)
{
	const struct watch_worker *const first = *(const struct watch_worker *const *)a;
	const struct watch_worker *const second = *(const struct watch_worker *const *)b;
	const int order = badness(first) - badness(second);
	return order != 0 ? order : watch_picture_by_lag(a, b);
}

static int watch_picture_by_name(const void *a, const void *b)
{
	const struct watch_worker *const first = *(const struct watch_worker *const *)a;
	const struct watch_worker *const second = *(const struct watch_worker *const *)b;
	return strcmp(first->id, second->id);
}

static bool lags(const struct watch_worker *worker)
{
	return worker->has_lag && !worker->expired;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int badness(const struct watch_worker *worker)
{
	return worker->expired ? 0 : STATE_ORDER[worker->state];
}
