/* `rm`: removes objects, each argument for itself: one that fails does not stop the others. An
 * argument is one key, or with -r a key and everything below it, page by page. A single key is
 * looked for first, because the S3 face deletes a missing object without an error. */
#include "client/commands/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote/remote_object.h"
#include "client/work/refusals.h"
#include "client/transfer/removal.h"

enum { PAGE_ARENA_BYTES = 32 * 1024 * 1024, PREFIX_MAX_BYTES = 1025 };

struct rm {
	struct session *session;
	struct remote *remote;
	struct span bucket;
	const struct span *keys; /* of the current removal */
	size_t key_count;
	uint64_t found; /* objects of the current argument, removed or refused */
	uint64_t refused;
	struct error refusal; /* the first one of the current argument */
};

static int check_names(struct rm *rm, struct error *err);
static int check_name(struct rm *rm, const char *text, struct object_name *name, struct error *err);
static int remove_argument(struct rm *rm, const char *text, struct error *err);
static int remove_tree(struct rm *rm, struct span key, struct error *err);
static int remove_key(struct rm *rm, struct span key, struct error *err);
static int object_exists(const struct rm *rm, struct span key, struct error *err);
static int is_listed(const struct rm *rm, struct span key, struct error *err);
static int list_page(const struct rm *rm, struct span prefix, struct span token,
	struct arena *arena, struct listing *out, struct error *err);
static int remove_keys(struct rm *rm, const struct span *keys, size_t count, struct error *err);
static void command_rm_removed(void *owner, size_t number);
static void command_rm_refused(void *owner, size_t number, const struct error *why);
static int remove_below(struct rm *rm, struct span prefix, struct error *err);
static int remove_page(struct rm *rm, const struct listing *page, struct error *err);
static int judge(const struct rm *rm, const char *text, struct error *err);

int command_rm(struct session *session, struct error *err)
{
	const struct options *const options = session->options;
	struct rm rm = {.session = session};
	struct refusals refusals = {.output = &session->output, .total = options->argument_count};
	ASSERT(options->argument_count > 0);
	if (check_names(&rm, err) != 0)
		return -1;
	rm.remote = session_connect(session, err);
	int result = rm.remote == NULL ? -1 : 0;
	for (size_t i = 0; i < options->argument_count && result == 0; i++) {
		struct error failure = {0};
		if (remove_argument(&rm, options->arguments[i], &failure) != 0)
			result = refusals_add(&refusals, &failure, err);
	}
	remote_free(rm.remote);
	return result == 0 ? refusals_end(&refusals, err) : -1;
}

static int check_names(struct rm *rm, struct error *err)
{
	struct object_name name;
	for (size_t i = 0; i < rm->session->options->argument_count; i++)
		if (check_name(rm, rm->session->options->arguments[i], &name, err) != 0)
			return -1;
	return 0;
}

static int check_name(struct rm *rm, const char *text, struct object_name *name, struct error *err)
{
	const bool recursive = rm->session->options->recursive;
	if (session_object_name(rm->session, text, name, err) != 0)
		return -1;
	if (name->key.len == 0 && !recursive)
		return session_usage(rm->session, err,
			"say which object: BUCKET/KEY; `deltabucket rm -r BUCKET/` removes all of a bucket, `deltabucket rb BUCKET` an empty one");
	if (name->key.len == 0 && text[strlen(text) - 1] != '/')
		return session_usage(rm->session, err,
			"say which prefix: BUCKET/PREFIX. `deltabucket rm -r %s/` removes all "
			"objects of the bucket, `deltabucket rb --force %s` the bucket too",
			text, text);
	return 0;
}

static int remove_argument(struct rm *rm, const char *text, struct error *err)
{
	struct object_name name;
	if (check_name(rm, text, &name, err) != 0)
		return -1;
	ASSERT(rm->remote != NULL);
	rm->bucket = name.bucket;
	rm->found = 0;
	rm->refused = 0;
	if ((rm->session->options->recursive ? remove_tree(rm, name.key, err)
					     : remove_key(rm, name.key, err)) != 0)
		return error_wrap(err, "removing %s", text);
	return judge(rm, text, err);
}

/* Removes the object of that name and everything below it. PREFIX is a folder: names that only
 * begin with it are not removed. */
static int remove_tree(struct rm *rm, struct span key, struct error *err)
{
	struct buffer prefix;
	const bool is_folder = key.len == 0 || key.data[key.len - 1] == '/';
	int result = 0;
	buffer_init(&prefix, PREFIX_MAX_BYTES);
	buffer_add_span(&prefix, key);
	if (!is_folder) {
		result = remove_key(rm, key, err);
		buffer_add_byte(&prefix, '/');
	}
	if (result == 0)
		result = remove_below(rm, buffer_span(&prefix), err);
	buffer_release(&prefix);
	return result;
}

static int remove_key(struct rm *rm, struct span key, struct error *err)
{
	const int exists = object_exists(rm, key, err);
	return exists == 1 ? remove_keys(rm, &key, 1, err) : exists;
}

/* 1 when the object exists, 0 when it does not. 1 also when the token may neither read nor list:
 * then the object is deleted without looking. */
static int object_exists(const struct rm *rm, struct span key, struct error *err)
{
	struct remote_object_facts facts;
	char *const target = remote_object_target(rm->bucket, key);
	int result = remote_object_head(rm->remote, target, &facts, err) == 0 ? 1 : -1;
	free(target);
	if (result < 0 && err->kind == ERROR_DENIED)
		result = is_listed(rm, key, err);
	if (result < 0 && err->kind == ERROR_DENIED)
		return 1;
	return result < 0 && err->kind == ERROR_NO_KEY ? 0 : result;
}

/* Looks for the key in a listing: it comes first among the keys that begin with it. */
static int is_listed(const struct rm *rm, struct span key, struct error *err)
{
	struct listing page = {0};
	struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
	int result = list_page(rm, key, (struct span){0}, arena, &page, err);
	if (result == 0)
		result = page.count > 0 && span_equal(page.entries[0].name, key);
	arena_free(arena);
	return result;
}

static int list_page(const struct rm *rm, struct span prefix, struct span token,
	struct arena *arena, struct listing *out, struct error *err)
{
	const struct remote_object_page wanted = {
		.bucket = rm->bucket, .prefix = prefix, .token = token};
	return remote_object_list(rm->remote, &wanted, arena, out, err);
}

static int remove_keys(struct rm *rm, const struct span *keys, size_t count, struct error *err)
{
	const struct removal removal = {
		.remote = rm->remote,
		.bucket = rm->bucket,
		.is_dry = rm->session->options->dry_run,
		.removed = command_rm_removed,
		.refused = command_rm_refused,
		.owner = rm,
	};
	rm->keys = keys;
	rm->key_count = count;
	return removal_run(&removal, keys, count, err);
}

static void command_rm_removed(void *owner, size_t number)
{
	struct rm *const rm = owner;
	ASSERT(number < rm->key_count);
	const struct span key = rm->keys[number];
	const bool dry = rm->session->options->dry_run;
	struct output *const output = &rm->session->output;
	struct output_line line;
	rm->found++;
	output_line_begin(&line, output, dry ? "would_remove" : "removed");
	json_writer_text(&line.writer, "bucket", rm->bucket);
	json_writer_text(&line.writer, "key", key);
	output_line_end(&line);
	output_fn *const tell = dry ? output_result : output_say;
	tell(output, "%s %.*s/%.*s", dry ? "would remove" : "removed", (int)rm->bucket.len,
		(const char *)rm->bucket.data, (int)key.len, (const char *)key.data);
}

static void command_rm_refused(void *owner, size_t number, const struct error *why)
{
	struct rm *const rm = owner;
	ASSERT(number < rm->key_count);
	const struct span key = rm->keys[number];
	struct output_line line;
	rm->found++;
	if (rm->refused++ == 0)
		rm->refusal = *why;
	output_line_begin(&line, &rm->session->output, "refused");
	json_writer_text(&line.writer, "bucket", rm->bucket);
	json_writer_text(&line.writer, "key", key);
	json_writer_text(&line.writer, "code", span_text(error_kind_name(why->kind)));
	json_writer_text(&line.writer, "message", span_text(why->text));
	output_line_end(&line);
	if (rm->session->options->recursive)
		output_failure(&rm->session->output, "%s %.*s/%.*s: %s",
			rm->session->options->dry_run ? "would keep" : "kept", (int)rm->bucket.len,
			(const char *)rm->bucket.data, (int)key.len, (const char *)key.data,
			why->text);
}

static int remove_below(struct rm *rm, struct span prefix, struct error *err)
{
	struct buffer token;
	bool more = true;
	int result = 0;
	buffer_init(&token, REMOTE_LIST_TOKEN_MAX_BYTES);
	while (result == 0 && more) {
		struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
		struct listing page = {0};
		result = list_page(rm, prefix, buffer_span(&token), arena, &page, err);
		if (result == 0)
			result = remove_page(rm, &page, err);
		more = page.truncated && page.next.len > 0 &&
			!span_equal(page.next, buffer_span(&token));
		buffer_reset(&token);
		buffer_add_span(&token, page.next);
		arena_free(arena);
	}
	buffer_release(&token);
	return result;
}

static int remove_page(struct rm *rm, const struct listing *page, struct error *err)
{
	struct span *const keys = memory_new_array(page->count + 1, sizeof(*keys));
	for (size_t i = 0; i < page->count; i++)
		keys[i] = page->entries[i].name;
	const int result = remove_keys(rm, keys, page->count, err);
	free(keys);
	return result;
}

/* Fails when nothing was found for the argument, or when an object of it was refused. */
static int judge(const struct rm *rm, const char *text, struct error *err)
{
	const bool recursive = rm->session->options->recursive;
	if (rm->found == 0)
		return error_set(err, ERROR_NO_KEY,
			recursive ? "there is nothing at %s" : "there is no object %s", text);
	if (rm->refused == 0)
		return 0;
	*err = rm->refusal;
	return recursive
		? error_wrap(err,
			  "removing %s: %" PRIu64 " of %" PRIu64 " objects %s, the first because",
			  text, rm->refused, rm->found,
			  rm->session->options->dry_run ? "would stay" : "stay")
		: error_wrap(err, "removing %s", text);
}
