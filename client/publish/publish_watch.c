/* The loop asks the server once which number the run has reached, from the labels of its newest
 * steps; publisher_run looks again before each publish. Then it looks at the folder once a second
 * and publishes the finished sub-folder with the lowest number above the last published one. `seen`
 * has the finished sub-folders that are not tried: those up to that number, because steps must keep
 * the order of the numbers, and those that were skipped. A skipped sub-folder leaves `seen` when
 * its marker goes, so that a trainer can make it again. */
#include "client/publish/publish_watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"
#include "client/remote/missing_bucket.h"
#include "client/remote/retry.h"

enum { LOOK_MS = 1000 };

struct watch {
	struct session *session;
	const struct publish_watch_params *params;
	struct publish_order order;
	struct run_name run;
	struct retry pause;       /* after a try that failed */
	int lock;                 /* on the state folder */
	struct label_number last; /* the highest number that is published */
	char *next;               /* the name of the sub-folder to publish; NULL: none */
	uint64_t next_number;
	/* finished sub-folders, sorted by name: those up to `last`, and those skipped */
	char **seen;
	size_t seen_count;
	bool has_looked; /* at the folder, at least once */
};

static int begin(struct watch *watch, struct error *err);
static int check_folder(struct watch *watch, struct error *err);
static int keep_lock(struct watch *watch, struct error *err);
static int watch_on(struct watch *watch, struct error *err);
static int ask(struct watch *watch, struct error *err);
static int ask_run(
	struct watch *watch, struct remote *remote, struct arena *arena, struct error *err);
static int accept_missing(
	const struct watch *watch, const struct error *failure, struct error *err);
static int check_writer(struct watch *watch, const struct run_message *run, struct error *err);
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
static bool is_behind(const struct watch *watch, uint64_t number);
static bool may_pass(const struct error *failure);

int publish_watch(
	struct session *session, const struct publish_watch_params *params, struct error *err)
{
	struct watch watch = {
		.session = session, .params = params, .order = params->order, .lock = -1};
	ASSERT(params->folder != NULL && params->marker != NULL && params->publish != NULL);
	if (run_name_init(&watch.run, params->run, err) != 0)
		return -1;
	watch.order.marker = params->marker;
	watch.order.state_lock = &watch.lock;
	watch.order.newest = &watch.last;
	retry_init(&watch.pause, session->stop, RETRY_FOREVER);
	int result = begin(&watch, err);
	if (result == 0)
		result = watch_on(&watch, err);
	if (stop_reason(session->stop) == SIGTERM)
		result = 0; /* the normal end of a watcher */
	free(watch.next);
	forget_seen(&watch);
	folder_lock_leave(watch.lock);
	run_name_release(&watch.run);
	return result;
}

/* Finds out what no wait would mend before anything is waited for. */
static int begin(struct watch *watch, struct error *err)
{
	if (check_folder(watch, err) != 0 || keep_lock(watch, err) != 0)
		return -1;
	output_note(&watch->session->output,
		"watching %s for sub-folders whose name ends in a number and that hold a file %s",
		watch->params->folder, watch->params->marker);
	return 0;
}

static int check_folder(struct watch *watch, struct error *err)
{
	struct stat there;
	if (stat(watch->params->folder, &there) != 0 || S_ISDIR(there.st_mode))
		return 0;
	return session_usage(watch->session, err, "--watch wants a folder, and %s is a file",
		watch->params->folder);
}

/* Locks the state folder for as long as the watcher works, and again if it has been replaced. */
static int keep_lock(struct watch *watch, struct error *err)
{
	const int lock =
		publisher_lock(watch->session, watch->params->run, &watch->order, watch->lock, err);
	if (lock < 0)
		return -1;
	if (lock != watch->lock)
		folder_lock_leave(watch->lock);
	watch->lock = lock;
	return 0;
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
			stop_sleep(watch->session->stop, LOOK_MS);
		if (result != 0 && recover(watch, &failure, err) != 0)
			return -1;
		if (stop_check(watch->session->stop, err) != 0)
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
	if (missing_bucket_check(remote, &watch->run, watch->order.create_bucket, err) != 0)
		return -1;
	if (remote_run_find(remote, &watch->run, arena, &run, &failure) != 0)
		return accept_missing(watch, &failure, err);
	if (check_writer(watch, &run, err) != 0)
		return -1;
	return run.has_head ? label_number_list(remote, &watch->run, run.head, &watch->last, err)
			    : 0;
}

/* A run that does not exist is made by the first publish, and its bucket only with
 * --create-bucket. */
static int accept_missing(const struct watch *watch, const struct error *failure, struct error *err)
{
	if (failure->kind == ERROR_NO_RUN ||
		(failure->kind == ERROR_NO_BUCKET && watch->order.create_bucket))
		return 0;
	if (failure->kind == ERROR_NO_BUCKET)
		return missing_bucket_refuse(span_text(watch->run.bucket), err);
	*err = *failure;
	return -1;
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
		if (names[i][0] != '.' && label_number_read(span_text(names[i]), &number) &&
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
	if (!is_behind(watch, number))
		return was_seen && is_finished(watch, name); /* skipped, and not being made again */
	if (was_seen)
		return true;
	if (!is_finished(watch, name))
		return false;
	if (number < watch->last.value && watch->has_looked)
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
		watch->last.value);
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
		!label_number_read(span_text(name), out_number))
		return false;
	if (is_behind(watch, *out_number))
		return false;
	if (watch->next != NULL && *out_number >= watch->next_number)
		return false;
	return !is_seen(watch, name) && is_finished(watch, name);
}

static int publish_next(struct watch *watch, struct error *err)
{
	ASSERT(watch->next != NULL);
	if (keep_lock(watch, err) != 0)
		return -1;
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
	ASSERT(!is_behind(watch, watch->next_number));
	watch->last = (struct label_number){.is_known = true, .value = watch->next_number};
	retry_reset(&watch->pause);
}

/* Decides what follows a failure: 0 to continue, -1 with the error to end. */
static int recover(struct watch *watch, const struct error *failure, struct error *err)
{
	*err = *failure;
	if (stop_reason(watch->session->stop) != 0)
		return -1;
	if (watch->next != NULL && is_behind(watch, watch->next_number)) {
		retry_reset(&watch->pause);
		return 0; /* another publisher was faster */
	}
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

static bool is_behind(const struct watch *watch, uint64_t number)
{
	return watch->last.is_known && number <= watch->last.value;
}

/* Whether the failure may end without anybody's help. */
static bool may_pass(const struct error *failure)
{
	return failure->kind == ERROR_UPSTREAM || failure->kind == ERROR_NO_SPACE;
}
