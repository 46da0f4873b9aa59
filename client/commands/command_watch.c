/* `watch`: on a terminal a picture of a run and its workers that is drawn again in place;
 * elsewhere, and with --json, a line for each change; with --once one picture.
 *
 * One thread asks the server: the run, its fleet, and then LatestStep, which answers as soon as
 * there is a new step, so a pause is short when something happens. The list of the workers takes a
 * request for each thousand of them, so it is fetched at most once a second for each such page; the
 * counts come each time. On a terminal the command's own thread draws and reads keys, so keys are
 * quick while a server is slow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread/lock.h"
#include "client/commands/commands.h"
#include "client/terminal/terminal.h"
#include "client/watch/watch_events.h"
#include "client/watch/watch_fetch.h"
#include "client/watch/watch_screen.h"

enum {
	POLL_S = 2,
	PAUSE_LEAST_MS = 500, /* where LatestStep answers at once */
	TROUBLE_PAUSE_MS = 2000,
	LIST_MS_PER_PAGE = 1000,
	KEY_MS = 250,
	ROWS = 20,
	EVENTS_KEPT = 32,
	EVENTS_AT_ONCE = 8,
	PICTURE_MAX_BYTES = 4 * 1024 * 1024,
	ESCAPE = 033,
	DELETE = 0177,
	BACKSPACE = 010,
};

struct watch {
	struct session *session;
	struct run_name run;
	struct remote_options options;
	struct remote *remote; /* of the thread that asks */
	int64_t listed_ms;     /* when the workers were listed */
	struct lock lock;      /* guards the rest */
	struct watch_model model;
	struct error trouble; /* why there is nothing newer; kind none: there is */
	struct error end;     /* why it cannot go on */
	bool ended;
	char *events[EVENTS_KEPT]; /* sentences, the newest last */
	size_t event_count;
	size_t events_now; /* told since the last request */
};

static int watch_run(struct watch *watch, struct error *err);
static int show_once(struct watch *watch);
static size_t rows_of(const struct options *options);
static int say_lines(struct watch *watch, struct error *err);
static int show_screen(struct watch *watch, struct error *err);
static void *command_watch_ask(void *argument);
static int ask_on(struct watch *watch, struct error *err);
static int ask(struct watch *watch, bool lists, struct error *err);
static bool is_list_due(const struct watch *watch);
static bool bear(struct watch *watch, const struct error *failure);
static void command_watch_keep_event(void *owner, const struct watch_event *event);
static void keep_sentence(struct watch *watch, const char *sentence, int64_t ms);
static void command_watch_say_event(void *owner, const struct watch_event *event);
static int draw_on(struct watch *watch, struct watch_screen *screen);
static void draw(struct watch *watch, struct watch_view *view, struct watch_screen *screen);
static bool take_key(struct watch_view *view, int key);
static void take_letter(struct watch_view *view, int key);

int command_watch(struct session *session, struct error *err)
{
	struct watch watch = {.session = session, .options = session->remote_options};
	ASSERT(session->options->argument_count == 1);
	if (run_name_init(&watch.run, session->options->arguments[0], err) != 0) {
		session->usage = true;
		return -1;
	}
	lock_init(&watch.lock, LOCK_WATCHED_RUN);
	watch.remote = remote_new(&watch.options, err);
	const int result = watch.remote == NULL ? -1 : watch_run(&watch, err);
	remote_free(watch.remote);
	watch_model_release(&watch.model);
	for (size_t i = 0; i < watch.event_count; i++)
		free(watch.events[i]);
	lock_release(&watch.lock);
	run_name_release(&watch.run);
	return result;
}

static int watch_run(struct watch *watch, struct error *err)
{
	const struct options *const options = watch->session->options;
	if (ask(watch, true, err) != 0)
		return -1;
	watch_fetch_history(watch->remote, &watch->run, watch->model.run.head, &watch->model);
	if (options->once)
		return show_once(watch);
	if (options->json || !watch_screen_is_there())
		return say_lines(watch, err);
	return show_screen(watch, err);
}

static int show_once(struct watch *watch)
{
	const struct options *const options = watch->session->options;
	struct output *const output = &watch->session->output;
	struct buffer picture;
	struct watch_view view = {.run = watch->run.text,
		.width = WATCH_WIDTH_MAX,
		.rows = rows_of(options),
		.colours = terminal_has_colours(),
		.now_ms = clock_wall_ms()};
	watch_events_print_all(output, &view, &watch->model, rows_of(options));
	buffer_init(&picture, PICTURE_MAX_BYTES);
	watch_picture_draw(&view, &watch->model, "\n", &picture);
	const struct span text = buffer_span(&picture);
	if (!buffer_failed(&picture) && text.len > 0)
		output_result(output, "%.*s", (int)text.len - 1, (const char *)text.data);
	buffer_release(&picture);
	return 0;
}

static size_t rows_of(const struct options *options)
{
	return options->limit.given ? (size_t)options->limit.value : ROWS;
}

static int say_lines(struct watch *watch, struct error *err)
{
	struct output *const output = &watch->session->output;
	const struct watch_view view = {.run = watch->run.text};
	const struct watch_event now = {.kind = WATCH_FLEET, .ms = clock_wall_ms()};
	const struct watch_run *const run = &watch->model.run;
	const struct watch_event head = {.kind = WATCH_PUBLISHED,
		.ms = run->created_ms,
		.has_step = true,
		.step = run->head};
	watch_events_print_all(output, &view, &watch->model, 0);
	if (!output->json && run->has_step)
		watch_events_say(output, watch->run.text, &watch->model, &head);
	if (!output->json && !watch->model.fleet.is_denied)
		watch_events_say(output, watch->run.text, &watch->model, &now);
	watch->model.tell = command_watch_say_event;
	watch->model.owner = watch;
	return ask_on(watch, err);
}

/* A note on stderr would spoil the picture: failures stand in it. */
static int show_screen(struct watch *watch, struct error *err)
{
	struct watch_screen screen;
	pthread_t thread;
	watch->options.output = NULL;
	watch->options.retries = 0;
	watch->model.tell = command_watch_keep_event;
	watch->model.owner = watch;
	if (watch_screen_begin(&screen, err) != 0)
		return -1;
	lock_thread_start(&thread, "watch", command_watch_ask, watch);
	const int result = draw_on(watch, &screen);
	watch_screen_end(&screen);
	const bool by_key = result != 0;
	if (by_key)
		stop_give(watch->session->stop, STOP_CANCELLED);
	pthread_join(thread, NULL);
	if (by_key || watch->end.kind == ERROR_NONE)
		return 0;
	*err = watch->end;
	return -1;
}

static void *command_watch_ask(void *argument)
{
	struct watch *const watch = argument;
	struct error err = {0};
	ask_on(watch, &err);
	lock_enter(&watch->lock);
	watch->end = err;
	watch->ended = true;
	lock_leave(&watch->lock);
	return NULL;
}

/* Until the word to stop comes, or a failure that does not pass. */
static int ask_on(struct watch *watch, struct error *err)
{
	struct stop *const stop = watch->session->stop;
	const struct option_number poll = watch->session->options->poll;
	while (!watch->session->output.failed) {
		struct error failure = {0};
		const int64_t begun = clock_monotonic_ms();
		int result = watch_fetch_pause(watch->remote, &watch->run, &watch->model.run,
			poll.given ? poll.value : POLL_S, &failure);
		const int64_t left = begun + PAUSE_LEAST_MS - clock_monotonic_ms();
		if (result == 0 && left > 0)
			stop_sleep(stop, left);
		if (result == 0)
			result = ask(watch, is_list_due(watch), &failure);
		if (stop_check(stop, err) != 0)
			return -1;
		if (result != 0 && !bear(watch, &failure)) {
			*err = failure;
			return -1;
		}
	}
	return 0;
}

static int ask(struct watch *watch, bool lists, struct error *err)
{
	struct watch_run run = {0};
	struct watch_fleet fleet = {0};
	int result = watch_fetch_run(watch->remote, &watch->run, &watch->model.run, &run, err);
	if (result == 0)
		result = watch_fetch_fleet(watch->remote, &watch->run, lists, &fleet, err);
	if (result == 0) {
		lock_enter(&watch->lock);
		watch->events_now = 0;
		watch->trouble = (struct error){0};
		watch_model_take_run(&watch->model, &run);
		watch_model_take_fleet(&watch->model, &fleet);
		lock_leave(&watch->lock);
	}
	if (result == 0 && lists)
		watch->listed_ms = clock_monotonic_ms();
	watch_fleet_release(&fleet);
	return result;
}

static bool is_list_due(const struct watch *watch)
{
	const size_t pages = watch->model.fleet.count / REPLICA_LIST_MAX + 1;
	return clock_monotonic_ms() - watch->listed_ms >= (int64_t)pages * LIST_MS_PER_PAGE;
}

/* Whether the failure may pass. Waits a little then. */
static bool bear(struct watch *watch, const struct error *failure)
{
	if (failure->kind != ERROR_UPSTREAM)
		return false;
	lock_enter(&watch->lock);
	const bool is_new = watch->trouble.kind == ERROR_NONE;
	watch->trouble = *failure;
	lock_leave(&watch->lock);
	if (is_new && watch->options.output != NULL)
		output_note(&watch->session->output, "%s; still trying", failure->text);
	stop_sleep(watch->session->stop, TROUBLE_PAUSE_MS);
	return true;
}

/* A fleet that fails as a whole must not push everything else away. */
static void command_watch_keep_event(void *owner, const struct watch_event *event)
{
	struct watch *const watch = owner;
	char sentence[WATCH_SENTENCE_BYTES];
	if (event->kind == WATCH_FLEET || watch->events_now >= EVENTS_AT_ONCE)
		return;
	watch->events_now++;
	watch_events_format(&watch->model, event, sentence);
	keep_sentence(watch, sentence, event->ms);
}

static void keep_sentence(struct watch *watch, const char *sentence, int64_t ms)
{
	struct buffer line;
	char time[CLOCK_TEXT_BYTES];
	clock_format_iso(ms, time);
	time[strcspn(time, ".")] = '\0';
	buffer_init(&line, 2 * WATCH_SENTENCE_BYTES);
	buffer_format(&line, "%s  %s", time, sentence);
	if (watch->event_count == EVENTS_KEPT) {
		free(watch->events[0]);
		memmove(&watch->events[0], &watch->events[1],
			(EVENTS_KEPT - 1) * sizeof(watch->events[0]));
		watch->event_count--;
	}
	watch->events[watch->event_count++] = memory_copy_text(buffer_text(&line));
	buffer_release(&line);
}

static void command_watch_say_event(void *owner, const struct watch_event *event)
{
	struct watch *const watch = owner;
	watch_events_say(&watch->session->output, watch->run.text, &watch->model, event);
}

/* Until a key or a signal ends it, or the other thread cannot go on. -1 after a key. */
static int draw_on(struct watch *watch, struct watch_screen *screen)
{
	struct watch_view view = {
		.run = watch->run.text, .colours = terminal_has_colours(), .has_keys = true};
	for (bool ended = false; !ended && stop_reason(watch->session->stop) == 0;) {
		draw(watch, &view, screen);
		const int key = watch_screen_key(screen, KEY_MS);
		if (key < 0 || (key > 0 && !take_key(&view, key)))
			return -1;
		lock_enter(&watch->lock);
		ended = watch->ended;
		lock_leave(&watch->lock);
	}
	return 0;
}

static void draw(struct watch *watch, struct watch_view *view, struct watch_screen *screen)
{
	struct buffer picture;
	buffer_init(&picture, PICTURE_MAX_BYTES);
	lock_enter(&watch->lock);
	view->width = screen->width;
	view->height = screen->height;
	view->now_ms = clock_wall_ms() / 1000 * 1000; /* all ages change at once */
	view->trouble = watch->trouble.kind != ERROR_NONE ? watch->trouble.text : NULL;
	view->events = (const char *const *)watch->events;
	view->event_count = watch->event_count;
	watch_picture_draw(view, &watch->model, WATCH_SCREEN_END, &picture);
	lock_leave(&watch->lock);
	watch_screen_show(screen, buffer_span(&picture));
	buffer_release(&picture);
}

/* False when the key ends it. */
static bool take_key(struct watch_view *view, int key)
{
	if (view->is_typing) {
		take_letter(view, key);
		return true;
	}
	if (key == 'l')
		view->order = WATCH_BY_LAG;
	else if (key == 's')
		view->order = WATCH_BY_STATE;
	else if (key == 'n')
		view->order = WATCH_BY_NAME;
	view->is_typing = key == '/';
	if (key == '/' || key == ESCAPE)
		view->filter[0] = '\0';
	return key != 'q';
}

static void take_letter(struct watch_view *view, int key)
{
	const size_t len = strlen(view->filter);
	if (key == '\n' || key == '\r' || key == ESCAPE)
		view->is_typing = false;
	if (key == ESCAPE)
		view->filter[0] = '\0';
	else if ((key == DELETE || key == BACKSPACE) && len > 0)
		view->filter[len - 1] = '\0';
	else if (key >= ' ' && key <= '~' && len + 1 < sizeof(view->filter))
		view->filter[len] = (char)key;
}
