/* The loop asks the server once which number the run has reached, from the labels of its newest
 * steps. Then it looks at the folder once a second and publishes the finished sub-folder with the
 * lowest number above the last published one. `seen` has the finished sub-folders that are not
 * tried: those up to that number, because steps must keep the order of the numbers, and those that
 * were skipped. A skipped sub-folder leaves `seen` when its marker goes, so that a trainer can make
 * it again. */
#include "client/publish/publish_watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/remote/retry.h"
#include "client/terminal/exit_code.h"

enum { LOOK_MS = 1000, NUMBER_DIGITS_MAX = 18, LABELS_LOOKED_AT = 256 };

struct watch {
	struct session *session;
	const struct publish_watch_params *params;
	struct publish_order order;
	struct run_name run;
	struct retry pause; /* after a try that failed */
	bool has_last;
	uint64_t last; /* the highest number that is published */
	char *next;    /* the name of the sub-folder to publish; NULL: none */
	uint64_t next_number;
	/* finished sub-folders, sorted by name: those up to `last`, and those skipped */
	char **seen;
	size_t seen_count;
	bool has_looked; /* at the folder, at least once */
};

static int watch_on(struct watch *watch, struct error *err);
static int ask(struct watch *watch, struct error *err);
static int ask_run(
	struct watch *watch, struct remote *remote, struct arena *arena, struct error *err);
static bool is_run_missing(const struct error *failure);
static int check_writer(struct watch *watch, const struct run_message *run, struct error *err);
static int ask_steps(struct watch *watch, struct remote *remote, uint64_t head, struct error *err);
static void learn(struct watch *watch, const struct step_message *steps, size_t count);
static bool read_number(struct span name, uint64_t *out);
static void look(struct watch *watch);
static void update_seen(struct watch *watch, char *const *names, size_t count);
static bool belongs_to_seen(struct watch *watch, const char *name, uint64_t number);
static bool is_seen(const struct watch *watch, const char *name);
static int publish_watch_by_name(const void *a, const void *b);
static bool is_finished(const struct watch *watch, const char *name);
static char *path_in(const struct watch *watch, const char *name, const char *file);
static void say_late(struct watch *watch, const char *name);
static void say_failure(
	struct watch *watch, const char *event, const char *folder, const struct error *failure);
static void forget_seen(struct watch *watch);
static bool is_next(const struct watch *watch, const char *name, uint64_t *out_number);
static int publish_next(struct watch *watch, struct error *err);
static void mark_published(struct watch *watch);
static int recover(struct watch *watch, const struct error *failure, struct error *err);
static bool is_bad_folder(const struct watch *watch, const struct error *failure);
static void skip(struct watch *watch);
static bool may_pass(const struct error *failure);

int publish_watch(
	struct session *session, const struct publish_watch_params *params, struct error *err)
{
	struct watch watch = {.session = session, .params = params, .order = params->order};
	ASSERT(params->folder != NULL && params->marker != NULL && params->publish != NULL);
	if (run_name_init(&watch.run, params->run, err) != 0)
		return -1;
	watch.order.marker = params->marker;
	retry_init(&watch.pause, session->interrupt, RETRY_FOREVER);
	output_note(&session->output,
		"watching %s for sub-folders whose name ends in a number and that hold a file %s",
		params->folder, params->marker);
	int result = watch_on(&watch, err);
	if (interrupt_signal(session->interrupt) == SIGTERM)
		result = 0; /* the normal end of a watcher */
	free(watch.next);
	forget_seen(&watch);
	run_name_release(&watch.run);
	return result;
}

static int watch_on(struct watch *watch, struct error *err)
{
	for (bool knows = false;;) {
		struct error failure = {0};
		int result = knows ? 0 : ask(watch, &failure);
		knows |= result == 0;
		if (result == 0)
			look(watch);
		if (result == 0 && watch->next != NULL)
			result = publish_next(watch, &failure);
		else if (result == 0)
			interrupt_sleep(watch->session->interrupt, LOOK_MS);
		if (result != 0 && recover(watch, &failure, err) != 0)
			return -1;
		if (interrupt_check(watch->session->interrupt, err) != 0)
			return -1;
	}
}

static int ask(struct watch *watch, struct error *err)
{
	struct remote *const remote = session_connect(watch->session, err);
	if (remote == NULL)
		return -1;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	const int result = ask_run(watch, remote, arena, err);
	arena_free(arena);
	remote_free(remote);
	return result;
}

static int ask_run(
	struct watch *watch, struct remote *remote, struct arena *arena, struct error *err)
{
	struct run_message run;
	struct error failure = {0};
	if (remote_run_find(remote, &watch->run, arena, &run, &failure) != 0) {
		if (is_run_missing(&failure))
			return 0; /* the first publish makes it */
		*err = failure;
		return -1;
	}
	if (check_writer(watch, &run, err) != 0)
		return -1;
	return run.has_head ? ask_steps(watch, remote, run.head, err) : 0;
}

static bool is_run_missing(const struct error *failure)
{
	return failure->kind == ERROR_NO_RUN || failure->kind == ERROR_NO_BUCKET;
}

/* Finds out now, not when the trainer has finished a checkpoint, that this watcher may not write to
 * the run. With --take-over the run is taken over with the first checkpoint: until then its writer
 * continues. */
static int check_writer(struct watch *watch, const struct run_message *run, struct error *err)
{
	return run->has_head
		? publisher_check(watch->session, watch->params->run, &watch->order, err)
		: 0;
}

/* Finds the newest step that is named after a sub-folder, among the run's newest steps. */
static int ask_steps(struct watch *watch, struct remote *remote, uint64_t head, struct error *err)
{
	uint64_t from = head < LABELS_LOOKED_AT ? 0 : head - LABELS_LOOKED_AT + 1;
	bool more = true;
	int result = 0;
	while (result == 0 && more) {
		struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
		struct remote_run_page page = {0};
		result = remote_run_list_steps(remote, &watch->run, from, arena, &page, err);
		more = result == 0 && page.more && page.count > 0;
		if (result == 0)
			learn(watch, page.steps, page.count);
		if (more)
			from = page.steps[page.count - 1].step + 1;
		arena_free(arena);
	}
	return result;
}

/* Takes the number from the steps' labels. The steps come in rising order. */
static void learn(struct watch *watch, const struct step_message *steps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (read_number(steps[i].label, &watch->last))
			watch->has_last = true;
}

/* The number that a name ends in. */
static bool read_number(struct span name, uint64_t *out)
{
	size_t start = name.len;
	while (start > 0 && name.data[start - 1] >= '0' && name.data[start - 1] <= '9')
		start--;
	const struct span digits = span_slice(name, start, name.len - start);
	return digits.len > 0 && digits.len <= NUMBER_DIGITS_MAX && span_parse_u64(digits, out);
}

/* Sets watch->next, which is NULL when there is nothing to publish. A folder that cannot be read
 * counts as empty. */
static void look(struct watch *watch)
{
	char **names = NULL;
	size_t count = 0;
	struct error ignored = {0};
	free(watch->next);
	watch->next = NULL;
	if (file_list(watch->params->folder, &names, &count, &ignored) != 0)
		return;
	update_seen(watch, names, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t number;
		if (is_next(watch, names[i], &number)) {
			free(watch->next);
			watch->next = names[i];
			names[i] = NULL;
			watch->next_number = number;
		}
		free(names[i]);
	}
	free(names);
}

/* Replaces `seen` by a list made from the sub-folders that exist now. */
static void update_seen(struct watch *watch, char *const *names, size_t count)
{
	char **const seen = memory_new_array(count + 1, sizeof(*seen));
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t number;
		if (names[i][0] != '.' && read_number(span_text(names[i]), &number) &&
			belongs_to_seen(watch, names[i], number))
			seen[kept++] = memory_copy_text(names[i]);
	}
	forget_seen(watch);
	qsort(seen, kept, sizeof(*seen), publish_watch_by_name);
	watch->seen = seen;
	watch->seen_count = kept;
	watch->has_looked = true;
}

/* Whether the sub-folder must not be tried. Steps keep the order of the numbers, so a sub-folder
 * with a number below the last published one is not tried. */
static bool belongs_to_seen(struct watch *watch, const char *name, uint64_t number)
{
	const bool was_seen = is_seen(watch, name);
	const bool is_behind = watch->has_last && number <= watch->last;
	if (!is_behind)
		return was_seen && is_finished(watch, name); /* skipped, and not being made again */
	if (was_seen)
		return true;
	if (!is_finished(watch, name))
		return false;
	if (number < watch->last && watch->has_looked)
		say_late(watch, name);
	return true;
}

static bool is_seen(const struct watch *watch, const char *name)
{
	return watch->seen_count > 0 &&
		bsearch(&name, watch->seen, watch->seen_count, sizeof(*watch->seen),
			publish_watch_by_name) != NULL;
}

static int publish_watch_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_finished(const struct watch *watch, const char *name)
{
	char *const path = path_in(watch, name, watch->params->marker);
	const bool there = file_exists(path);
	free(path);
	return there;
}

static char *path_in(const struct watch *watch, const char *name, const char *file)
{
	char *const folder = folder_files_join(watch->params->folder, name);
	char *const path = folder_files_join(folder, file);
	free(folder);
	return path;
}

static void say_late(struct watch *watch, const char *name)
{
	struct error failure;
	error_set(&failure, ERROR_PRECONDITION,
		"it was finished after a folder with a higher number, %" PRIu64
		", had been published",
		watch->last);
	say_failure(watch, "skipped", name, &failure);
}

/* `folder` is NULL when the failure is not about a sub-folder. */
static void say_failure(
	struct watch *watch, const char *event, const char *folder, const struct error *failure)
{
	struct output_line line;
	output_line_begin(&line, &watch->session->output, event);
	if (folder != NULL)
		json_writer_text(&line.writer, "folder", span_text(folder));
	json_writer_text(&line.writer, "code", span_text(error_kind_name(failure->kind)));
	json_writer_text(&line.writer, "message", span_text(failure->text));
	output_line_end(&line);
	output_note(&watch->session->output, "%s%s%s: %s", event, folder != NULL ? " " : "",
		folder != NULL ? folder : "", failure->text);
}

static void forget_seen(struct watch *watch)
{
	for (size_t i = 0; i < watch->seen_count; i++)
		free(watch->seen[i]);
	free(watch->seen);
}

/* Whether the sub-folder comes before the one found so far. Looks for the marker last, because that
 * asks the file system. */
static bool is_next(const struct watch *watch, const char *name, uint64_t *out_number)
{
	if (name[0] == '.' || strlen(name) > STEP_LABEL_MAX_BYTES ||
		!read_number(span_text(name), out_number))
		return false;
	if (watch->has_last && *out_number <= watch->last)
		return false;
	if (watch->next != NULL && *out_number >= watch->next_number)
		return false;
	return !is_seen(watch, name) && is_finished(watch, name);
}

static int publish_next(struct watch *watch, struct error *err)
{
	ASSERT(watch->next != NULL);
	char *const path = folder_files_join(watch->params->folder, watch->next);
	watch->order.checkpoint = path;
	watch->order.label = watch->next;
	const int result = watch->params->publish(watch->session, &watch->order, err);
	free(path);
	if (result == 0) {
		mark_published(watch);
		watch->order.take_over = false; /* only the first publish takes over */
	}
	return result;
}

static void mark_published(struct watch *watch)
{
	ASSERT(watch->next != NULL);
	ASSERT(!watch->has_last || watch->next_number > watch->last);
	watch->has_last = true;
	watch->last = watch->next_number;
	retry_reset(&watch->pause);
}

/* Decides what follows a failure: 0 to continue, -1 with the error to end. */
static int recover(struct watch *watch, const struct error *failure, struct error *err)
{
	*err = *failure;
	if (interrupt_signal(watch->session->interrupt) != 0)
		return -1;
	if (is_bad_folder(watch, failure)) {
		say_failure(watch, "skipped", watch->next, failure);
		skip(watch);
		return 0;
	}
	if (!may_pass(failure))
		return watch->next != NULL ? error_wrap(err, "%s", watch->next) : -1;
	say_failure(watch, "retrying", watch->next, failure);
	return retry_again(&watch->pause, -1) ? 0 : -1;
}

/* Whether the failure is the sub-folder's own, so that the next one may succeed. */
static bool is_bad_folder(const struct watch *watch, const struct error *failure)
{
	if (watch->next == NULL || watch->session->usage)
		return false;
	return failure->kind == ERROR_INVALID || failure->kind == ERROR_UNSUPPORTED ||
		failure->kind == ERROR_TOO_LARGE || !is_finished(watch, watch->next);
}

/* Does not change `last`: a lower number that is finished later is still in order. */
static void skip(struct watch *watch)
{
	ASSERT(watch->next != NULL);
	watch->seen = memory_grow(watch->seen, watch->seen_count + 1, sizeof(*watch->seen));
	watch->seen[watch->seen_count++] = memory_copy_text(watch->next);
	qsort(watch->seen, watch->seen_count, sizeof(*watch->seen), publish_watch_by_name);
	retry_reset(&watch->pause);
}

/* Whether the failure may end without anybody's help. */
static bool may_pass(const struct error *failure)
{
	const enum exit_code code = exit_code_of(failure->kind);
	return code == EXIT_CODE_UNREACHABLE || code == EXIT_CODE_DISK_FULL ||
		code == EXIT_CODE_BUSY;
}
