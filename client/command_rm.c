#include "client/commands.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/remote_hub.h"
#include "client/remote_object.h"

enum { PAGE_ARENA_BYTES = 32 * 1024 * 1024, PREFIX_MAX_BYTES = 1025, TOKEN_MAX_BYTES = 16 * 1024 };

struct rm {
	struct session *session;
	struct remote *remote;
	struct span bucket;
	uint64_t removed;      /* or that would be */
	struct error missing;  /* the first argument that names nothing */
};

static void say(struct rm *const rm, const struct span key)
{
	const bool dry = rm->session->options->dry_run;
	struct output *const output = &rm->session->output;
	struct output_line line;
	rm->removed++;
	output_line_begin(&line, output, dry ? "would_remove" : "removed");
	json_writer_text(&line.writer, "bucket", rm->bucket);
	json_writer_text(&line.writer, "key", key);
	output_line_end(&line);
	output_say(output, "%s %.*s/%.*s", dry ? "would remove" : "removed", (int)rm->bucket.len, (const char *)rm->bucket.data, (int)key.len,
		(const char *)key.data);
}

/* 1: it is there; 0: not. A token that may not read finds out by deleting. */
static int is_there(struct rm *const rm, const char *const target, struct error *const err)
{
	struct remote_object_facts facts;
	if (remote_object_head(rm->remote, target, &facts, err) == 0 || err->kind == ERROR_DENIED)
		return 1;
	return err->kind == ERROR_NO_KEY ? 0 : -1;
}

/* 1: removed, 0: there was nothing. */
static int remove_key(struct rm *const rm, const struct span key, struct error *const err)
{
	char *const target = remote_object_target(rm->bucket, key);
	int result = is_there(rm, target, err);
	if (result > 0 && !rm->session->options->dry_run)
		result = remote_object_delete(rm->remote, target, err) == 0 ? 1 : -1;
	free(target);
	if (result > 0)
		say(rm, key);
	return result;
}

static int remove_plain(struct rm *const rm, const struct span key, struct error *const err)
{
	char *const target = remote_object_target(rm->bucket, key);
	const int result = remote_object_delete(rm->remote, target, err);
	free(target);
	if (result == 0)
		say(rm, key);
	return result;
}

/* What the Hub half takes goes in one request; what it did not do is tried alone, where a failure says why. */
static int remove_together(struct rm *const rm, struct hub_change *const changes, const size_t count, struct error *const err)
{
	struct error failure = {0};
	if (count == 0)
		return 0;
	const bool sent = remote_hub_change(rm->remote, rm->bucket, changes, count, &failure, err) == 0;
	if (!sent && !session_wants_plain(err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (sent && !changes[i].failed)
			say(rm, changes[i].key);
		else if (remove_plain(rm, changes[i].key, err) != 0)
			return -1;
	}
	return 0;
}

static int remove_page(struct rm *const rm, const struct listing *const page, struct error *const err)
{
	struct hub_change *const changes = memory_new_array(page->count + 1, sizeof *changes);
	size_t count = 0;
	int result = 0;
	for (size_t i = 0; i < page->count && result == 0; i++) {
		const struct span key = page->entries[i].name;
		if (rm->session->options->dry_run)
			say(rm, key);
		else if (remote_hub_takes(key) && count < REMOTE_HUB_LINES_MAX)
			changes[count++] = (struct hub_change){.key = key, .is_delete = true};
		else
			result = remove_plain(rm, key, err);
	}
	if (result == 0)
		result = remove_together(rm, changes, count, err);
	free(changes);
	return result;
}

static int remove_below(struct rm *const rm, const struct span prefix, struct error *const err)
{
	struct buffer token;
	bool more = true;
	int result = 0;
	buffer_init(&token, TOKEN_MAX_BYTES);
	while (result == 0 && more) {
		const struct remote_object_page wanted = {.bucket = rm->bucket, .prefix = prefix, .token = buffer_span(&token)};
		struct arena *const arena = arena_new(PAGE_ARENA_BYTES);
		struct listing page = {0};
		result = remote_object_list(rm->remote, &wanted, arena, &page, err);
		if (result == 0)
			result = remove_page(rm, &page, err);
		more = page.truncated && page.next.len > 0 && !span_equal(page.next, buffer_span(&token));
		buffer_reset(&token);
		buffer_add_span(&token, page.next);
		arena_free(arena);
	}
	buffer_release(&token);
	return result;
}

/* PREFIX is a folder, never the beginning of other names; an object of its name goes too. */
static int remove_tree(struct rm *const rm, const struct span key, struct error *const err)
{
	struct buffer prefix;
	const uint64_t before = rm->removed;
	const bool is_folder = key.len == 0 || key.data[key.len - 1] == '/';
	int result = 0;
	buffer_init(&prefix, PREFIX_MAX_BYTES);
	buffer_add_span(&prefix, key);
	if (!is_folder) {
		result = remove_key(rm, key, err);
		buffer_add_byte(&prefix, '/');
	}
	if (result >= 0)
		result = remove_below(rm, buffer_span(&prefix), err);
	buffer_release(&prefix);
	return result < 0 ? -1 : rm->removed > before;
}

static int check_name(struct rm *const rm, const char *const text, struct object_name *const name, struct error *const err)
{
	const bool recursive = rm->session->options->recursive;
	if (session_object_name(rm->session, text, name, err) != 0)
		return -1;
	if (name->key.len == 0 && !recursive)
		return session_usage(rm->session, err, "say which object: BUCKET/KEY");
	if (name->key.len == 0 && text[strlen(text) - 1] != '/')
		return session_usage(rm->session, err, "say which prefix: BUCKET/PREFIX. `deltabucket rm -r %s/` removes all objects of the "
			"bucket, `deltabucket rb --force %s` the bucket too", text, text);
	return 0;
}

static int remove_argument(struct rm *const rm, const char *const text, struct error *const err)
{
	struct object_name name;
	struct error failure = {0};
	if (check_name(rm, text, &name, err) != 0)
		return -1;
	rm->bucket = name.bucket;
	const int result = rm->session->options->recursive ? remove_tree(rm, name.key, &failure) : remove_key(rm, name.key, &failure);
	if (result < 0) {
		*err = failure;
		return error_wrap(err, "removing %s", text);
	}
	if (result > 0)
		return 0;
	if (rm->missing.kind != ERROR_NONE)
		output_note(&rm->session->output, "there is nothing at %s", text);
	else
		error_set(&rm->missing, ERROR_NO_KEY, rm->session->options->recursive ? "there is nothing at %s" : "there is no object %s", text);
	return 0;
}

/* All arguments are gone through; one that names nothing makes it a failure in the end. */
int command_rm(struct session *const session, struct error *const err)
{
	struct rm rm = {.session = session, .remote = session_connect(session, err)};
	int result = rm.remote == NULL ? -1 : 0;
	for (size_t i = 0; i < session->options->argument_count && result == 0; i++)
		result = remove_argument(&rm, session->options->arguments[i], err);
	remote_free(rm.remote);
	if (result != 0 || rm.missing.kind == ERROR_NONE)
		return result;
	*err = rm.missing;
	return -1;
}
