/* A swap writes the sidecar of the new generation, then renames a new link over `current`, then
 * saves the state. So a kill in between leaves either the old or the new checkpoint current, and
 * opening reads the current generation from the link, not from the state. Removing goes the other
 * way: the sidecars first, durably, then the folders. A folder without a sidecar is therefore
 * always a leftover, and opening removes it. */
#include "client/follow/follow_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/follow/follow_leftovers.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"

enum { STATE_MAX_BYTES = 64 * 1024, SIDECAR_MAX_BYTES = STEP_MESSAGE_MAX_BYTES, STATE_VERSION = 1 };

static const char STATE_FILE[] = ".deltabucket";
static const char GENERATIONS[] = "generations";
static const char CURRENT[] = "current";
static const char CURRENT_NEW[] = "current.new";
static const char SIDECAR_END[] = ".json";

static int load(struct follow_folder *folder, struct error *err);
static char *path_of(const struct follow_folder *folder, const char *name);
static struct json_node *read_json(const char *path, bool *out_absent, struct error *err);
static int begin(struct follow_folder *folder, struct error *err);
static int save(const struct follow_folder *folder, struct error *err);
static void print_generation(
	struct json_writer *writer, const struct follow_generation *generation);
static void print_executed(struct json_writer *writer, const struct follow_folder *folder);
static int write_json(const struct follow_folder *folder, const char *path,
	const struct buffer *text, struct error *err);
static int check_state(
	struct follow_folder *folder, const struct json_node *root, struct error *err);
static char *copy_span(struct span text);
static void find_current(struct follow_folder *folder);
static bool generation_read(
	const struct follow_folder *folder, const char *name, struct follow_generation *out);
static bool is_same(const struct follow_folder *folder, const struct follow_generation *generation,
	const struct follow_swap *wanted);
static char *sidecar_path(const struct follow_folder *folder, const char *name);
static void read_part(const struct json_node *root, struct follow_generation *out);
static int remove_leftovers(const struct follow_folder *folder, struct error *err);
static bool remove_empty(const struct follow_folder *folder, const char *name);
static uint64_t next_order(const struct follow_folder *folder);
static int write_sidecar(const struct follow_folder *folder,
	const struct follow_generation *generation, struct error *err);
static int swap_link(const struct follow_folder *folder, const char *name, struct error *err);
static int follow_folder_newest_first(const void *left, const void *right);
static int remove_generations(const struct follow_folder *folder,
	const struct follow_generation *old, size_t count, struct error *err);

int follow_folder_open(struct follow_folder *folder, const struct file_ops *files, const char *path,
	const char *endpoint, const char *run, struct error *err)
{
	ASSERT(files != NULL && path != NULL && endpoint != NULL && run != NULL);
	*folder = (struct follow_folder){
		.files = files,
		.path = memory_copy_text(path),
		.lock_fd = -1,
		.endpoint = memory_copy_text(endpoint),
		.run = memory_copy_text(run),
	};
	folder->is_made = !file_exists(path);
	if (file_make_folder(files, path, 0755, err) != 0)
		goto fail;
	folder->lock_fd = folder_lock_enter(path, "deltabucket follow", err);
	if (folder->lock_fd < 0 ||
		folder_files_remove_temporary(files, path, STATE_FILE, err) != 0 ||
		load(folder, err) != 0)
		goto fail;
	find_current(folder);
	if (remove_leftovers(folder, err) != 0)
		goto fail;
	return 0;
fail:
	follow_folder_close(folder);
	return -1;
}

void follow_folder_abandon(const struct follow_folder *folder)
{
	if (folder->path == NULL || !folder->is_begun || !remove_empty(folder, "incoming") ||
		!remove_empty(folder, GENERATIONS))
		return;
	char *const state = path_of(folder, STATE_FILE);
	folder->files->unlink(folder->files, state);
	free(state);
	if (folder->is_made)
		folder->files->rmdir(folder->files, folder->path);
}

void follow_folder_close(struct follow_folder *folder)
{
	if (folder->path == NULL)
		return;
	folder_lock_leave(folder->lock_fd);
	follow_generation_release(&folder->current);
	free(folder->executed);
	free(folder->path);
	free(folder->endpoint);
	free(folder->run);
	*folder = (struct follow_folder){.lock_fd = -1};
}

bool follow_folder_is_there(const struct follow_folder *folder)
{
	struct stat held;
	struct stat found;
	ASSERT(folder->path != NULL);
	char *const generations = path_of(folder, GENERATIONS);
	const bool is = fstat(folder->lock_fd, &held) == 0 && stat(folder->path, &found) == 0 &&
		held.st_dev == found.st_dev && held.st_ino == found.st_ino &&
		file_exists(generations);
	free(generations);
	return is;
}

bool follow_folder_find(const struct follow_folder *folder, const struct follow_swap *wanted,
	struct follow_generation *out)
{
	char *const generations = path_of(folder, GENERATIONS);
	char **names = NULL;
	size_t count = 0;
	struct error ignored = {0};
	bool found = false;
	if (file_list(generations, &names, &count, &ignored) != 0)
		count = 0;
	for (size_t i = 0; i < count && !found; i++) {
		if (!generation_read(folder, names[i], out))
			continue;
		found = is_same(folder, out, wanted);
		if (!found)
			follow_generation_release(out);
	}
	file_names_free(names, count);
	free(generations);
	return found;
}

void follow_generation_release(struct follow_generation *generation)
{
	free(generation->name);
	free(generation->label);
	free(generation->tensors);
	proven_files_release(&generation->files);
	*generation = (struct follow_generation){0};
}

char *follow_folder_path(const struct follow_folder *folder, const char *name)
{
	char *const generations = path_of(folder, GENERATIONS);
	char *const path = folder_files_join(generations, name);
	free(generations);
	return path;
}

char *follow_folder_current(const struct follow_folder *folder)
{
	ASSERT(folder->has_current);
	return follow_folder_path(folder, folder->current.name);
}

char *follow_folder_incoming(const struct follow_folder *folder)
{
	return path_of(folder, "incoming");
}

void follow_folder_next(
	const struct follow_folder *folder, uint64_t step, char **out_name, char **out_path)
{
	for (unsigned again = 1;; again++) {
		char name[64];
		if (again == 1)
			snprintf(name, sizeof(name), "%06" PRIu64, step);
		else
			snprintf(name, sizeof(name), "%06" PRIu64 ".%u", step, again);
		char *const path = follow_folder_path(folder, name);
		if (!file_exists(path)) {
			*out_name = memory_copy_text(name);
			*out_path = path;
			return;
		}
		free(path);
	}
}

int follow_folder_swap(
	struct follow_folder *folder, const struct follow_swap *swap, struct error *err)
{
	ASSERT(swap->name != NULL && swap->label != NULL && swap->files != NULL);
	struct follow_generation fresh = {
		.name = memory_copy_text(swap->name),
		.step = swap->step,
		.digest = swap->digest,
		.label = memory_copy_text(swap->label),
		.tensors = memory_copy_text(swap->tensors != NULL ? swap->tensors : ""),
		.held = swap->held,
		.order = next_order(folder),
		.has_previous = folder->has_current,
		.previous = folder->current.step,
	};
	proven_files_copy(swap->files->files, swap->files->count, &fresh.files);
	if (write_sidecar(folder, &fresh, err) != 0 || swap_link(folder, fresh.name, err) != 0) {
		follow_generation_release(&fresh);
		return -1;
	}
	follow_generation_release(&folder->current);
	folder->current = fresh;
	folder->has_current = true;
	return save(folder, err);
}

void follow_folder_distrust(struct follow_folder *folder)
{
	folder->has_current = false;
	follow_generation_release(&folder->current);
}

bool follow_folder_has_executed(const struct follow_folder *folder, const char *command)
{
	ASSERT(command != NULL);
	if (!folder->has_current || folder->executed == NULL ||
		strcmp(folder->executed, folder->current.name) != 0)
		return false;
	const struct digest128 digest = xxh3_128(span_text(command));
	return !folder->has_command || digest128_equal(&folder->command, &digest);
}

/* Compares the part that is held, so that another part of the same step counts as a change. */
bool follow_folder_has_taken(const struct follow_folder *folder, const char *command)
{
	ASSERT(folder->has_current && command != NULL);
	const struct digest128 digest = xxh3_128(span_text(command));
	return folder->has_taken && folder->has_command &&
		digest128_equal(&folder->command, &digest) &&
		digest128_equal(&folder->taken, &folder->current.held);
}

int follow_folder_forget_taken(struct follow_folder *folder, struct error *err)
{
	if (!folder->has_taken && folder->executed == NULL)
		return 0;
	folder->has_taken = false;
	free(folder->executed); /* another generation may get its name when it is trimmed */
	folder->executed = NULL;
	return save(folder, err);
}

int follow_folder_set_executed(struct follow_folder *folder, const char *command, struct error *err)
{
	ASSERT(folder->has_current && command != NULL);
	free(folder->executed);
	folder->executed = memory_copy_text(folder->current.name);
	folder->has_command = true;
	folder->command = xxh3_128(span_text(command));
	folder->has_taken = true;
	folder->taken = folder->current.held;
	return save(folder, err);
}

int follow_folder_trim(const struct follow_folder *folder, uint64_t keep, struct error *err)
{
	char *const generations = path_of(folder, GENERATIONS);
	char **names = NULL;
	size_t count = 0;
	struct follow_generation *others = NULL;
	size_t other_count = 0;
	int result = file_list(generations, &names, &count, err);
	if (result == 0)
		others = memory_new_array(count + 1, sizeof(*others));
	for (size_t i = 0; i < count; i++)
		if ((!folder->has_current || strcmp(names[i], folder->current.name) != 0) &&
			generation_read(folder, names[i], &others[other_count]))
			other_count++;
	if (other_count > 0)
		qsort(others, other_count, sizeof(*others), follow_folder_newest_first);
	ASSERT(other_count <= count);
	if (result == 0 && other_count > keep)
		result = remove_generations(folder, others + keep, other_count - (size_t)keep, err);
	for (size_t i = 0; i < other_count; i++)
		follow_generation_release(&others[i]);
	free(others);
	file_names_free(names, count);
	free(generations);
	return result;
}

static int load(struct follow_folder *folder, struct error *err)
{
	char *const path = path_of(folder, STATE_FILE);
	bool absent;
	struct json_node *const root = read_json(path, &absent, err);
	int result = -1;
	if (absent)
		result = begin(folder, err);
	else if (root != NULL)
		result = check_state(folder, root, err);
	else
		err->kind = ERROR_CORRUPT;
	json_node_free(root);
	free(path);
	return result;
}

static char *path_of(const struct follow_folder *folder, const char *name)
{
	return folder_files_join(folder->path, name);
}

/* Reads a JSON document of ours. NULL when it is absent (*out_absent) or damaged. */
static struct json_node *read_json(const char *path, bool *out_absent, struct error *err)
{
	*out_absent = !file_exists(path);
	if (*out_absent)
		return NULL;
	struct buffer text;
	buffer_init(&text, SIDECAR_MAX_BYTES);
	struct json_node *root = NULL;
	if (file_read_all(path, &text, err) == 0)
		root = json_node_parse(buffer_span(&text), path, err);
	buffer_release(&text);
	return root;
}

/* Starts a state in a folder that has none. The folder is refused if it holds files of others,
 * because these are never touched. */
static int begin(struct follow_folder *folder, struct error *err)
{
	const int result = follow_leftovers_check(folder->path, folder->endpoint, folder->run, err);
	folder->is_begun = result == 0;
	return result == 0 ? save(folder, err) : -1;
}

static int save(const struct follow_folder *folder, struct error *err)
{
	struct buffer text;
	struct json_writer writer;
	buffer_init(&text, STATE_MAX_BYTES);
	json_writer_init(&writer, &text);
	json_writer_object(&writer, NULL);
	json_writer_u64(&writer, "version", STATE_VERSION);
	json_writer_text(&writer, "endpoint", span_text(folder->endpoint));
	json_writer_text(&writer, "run", span_text(folder->run));
	if (folder->has_current)
		print_generation(&writer, &folder->current);
	print_executed(&writer, folder);
	json_writer_end(&writer, '}');
	buffer_add_byte(&text, '\n');
	char *const path = path_of(folder, STATE_FILE);
	const int result = write_json(folder, path, &text, err);
	free(path);
	buffer_release(&text);
	return result;
}

static void print_generation(struct json_writer *writer, const struct follow_generation *generation)
{
	char digest[DIGEST128_TEXT_BYTES];
	ASSERT(generation->label != NULL);
	digest128_format(&generation->digest, digest);
	json_writer_u64(writer, "step", generation->step);
	json_writer_text(writer, "digest", span_text(digest));
	json_writer_text(writer, "label", span_text(generation->label));
}

static void print_executed(struct json_writer *writer, const struct follow_folder *folder)
{
	char command[DIGEST128_TEXT_BYTES];
	char taken[DIGEST128_TEXT_BYTES];
	if (folder->executed == NULL)
		return;
	json_writer_text(writer, "executed", span_text(folder->executed));
	if (!folder->has_command)
		return;
	digest128_format(&folder->command, command);
	json_writer_text(writer, "command", span_text(command));
	if (!folder->has_taken)
		return;
	digest128_format(&folder->taken, taken);
	json_writer_text(writer, "taken", span_text(taken));
}

static int write_json(const struct follow_folder *folder, const char *path,
	const struct buffer *text, struct error *err)
{
	if (buffer_check(text, path, err) != 0)
		return -1;
	return file_publish(folder->files, path, buffer_span(text), 0644, err);
}

static int check_state(
	struct follow_folder *folder, const struct json_node *root, struct error *err)
{
	uint64_t version;
	struct span endpoint;
	struct span run;
	struct span executed;
	struct span command;
	struct span taken;
	if (!json_node_u64(json_node_member(root, "version"), &version) ||
		!json_node_text(json_node_member(root, "endpoint"), &endpoint) ||
		!json_node_text(json_node_member(root, "run"), &run))
		return error_set(err, ERROR_CORRUPT,
			"%s/%s is not a state file of deltabucket follow", folder->path,
			STATE_FILE);
	if (version != STATE_VERSION)
		return error_set(err, ERROR_UNSUPPORTED,
			"%s/%s has version %" PRIu64 "; this program reads %d", folder->path,
			STATE_FILE, version, STATE_VERSION);
	if (!span_equal_text(endpoint, folder->endpoint) || !span_equal_text(run, folder->run))
		return error_set(err, ERROR_EXISTS,
			"%s follows run %.*s at %.*s; give another folder", folder->path,
			(int)run.len, (const char *)run.data, (int)endpoint.len,
			(const char *)endpoint.data);
	if (json_node_text(json_node_member(root, "executed"), &executed))
		folder->executed = copy_span(executed);
	folder->has_command = json_node_text(json_node_member(root, "command"), &command) &&
		digest128_parse(command, &folder->command);
	folder->has_taken = json_node_text(json_node_member(root, "taken"), &taken) &&
		digest128_parse(taken, &folder->taken);
	return 0;
}

static char *copy_span(struct span text)
{
	char *const copy = memory_new(text.len + 1);
	if (text.len > 0)
		memcpy(copy, text.data, text.len);
	return copy;
}

/* Reads the generation that the link `current` leads to. */
static void find_current(struct follow_folder *folder)
{
	char *const link = path_of(folder, CURRENT);
	char target[PATH_MAX];
	const ssize_t len = readlink(link, target, sizeof(target) - 1);
	free(link);
	const size_t prefix = strlen(GENERATIONS) + 1;
	if (len <= (ssize_t)prefix || (size_t)len > prefix + 64)
		return;
	target[len] = '\0';
	if (strncmp(target, GENERATIONS, prefix - 1) != 0 || strchr(target + prefix, '/') != NULL)
		return;
	folder->has_current = generation_read(folder, target + prefix, &folder->current);
}

/* False when there is no generation of that name with a readable sidecar. */
static bool generation_read(
	const struct follow_folder *folder, const char *name, struct follow_generation *out)
{
	char *const path = sidecar_path(folder, name);
	struct error ignored = {0};
	bool absent;
	struct json_node *const root = read_json(path, &absent, &ignored);
	struct span digest;
	struct span label;
	struct follow_generation read = {0};
	const bool whole = json_node_u64(json_node_member(root, "step"), &read.step) &&
		json_node_u64(json_node_member(root, "order"), &read.order) &&
		json_node_text(json_node_member(root, "digest"), &digest) &&
		digest128_parse(digest, &read.digest) &&
		json_node_text(json_node_member(root, "label"), &label) &&
		proven_files_parse(json_node_member(root, "files"), &read.files);
	read.has_previous = json_node_u64(json_node_member(root, "previous"), &read.previous);
	if (whole) {
		read.name = memory_copy_text(name);
		read.label = copy_span(label);
		read_part(root, &read);
		*out = read;
	}
	json_node_free(root);
	free(path);
	return whole;
}

/* What an older version made has no list of files, so it cannot be proven: it is not the same. */
static bool is_same(const struct follow_folder *folder, const struct follow_generation *generation,
	const struct follow_swap *wanted)
{
	return generation->step == wanted->step && generation->files.count > 0 &&
		digest128_equal(&generation->digest, &wanted->digest) &&
		strcmp(generation->tensors, wanted->tensors != NULL ? wanted->tensors : "") == 0 &&
		(!folder->has_current || strcmp(generation->name, folder->current.name) != 0);
}

/* `name` may come from the disk, and be so long that no sidecar of it can exist. */
static char *sidecar_path(const struct follow_folder *folder, const char *name)
{
	char *const generation = follow_folder_path(folder, name);
	const size_t length = strlen(generation);
	char *const path = memory_new(length + sizeof(SIDECAR_END));
	memcpy(path, generation, length);
	memcpy(path + length, SIDECAR_END, sizeof(SIDECAR_END));
	free(generation);
	return path;
}

/* Reads which part of the step is held. The sidecar of a whole checkpoint has no such members. */
static void read_part(const struct json_node *root, struct follow_generation *out)
{
	struct span tensors = {0};
	struct span held;
	json_node_text(json_node_member(root, "tensors"), &tensors);
	out->tensors = copy_span(tensors);
	if (!json_node_text(json_node_member(root, "held"), &held) ||
		!digest128_parse(held, &out->held))
		out->held = out->digest;
}

/* Removes generation folders without a sidecar, and sidecars without a folder. */
static int remove_leftovers(const struct follow_folder *folder, struct error *err)
{
	char *const generations = path_of(folder, GENERATIONS);
	char **names = NULL;
	size_t count = 0;
	int result = file_make_folder(folder->files, generations, 0755, err);
	if (result == 0)
		result = file_list(generations, &names, &count, err);
	for (size_t i = 0; i < count && result == 0; i++) {
		const size_t len = strlen(names[i]);
		const size_t end_len = sizeof(SIDECAR_END) - 1;
		const bool is_sidecar =
			len > end_len && strcmp(names[i] + len - end_len, SIDECAR_END) == 0;
		char *const other = is_sidecar ? folder_files_join(generations, names[i])
					       : sidecar_path(folder, names[i]);
		if (is_sidecar)
			other[strlen(other) - end_len] = '\0';
		char *const path = folder_files_join(generations, names[i]);
		if (!file_exists(other))
			result = file_remove_tree(folder->files, path, err);
		free(path);
		free(other);
	}
	file_names_free(names, count);
	free(generations);
	return result;
}

/* Removes a sub-folder if it is empty. False when it is not. */
static bool remove_empty(const struct follow_folder *folder, const char *name)
{
	char *const path = path_of(folder, name);
	const bool gone = !file_exists(path) || folder->files->rmdir(folder->files, path) == 0;
	free(path);
	return gone;
}

/* One more than the highest order in the folder. So the newest generation is known without relying
 * on the clock. */
static uint64_t next_order(const struct follow_folder *folder)
{
	char *const generations = path_of(folder, GENERATIONS);
	char **names = NULL;
	size_t count = 0;
	uint64_t highest = 0;
	struct error ignored = {0};
	if (file_list(generations, &names, &count, &ignored) != 0)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		struct follow_generation generation;
		if (!generation_read(folder, names[i], &generation))
			continue;
		if (generation.order > highest)
			highest = generation.order;
		follow_generation_release(&generation);
	}
	file_names_free(names, count);
	free(generations);
	return highest + 1;
}

static int write_sidecar(const struct follow_folder *folder,
	const struct follow_generation *generation, struct error *err)
{
	struct buffer text;
	struct json_writer writer;
	ASSERT(generation->name != NULL && generation->tensors != NULL);
	buffer_init(&text, SIDECAR_MAX_BYTES);
	json_writer_init(&writer, &text);
	json_writer_object(&writer, NULL);
	json_writer_text(&writer, "endpoint", span_text(folder->endpoint));
	json_writer_text(&writer, "run", span_text(folder->run));
	print_generation(&writer, generation);
	json_writer_u64(&writer, "order", generation->order);
	if (generation->has_previous)
		json_writer_u64(&writer, "previous", generation->previous);
	if (generation->tensors[0] != '\0') {
		char held[DIGEST128_TEXT_BYTES];
		digest128_format(&generation->held, held);
		json_writer_text(&writer, "tensors", span_text(generation->tensors));
		json_writer_text(&writer, "held", span_text(held));
	}
	proven_files_print(&generation->files, &writer);
	json_writer_end(&writer, '}');
	buffer_add_byte(&text, '\n');
	char *const path = sidecar_path(folder, generation->name);
	const int result = write_json(folder, path, &text, err);
	free(path);
	buffer_release(&text);
	return result;
}

/* The swap is durable when save() has synced the folder. */
static int swap_link(const struct follow_folder *folder, const char *name, struct error *err)
{
	char target[128];
	const int length = snprintf(target, sizeof(target), "%s/%s", GENERATIONS, name);
	ASSERT(length > 0 && (size_t)length < sizeof(target));
	char *const fresh = path_of(folder, CURRENT_NEW);
	char *const current = path_of(folder, CURRENT);
	const struct file_ops *const files = folder->files;
	int result = 0;
	files->unlink(files, fresh);
	if (files->symlink(files, target, fresh) != 0)
		result = error_set_errno(err, "making the link %s", fresh);
	else if (files->rename(files, fresh, current) != 0)
		result = error_set_errno(err, "swapping the link %s", current);
	free(fresh);
	free(current);
	return result;
}

static int follow_folder_newest_first(const void *left, const void *right)
{
	const struct follow_generation *const a = left;
	const struct follow_generation *const b = right;
	return a->order < b->order ? 1 : a->order > b->order ? -1 : 0;
}

/* Removes the sidecars first, durably: then a kill or a power cut leaves leftovers, and never a
 * half-empty generation. */
static int remove_generations(const struct follow_folder *folder,
	const struct follow_generation *old, size_t count, struct error *err)
{
	char *const generations = path_of(folder, GENERATIONS);
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const sidecar = sidecar_path(folder, old[i].name);
		result = file_remove_tree(folder->files, sidecar, err);
		free(sidecar);
	}
	if (count > 0 && result == 0)
		result = file_sync_folder(folder->files, generations, err);
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = follow_folder_path(folder, old[i].name);
		result = file_remove_tree(folder->files, path, err);
		free(path);
	}
	free(generations);
	return result;
}
