/* The order of operations makes a kill harmless. A new step first gets its folder (move_new), then
 * its name in state.json (publish_state_save), and only then clean removes the folders that
 * state.json does not name. A folder without state.json is used only if everything in it has a name
 * that a publisher makes, because the folder may have been given by mistake: nothing else is ever
 * removed. */
#include "client/publish/publish_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"

enum { STATE_MAX_BYTES = 64 * 1024, SENT_MAX_BYTES = 16 * 1024 * 1024, STATE_VERSION = 1 };

static const char STATE_FILE[] = "state.json";
static const char STEP[] = "step-";
static const char PROVEN[] = "proven";
static const char NEW_DELTA[] = "new-delta";

static int write_state(const struct publish_state *state, struct error *err);
static bool has_valid_base(const struct publish_state *state);
static void print_state(const struct publish_state *state, struct buffer *out);
static void print_mark(
	struct json_writer *writer, const char *name, bool has, const struct publish_mark *mark);
static void print_digest(
	struct json_writer *writer, const char *name, const struct digest128 *digest);
static int clean(const struct publish_state *state, struct error *err);
static bool is_kept(const struct publish_state *state, const char *name);
static int open_folder(
	struct publish_state *state, const struct publish_state_params *params, struct error *err);
static int remove_new_delta(const struct publish_state *state, struct error *err);
static int load_or_begin(struct publish_state *state, bool may_replace, struct error *err);
static int begin(struct publish_state *state, bool may_replace, struct error *err);
static int check_names(const struct publish_state *state, char *const *names, size_t count,
	bool may_replace, struct error *err);
static bool is_ours(const char *name);
static int load(struct publish_state *state, struct error *err);
static int check_owner(const struct publish_state *state, const struct json_node *root,
	const char *path, struct error *err);
static bool read_members(struct publish_state *state, const struct json_node *root);
static bool read_optional_mark(
	const struct json_node *node, bool *out_has, struct publish_mark *out);
static bool read_mark(const struct json_node *node, struct publish_mark *out);
static bool read_base(struct publish_state *state, const struct json_node *root);
static void forget_all(struct publish_state *state);
static bool has_in_step(const struct publish_state *state, uint64_t step, const char *name);
static int remove_in_step(
	const struct publish_state *state, uint64_t step, const char *name, struct error *err);
static int move_new(const struct publish_state *state, uint64_t step, struct error *err);
static int append_line(
	const struct publish_state *state, const char *path, struct span line, struct error *err);

char *publish_state_default_folder(const char *endpoint, const char *run, struct error *err)
{
	const char *const state_home = getenv("XDG_STATE_HOME");
	const char *const home = getenv("HOME");
	const bool has_state_home = state_home != NULL && state_home[0] == '/';
	if (!has_state_home && (home == NULL || home[0] != '/')) {
		error_set(err, ERROR_INVALID,
			"there is no home folder to keep the state in: give --state DIR");
		return NULL;
	}
	struct buffer path;
	buffer_init(&path, 8192);
	buffer_format(&path, "%s%s/deltabucket/", has_state_home ? state_home : home,
		has_state_home ? "" : "/.local/state");
	encode_percent(span_text(endpoint), false, &path);
	buffer_add_byte(&path, '/');
	buffer_add_text(&path, run);
	char *folder = NULL;
	if (buffer_check(&path, "the state folder's path", err) == 0)
		folder = memory_copy_text(buffer_text(&path));
	buffer_release(&path);
	return folder;
}

char *publish_state_work_path(const struct publish_state *state, const char *name)
{
	return folder_files_join(state->folder, name);
}

char *publish_state_path(const struct publish_state *state, uint64_t step, const char *name)
{
	char relative[128];
	const int length = snprintf(relative, sizeof(relative), "step-%06" PRIu64 "%s%s", step,
		name[0] != '\0' ? "/" : "", name);
	ASSERT(length > 0 && (size_t)length < sizeof(relative));
	return folder_files_join(state->folder, relative);
}

int publish_state_save(struct publish_state *state, struct error *err)
{
	return write_state(state, err) == 0 ? clean(state, err) : -1;
}

int publish_state_lock(
	const struct file_ops *files, const char *folder, int held, struct error *err)
{
	if (file_make_folder(files, folder, 0700, err) != 0)
		return -1;
	return folder_lock_keep(held, folder, "deltabucket publish", err);
}

int publish_state_open(
	struct publish_state *state, const struct publish_state_params *params, struct error *err)
{
	ASSERT(params->files != NULL && params->folder != NULL);
	ASSERT(params->endpoint != NULL && params->run != NULL);
	*state = (struct publish_state){
		.files = params->files,
		.folder = memory_copy_text(params->folder),
		.lock_fd = -1,
		.endpoint = memory_copy_text(params->endpoint),
		.run = memory_copy_text(params->run),
	};
	if (open_folder(state, params, err) == 0)
		return 0;
	publish_state_close(state);
	return -1;
}

void publish_state_close(struct publish_state *state)
{
	if (state->folder == NULL)
		return;
	folder_lock_leave(state->lock_fd);
	free(state->folder);
	free(state->endpoint);
	free(state->run);
	*state = (struct publish_state){.lock_fd = -1};
}

char *publish_state_new_path(const struct publish_state *state)
{
	return publish_state_work_path(state, "new");
}

int publish_state_commit(struct publish_state *state, bool with_anchor, struct error *err)
{
	ASSERT(state->has_pending);
	const uint64_t step = state->pending.step;
	const bool has_copy = has_in_step(state, step, "checkpoint");
	state->committed = state->pending;
	state->has_committed = true;
	state->has_pending = false;
	if (has_copy)
		state->base = state->committed;
	state->has_base = has_copy ||
		(state->has_base && state->base.step < step && has_in_step(state, step, "delta"));
	if (with_anchor) {
		state->has_anchor = true;
		state->anchor_step = step;
	}
	if (publish_state_save(state, err) != 0 || remove_in_step(state, step, "sent", err) != 0 ||
		remove_in_step(state, step, PROVEN, err) != 0)
		return -1;
	return has_copy ? remove_in_step(state, step, "delta", err) : 0;
}

int publish_state_set_base(struct publish_state *state, struct error *err)
{
	ASSERT(state->has_committed);
	if (move_new(state, state->committed.step, err) != 0)
		return -1;
	state->base = state->committed;
	state->has_base = true;
	return publish_state_save(state, err) != 0
		? -1
		: remove_in_step(state, state->committed.step, "delta", err);
}

/* The folders of the base and of the deltas behind it stay until the next save: until then the copy
 * lies in one of them. */
int publish_state_take_base(struct publish_state *state, struct error *err)
{
	const bool had_base = state->has_base;
	char *const fresh = publish_state_new_path(state);
	char *const copy = publish_state_path(state, state->base.step, "checkpoint");
	state->has_base = false;
	int result = write_state(state, err);
	if (result == 0)
		result = file_remove_tree(state->files, fresh, err);
	if (result == 0 && had_base && state->files->rename(state->files, copy, fresh) != 0)
		result = error_set_errno(err, "renaming %s to %s", copy, fresh);
	free(copy);
	free(fresh);
	return result;
}

int publish_state_adopt(
	struct publish_state *state, const struct publish_mark *mark, struct error *err)
{
	state->committed = *mark;
	state->has_committed = true;
	state->base = *mark;
	state->has_base = true;
	return publish_state_save(state, err);
}

void publish_state_forget(struct publish_state *state)
{
	state->has_committed = false;
	state->has_base = false;
}

int publish_state_set_pending(
	struct publish_state *state, const struct publish_mark *mark, struct error *err)
{
	const bool resumes = state->has_pending && state->pending.step == mark->step &&
		digest128_equal(&state->pending.content, &mark->content);
	if (!resumes && publish_state_drop_pending(state, err) != 0)
		return -1;
	if (move_new(state, mark->step, err) != 0)
		return -1;
	if (resumes)
		return 0;
	state->pending = *mark;
	state->has_pending = true;
	return publish_state_save(state, err);
}

int publish_state_drop_pending(struct publish_state *state, struct error *err)
{
	state->has_pending = false;
	return publish_state_save(state, err);
}

bool publish_state_is_proven(const struct publish_state *state)
{
	ASSERT(state->has_pending);
	return has_in_step(state, state->pending.step, PROVEN);
}

int publish_state_set_proven(const struct publish_state *state, bool is_proven, struct error *err)
{
	ASSERT(state->has_pending);
	if (!is_proven)
		return remove_in_step(state, state->pending.step, PROVEN, err);
	char *const path = publish_state_path(state, state->pending.step, PROVEN);
	const int result = file_place(state->files, path, (struct span){0}, 0600, err);
	free(path);
	return result;
}

char *publish_state_new_delta_path(const struct publish_state *state)
{
	char *const folder = publish_state_work_path(state, NEW_DELTA);
	char *const path = folder_files_join(folder, "delta");
	free(folder);
	return path;
}

int publish_state_clear_new_delta(const struct publish_state *state, struct error *err)
{
	char *const folder = publish_state_work_path(state, NEW_DELTA);
	int result = file_remove_tree(state->files, folder, err);
	if (result == 0)
		result = file_make_folder(state->files, folder, 0700, err);
	free(folder);
	return result;
}

int publish_state_take_delta(const struct publish_state *state, struct error *err)
{
	ASSERT(state->has_pending);
	char *const fresh = publish_state_new_delta_path(state);
	char *const delta = publish_state_path(state, state->pending.step, "delta");
	int result = publish_state_set_proven(state, false, err);
	if (result == 0)
		result = file_remove_tree(state->files, delta, err);
	if (result == 0 && state->files->rename(state->files, fresh, delta) != 0)
		result = error_set_errno(err, "renaming %s to %s", fresh, delta);
	free(delta);
	free(fresh);
	return result == 0 ? publish_state_set_proven(state, true, err) : -1;
}

int publish_state_add_sent(const struct publish_state *state, const char *target, struct error *err)
{
	ASSERT(state->has_pending);
	char *const path = publish_state_path(state, state->pending.step, "sent");
	struct buffer line;
	buffer_init(&line, SENT_MAX_BYTES);
	buffer_format(&line, "%s\n", target);
	const int result = append_line(state, path, buffer_span(&line), err);
	buffer_release(&line);
	free(path);
	return result;
}

int publish_state_read_sent(
	const struct publish_state *state, struct buffer *out, struct error *err)
{
	buffer_init(out, SENT_MAX_BYTES);
	char *const path = publish_state_path(state, state->pending.step, "sent");
	const int result = file_exists(path) ? file_read_all(path, out, err) : 0;
	free(path);
	return result;
}

int publish_state_clear_sent(const struct publish_state *state, struct error *err)
{
	ASSERT(state->has_pending);
	char *const path = publish_state_path(state, state->pending.step, "sent");
	const int result = file_remove_tree(state->files, path, err);
	free(path);
	return result;
}

static int write_state(const struct publish_state *state, struct error *err)
{
	ASSERT(has_valid_base(state));
	char *const path = publish_state_work_path(state, STATE_FILE);
	struct buffer text;
	buffer_init(&text, STATE_MAX_BYTES);
	print_state(state, &text);
	int result = buffer_check(&text, path, err);
	if (result == 0)
		result = file_publish(state->files, path, buffer_span(&text), 0600, err);
	buffer_release(&text);
	free(path);
	return result;
}

/* The base is the committed step or an earlier one. */
static bool has_valid_base(const struct publish_state *state)
{
	return !state->has_base ||
		(state->has_committed && state->base.step <= state->committed.step);
}

static void print_state(const struct publish_state *state, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "version", STATE_VERSION);
	json_writer_text(&writer, "endpoint", span_text(state->endpoint));
	json_writer_text(&writer, "run", span_text(state->run));
	if (state->has_epoch)
		json_writer_u64(&writer, "epoch", state->epoch);
	print_mark(&writer, "committed", state->has_committed, &state->committed);
	print_mark(&writer, "base", state->has_base, &state->base);
	print_mark(&writer, "pending", state->has_pending, &state->pending);
	if (state->has_anchor)
		json_writer_u64(&writer, "anchor_step", state->anchor_step);
	json_writer_end(&writer, '}');
	buffer_add_byte(out, '\n');
}

static void print_mark(
	struct json_writer *writer, const char *name, bool has, const struct publish_mark *mark)
{
	if (!has) {
		json_writer_null(writer, name);
		return;
	}
	json_writer_object(writer, name);
	json_writer_u64(writer, "step", mark->step);
	print_digest(writer, "digest", &mark->digest);
	print_digest(writer, "content", &mark->content);
	json_writer_end(writer, '}');
}

static void print_digest(
	struct json_writer *writer, const char *name, const struct digest128 *digest)
{
	char text[DIGEST128_TEXT_BYTES];
	digest128_format(digest, text);
	json_writer_text(writer, name, span_text(text));
}

/* Removes only names of ours: the folder may have been given by mistake. */
static int clean(const struct publish_state *state, struct error *err)
{
	char **names;
	size_t count;
	if (file_list(state->folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		if (strncmp(names[i], STEP, strlen(STEP)) != 0 || is_kept(state, names[i]))
			continue;
		char *const path = publish_state_work_path(state, names[i]);
		result = file_remove_tree(state->files, path, err);
		free(path);
	}
	file_names_free(names, count);
	return result;
}

static bool is_kept(const struct publish_state *state, const char *name)
{
	uint64_t step;
	ASSERT(strncmp(name, STEP, strlen(STEP)) == 0);
	if (!span_parse_u64(span_text(name + strlen(STEP)), &step))
		return false;
	const uint64_t first = state->has_base ? state->base.step : state->committed.step;
	return (state->has_pending && step == state->pending.step) ||
		(state->has_committed && step >= first && step <= state->committed.step);
}

static int open_folder(
	struct publish_state *state, const struct publish_state_params *params, struct error *err)
{
	const int held = params->held_lock != NULL ? *params->held_lock : -1;
	const int lock = publish_state_lock(state->files, state->folder, held, err);
	state->lock_fd = lock == held ? -1 : lock; /* what the caller holds, the caller leaves */
	if (lock < 0 ||
		folder_files_remove_temporary(state->files, state->folder, STATE_FILE, err) != 0 ||
		load_or_begin(state, params->may_replace, err) != 0 ||
		remove_new_delta(state, err) != 0)
		return -1;
	return clean(state, err);
}

static int remove_new_delta(const struct publish_state *state, struct error *err)
{
	char *const folder = publish_state_work_path(state, NEW_DELTA);
	const int result = file_remove_tree(state->files, folder, err);
	free(folder);
	return result;
}

static int load_or_begin(struct publish_state *state, bool may_replace, struct error *err)
{
	char *const path = publish_state_work_path(state, STATE_FILE);
	const bool is_new = !file_exists(path);
	struct error damage = {0};
	free(path);
	if (is_new)
		return begin(state, may_replace, err);
	const int loaded = load(state, &damage);
	if (loaded == 1 && may_replace) {
		forget_all(state);
		return begin(state, may_replace, err);
	}
	if (loaded == 1)
		return error_set(err, ERROR_CORRUPT,
			"the state of deltabucket publish is damaged: %s; --take-over makes a new "
			"state from where the run is",
			damage.text);
	if (loaded < 0)
		*err = damage;
	return loaded;
}

/* Writes state.json, which marks the folder as ours, before anything else is put there. A folder
 * that holds other things is refused. */
static int begin(struct publish_state *state, bool may_replace, struct error *err)
{
	char **names;
	size_t count;
	if (file_list(state->folder, &names, &count, err) != 0)
		return -1;
	const int result = check_names(state, names, count, may_replace, err);
	file_names_free(names, count);
	return result == 0 ? publish_state_save(state, err) : -1;
}

static int check_names(const struct publish_state *state, char *const *names, size_t count,
	bool may_replace, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (!is_ours(names[i]))
			return error_set(err, ERROR_EXISTS,
				"%s holds other files (%s) and no state of deltabucket publish; "
				"give another --state folder",
				state->folder, names[i]);
	if (count == 0 || may_replace)
		return 0;
	return error_set(err, ERROR_EXISTS,
		"%s holds remains of a state of deltabucket publish (%s), but no %s; --take-over "
		"makes a new state from where the run is",
		state->folder, names[0], STATE_FILE);
}

/* Whether a publisher makes files or folders of this name. */
static bool is_ours(const char *name)
{
	static const char *const names[] = {STATE_FILE, "incoming", "new", NEW_DELTA};
	uint64_t step;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, STEP, strlen(STEP)) == 0 &&
		span_parse_u64(span_text(name + strlen(STEP)), &step);
}

/* 1 when state.json is damaged; *err says how. */
static int load(struct publish_state *state, struct error *err)
{
	char *const path = publish_state_work_path(state, STATE_FILE);
	struct json_node *root = NULL;
	struct buffer text;
	buffer_init(&text, STATE_MAX_BYTES);
	int result = file_read_all(path, &text, err);
	if (result != 0)
		goto out;
	root = json_node_parse(buffer_span(&text), path, err);
	result = root == NULL ? 1 : check_owner(state, root, path, err);
	if (result == 0 && !read_members(state, root)) {
		error_set(err, ERROR_CORRUPT, "%s lacks members, or has malformed ones", path);
		result = 1;
	}
out:
	json_node_free(root);
	buffer_release(&text);
	free(path);
	return result;
}

static int check_owner(const struct publish_state *state, const struct json_node *root,
	const char *path, struct error *err)
{
	uint64_t version;
	struct span endpoint;
	struct span run;
	if (!json_node_u64(json_node_member(root, "version"), &version) ||
		!json_node_text(json_node_member(root, "endpoint"), &endpoint) ||
		!json_node_text(json_node_member(root, "run"), &run))
		return error_set(
			err, ERROR_CORRUPT, "%s is not a state file of deltabucket publish", path);
	if (version != STATE_VERSION)
		return error_set(err, ERROR_UNSUPPORTED,
			"%s has version %" PRIu64 "; this program reads %d", path, version,
			STATE_VERSION);
	if (!span_equal_text(endpoint, state->endpoint) || !span_equal_text(run, state->run))
		return error_set(err, ERROR_EXISTS,
			"%s holds the state of run %.*s at %.*s; give another --state folder",
			state->folder, (int)run.len, (const char *)run.data, (int)endpoint.len,
			(const char *)endpoint.data);
	return 0;
}

static bool read_members(struct publish_state *state, const struct json_node *root)
{
	const struct json_node *const epoch = json_node_member(root, "epoch");
	state->has_epoch = epoch != NULL && !json_node_is_null(epoch);
	state->has_anchor =
		json_node_u64(json_node_member(root, "anchor_step"), &state->anchor_step);
	return (!state->has_epoch || json_node_u64(epoch, &state->epoch)) &&
		read_optional_mark(json_node_member(root, "committed"), &state->has_committed,
			&state->committed) &&
		read_base(state, root) &&
		read_optional_mark(
			json_node_member(root, "pending"), &state->has_pending, &state->pending) &&
		has_valid_base(state);
}

static bool read_optional_mark(
	const struct json_node *node, bool *out_has, struct publish_mark *out)
{
	*out_has = node != NULL && !json_node_is_null(node);
	return !*out_has || read_mark(node, out);
}

static bool read_mark(const struct json_node *node, struct publish_mark *out)
{
	struct span digest;
	struct span content;
	return json_node_u64(json_node_member(node, "step"), &out->step) &&
		json_node_text(json_node_member(node, "digest"), &digest) &&
		json_node_text(json_node_member(node, "content"), &content) &&
		digest128_parse(digest, &out->digest) && digest128_parse(content, &out->content);
}

/* Versions before 0.2.0 wrote no base: they kept a copy of each committed step. */
static bool read_base(struct publish_state *state, const struct json_node *root)
{
	const struct json_node *const base = json_node_member(root, "base");
	if (base != NULL)
		return read_optional_mark(base, &state->has_base, &state->base);
	state->has_base = state->has_committed;
	state->base = state->committed;
	return true;
}

static void forget_all(struct publish_state *state)
{
	publish_state_forget(state);
	state->has_epoch = false;
	state->has_pending = false;
	state->has_anchor = false;
}

static bool has_in_step(const struct publish_state *state, uint64_t step, const char *name)
{
	char *const path = publish_state_path(state, step, name);
	const bool found = file_exists(path);
	free(path);
	return found;
}

static int remove_in_step(
	const struct publish_state *state, uint64_t step, const char *name, struct error *err)
{
	char *const path = publish_state_path(state, step, name);
	const int result = file_remove_tree(state->files, path, err);
	free(path);
	return result;
}

/* Moves the copy at publish_state_new_path, if there is one, into the step's folder. Any copy that
 * is there already is removed. */
static int move_new(const struct publish_state *state, uint64_t step, struct error *err)
{
	char *const fresh = publish_state_new_path(state);
	char *const folder = publish_state_path(state, step, "");
	char *const checkpoint = publish_state_path(state, step, "checkpoint");
	int result = file_make_folder(state->files, folder, 0700, err);
	if (result == 0)
		result = file_remove_tree(state->files, checkpoint, err);
	if (result == 0 && file_exists(fresh) &&
		state->files->rename(state->files, fresh, checkpoint) != 0)
		result = error_set_errno(err, "renaming %s to %s", fresh, checkpoint);
	free(checkpoint);
	free(folder);
	free(fresh);
	return result;
}

static int append_line(
	const struct publish_state *state, const char *path, struct span line, struct error *err)
{
	uint64_t length = 0;
	int result = file_exists(path) ? file_size(path, &length, err) : 0;
	if (result != 0)
		return -1;
	const int fd = state->files->open(state->files, path, O_WRONLY | O_CREAT, 0600);
	if (fd < 0)
		return error_set_errno(err, "opening %s", path);
	result = file_write_at(state->files, fd, line, (off_t)length, path, err);
	close(fd);
	return result;
}
