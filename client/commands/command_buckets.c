/* `mb` and `rb`: make and remove buckets. All names are checked before the first request. Each
 * bucket is a request of its own, and one that the server refuses does not stop the others
 * (refusals.h). */
#include "client/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "client/remote/remote_hub.h"
#include "client/remote/remote_object.h"
#include "client/remote/remote_run.h"
#include "client/work/refusals.h"

typedef int bucket_fn(
	struct session *session, struct remote *remote, struct span bucket, struct error *err);

static int each_bucket(struct session *session, bucket_fn *work, struct error *err);
static int read_bucket(
	struct session *session, const char *text, struct span *out, struct error *err);
static int command_buckets_make(
	struct session *session, struct remote *remote, struct span bucket, struct error *err);
static void say(struct session *session, const char *event, const char *word, struct span bucket);
static int command_buckets_remove(
	struct session *session, struct remote *remote, struct span bucket, struct error *err);
static int explain_refusal(struct remote *remote, struct span bucket, struct error *err);
static bool find_run(
	struct remote *remote, struct span bucket, struct arena *arena, struct span *out);

int command_mb(struct session *session, struct error *err)
{
	return each_bucket(session, command_buckets_make, err);
}

int command_rb(struct session *session, struct error *err)
{
	return each_bucket(session, command_buckets_remove, err);
}

static int each_bucket(struct session *session, bucket_fn *work, struct error *err)
{
	const struct options *const options = session->options;
	ASSERT(options->argument_count > 0);
	struct refusals refusals = {.output = &session->output, .total = options->argument_count};
	struct span bucket;
	for (size_t i = 0; i < options->argument_count; i++)
		if (read_bucket(session, options->arguments[i], &bucket, err) != 0)
			return -1;
	struct remote *const remote = session_connect(session, err);
	int result = remote == NULL ? -1 : 0;
	for (size_t i = 0; i < options->argument_count && result == 0; i++) {
		struct error failure = {0};
		read_bucket(session, options->arguments[i], &bucket, err);
		if (work(session, remote, bucket, &failure) != 0)
			result = refusals_add(&refusals, &failure, err);
	}
	remote_free(remote);
	return result == 0 ? refusals_end(&refusals, err) : -1;
}

/* Reads BUCKET, or BUCKET/ as a shell may complete it. */
static int read_bucket(
	struct session *session, const char *text, struct span *out, struct error *err)
{
	struct object_name name;
	if (session_object_name(session, text, &name, err) != 0)
		return -1;
	*out = name.bucket;
	return name.key.len == 0
		? 0
		: session_usage(session, err, "%s names an object; say which bucket: %.*s", text,
			  (int)name.bucket.len, (const char *)name.bucket.data);
}

static int command_buckets_make(
	struct session *session, struct remote *remote, struct span bucket, struct error *err)
{
	const int exists = remote_object_has_bucket(remote, bucket, err);
	if (exists < 0)
		return -1;
	if (exists > 0 && session->options->exist_ok)
		return 0;
	if (exists > 0)
		return error_set(err, ERROR_BUCKET_OWNED, "there is already a bucket %.*s",
			(int)bucket.len, (const char *)bucket.data);
	if (remote_object_make_bucket(remote, bucket, err) != 0)
		return -1;
	say(session, "bucket_made", "made bucket", bucket);
	return 0;
}

static void say(struct session *session, const char *event, const char *word, struct span bucket)
{
	struct output_line line;
	output_line_begin(&line, &session->output, event);
	json_writer_text(&line.writer, "bucket", bucket);
	output_line_end(&line);
	output_say(&session->output, "%s %.*s", word, (int)bucket.len, (const char *)bucket.data);
}

static int command_buckets_remove(
	struct session *session, struct remote *remote, struct span bucket, struct error *err)
{
	const int result = session->options->force
		? remote_hub_drop(remote, bucket, err)
		: remote_object_remove_bucket(remote, bucket, err);
	if (result == 0)
		say(session, "bucket_removed", "removed bucket", bucket);
	else if (err->kind == ERROR_BUCKET_NOT_EMPTY || err->kind == ERROR_BUCKET_HAS_RUNS ||
		err->kind == ERROR_EXISTS)
		explain_refusal(remote, bucket, err);
	return result;
}

/* Replaces the error by one that says what prevents the removal and which command helps. */
static int explain_refusal(struct remote *remote, struct span bucket, struct error *err)
{
	const int len = (int)bucket.len;
	const char *const name = (const char *)bucket.data;
	struct span run;
	struct arena *const arena = arena_new(REMOTE_RUN_ARENA_BYTES);
	if (find_run(remote, bucket, arena, &run))
		error_set(err, ERROR_BUCKET_HAS_RUNS,
			"the bucket %.*s holds runs; `deltabucket runs rm %.*s/%.*s` ends one, and "
			"`deltabucket runs %.*s` lists them",
			len, name, len, name, (int)run.len, (const char *)run.data, len, name);
	else if (err->kind == ERROR_BUCKET_NOT_EMPTY)
		error_set(err, ERROR_BUCKET_NOT_EMPTY,
			"the bucket %.*s is not empty; `deltabucket rb --force %.*s` removes it "
			"with the objects in it",
			len, name, len, name);
	arena_free(arena);
	return -1;
}

/* Finds the bucket's first run, for the message. False when there is none, or when the request
 * failed. */
static bool find_run(
	struct remote *remote, struct span bucket, struct arena *arena, struct span *out)
{
	struct remote_run_page page = {0};
	struct error ignored = {0};
	if (remote_run_list(remote, bucket, (struct span){0}, arena, &page, &ignored) != 0 ||
		page.count == 0)
		return false;
	*out = page.runs[0].run;
	return true;
}
