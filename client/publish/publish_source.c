/* A change of the checkpoint is recognised by the facts of its files: size, times, inode and
 * device. They are read when the checkpoint is taken and compared afterwards.
 *
 * The note in the state folder is text: the checkpoint's path on the first line, then a line for
 * each file with its facts and its name (print_line). To find the checkpoint again,
 * publish_source_find opens the files that the note names and prints the same lines of them: any
 * difference means that the checkpoint changed. */
#include "client/publish/publish_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/local/snapshot.h"

enum {
	NOTE_MAX_BYTES = 4 * 1024 * 1024,
	FACTS_IN_LINE = 5 /* numbers before the name, in a line of the note */
};

static const char NOTE[] = "source";

static int read_facts(
	struct publish_source *source, const struct checkpoint *checkpoint, struct error *err);
static int take_copy(struct publish_source *source, const struct publish_state *state,
	const struct checkpoint *checkpoint, struct error *err);
static bool publish_source_was_taken(void *chooser, const char *path, uint64_t size);
static void print_line(const struct file_facts *facts, const char *name, struct buffer *out);
static bool publish_source_is_noted(void *chooser, const char *path, uint64_t size);
static bool is_unchanged(const struct checkpoint *checkpoint, struct span rest);
static bool takes_line(struct span *rest, const struct checkpoint_file *file);

void publish_source_release(struct publish_source *source)
{
	for (size_t i = 0; i < source->count; i++)
		free(source->names[i]);
	free(source->names);
	free(source->facts);
	free(source->path);
	*source = (struct publish_source){0};
}

int publish_source_take(struct publish_source *source, const struct publish_state *state,
	const char *checkpoint, const struct checkpoint_choice *choice, struct error *err)
{
	ASSERT(checkpoint != NULL);
	*source = (struct publish_source){0};
	struct checkpoint *const opened = checkpoint_open_chosen(checkpoint, choice, err);
	if (opened == NULL)
		return -1;
	int result = read_facts(source, opened, err);
	if (result == 0)
		result = take_copy(source, state, opened, err);
	if (result == 1) {
		source->path = realpath(checkpoint, NULL);
		result = source->path != NULL ? 0
					      : error_set_errno(err, "looking for %s", checkpoint);
	}
	checkpoint_close(opened);
	if (result != 0)
		publish_source_release(source);
	return result;
}

int publish_source_take_copy(
	struct publish_source *source, const struct publish_state *state, struct error *err)
{
	*source = (struct publish_source){.path = publish_state_new_path(state), .is_copy = true};
	struct checkpoint *const opened = checkpoint_open(source->path, err);
	const int result = opened != NULL ? read_facts(source, opened, err) : -1;
	checkpoint_close(opened);
	if (result != 0)
		publish_source_release(source);
	return result;
}

struct checkpoint_choice publish_source_choice(struct publish_source *source)
{
	return (struct checkpoint_choice){.wants = publish_source_was_taken, .chooser = source};
}

void publish_source_moved(struct publish_source *source, const struct publish_state *state)
{
	ASSERT(state->has_pending);
	if (!source->is_copy)
		return;
	free(source->path);
	source->path = publish_state_path(state, state->pending.step, "checkpoint");
}

char *publish_source_file(const struct publish_source *source, const char *name)
{
	ASSERT(source->path != NULL);
	char *const inside = folder_files_join(source->path, name);
	if (file_exists(inside))
		return inside;
	free(inside);
	return memory_copy_text(source->path); /* the checkpoint is one file */
}

uint64_t publish_source_bytes(const struct publish_source *source)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < source->count; i++)
		bytes += source->facts[i].size;
	return bytes;
}

int publish_source_refuse(const char *path, struct error *err)
{
	return error_set(err, ERROR_INVALID,
		"%s changed while it was being published; a checkpoint must not change until publish "
		"has ended",
		path);
}

int publish_source_check(const struct publish_source *source, struct error *err)
{
	for (size_t i = 0; i < source->count && !source->is_copy; i++) {
		char *const path = publish_source_file(source, source->names[i]);
		struct file_facts now;
		int result = file_facts_read(path, &now, err);
		if (result == 0 && !file_facts_equal(&now, &source->facts[i]))
			result = publish_source_refuse(path, err);
		free(path);
		if (result != 0)
			return -1;
	}
	return 0;
}

void publish_source_note(const struct publish_source *source, const struct publish_state *state)
{
	struct buffer text;
	struct error ignored = {0};
	ASSERT(source->path != NULL && state->has_committed);
	if (source->is_copy || strchr(source->path, '\n') != NULL)
		return;
	char *const path = publish_state_path(state, state->committed.step, NOTE);
	buffer_init(&text, NOTE_MAX_BYTES);
	buffer_format(&text, "%s\n", source->path);
	for (size_t i = 0; i < source->count; i++)
		print_line(&source->facts[i], source->names[i], &text);
	if (!buffer_failed(&text))
		file_place(state->files, path, buffer_span(&text), 0600, &ignored);
	buffer_release(&text);
	free(path);
}

struct checkpoint *publish_source_find(const struct publish_state *state)
{
	struct buffer text;
	struct error ignored = {0};
	struct span line;
	struct checkpoint *checkpoint = NULL;
	ASSERT(state->has_committed);
	char *const path = publish_state_path(state, state->committed.step, NOTE);
	buffer_init(&text, NOTE_MAX_BYTES);
	struct span rest = {0};
	if (file_exists(path) && file_read_all(path, &text, &ignored) == 0)
		rest = buffer_span(&text);
	if (span_split(&rest, '\n', &line)) {
		char *const from = memory_new(line.len + 1);
		memcpy(from, line.data, line.len);
		checkpoint = checkpoint_open_chosen(from,
			&(struct checkpoint_choice){
				.wants = publish_source_is_noted, .chooser = &rest},
			&ignored);
		free(from);
	}
	if (checkpoint != NULL && !is_unchanged(checkpoint, rest)) {
		checkpoint_close(checkpoint);
		checkpoint = NULL;
	}
	buffer_release(&text);
	free(path);
	return checkpoint;
}

/* Takes down the files as they are now. */
static int read_facts(
	struct publish_source *source, const struct checkpoint *checkpoint, struct error *err)
{
	const size_t count = checkpoint_file_count(checkpoint);
	ASSERT(source->names == NULL && source->count == 0);
	source->names = memory_new_array(count + 1, sizeof(*source->names));
	source->facts = memory_new_array(count + 1, sizeof(*source->facts));
	for (size_t i = 0; i < count; i++) {
		const struct checkpoint_file *const file = checkpoint_file(checkpoint, i);
		source->names[i] = memory_copy_text(file->path);
		source->count++;
		if (file_facts_read(file->full_path, &source->facts[i], err) != 0)
			return -1;
	}
	return 0;
}

/* 1 when the file system cannot share bytes. */
static int take_copy(struct publish_source *source, const struct publish_state *state,
	const struct checkpoint *checkpoint, struct error *err)
{
	char *const folder = publish_state_new_path(state);
	struct error failure = {0};
	ASSERT(source->path == NULL);
	int result = file_remove_tree(state->files, folder, &failure);
	if (result == 0)
		result = snapshot_share(state->files, checkpoint, folder, &failure);
	if (result == 0) {
		source->path = folder;
		source->is_copy = true;
		return 0;
	}
	if (file_remove_tree(state->files, folder, result == 1 ? &failure : &(struct error){0}) !=
		0)
		result = -1;
	if (result < 0)
		*err = failure;
	free(folder);
	return result;
}

static bool publish_source_was_taken(void *chooser, const char *path, uint64_t size)
{
	const struct publish_source *const source = chooser;
	(void)size;
	for (size_t i = 0; i < source->count; i++)
		if (strcmp(source->names[i], path) == 0)
			return true;
	return false;
}

static void print_line(const struct file_facts *facts, const char *name, struct buffer *out)
{
	buffer_format(out, "%" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %s\n",
		facts->size, facts->mtime_ns, facts->ctime_ns, facts->inode, facts->device, name);
}

/* Whether the note, which has lines as print_line writes them, names this file. */
static bool publish_source_is_noted(void *chooser, const char *path, uint64_t size)
{
	struct span rest = *(const struct span *)chooser;
	struct span name;
	(void)size;
	while (span_split(&rest, '\n', &name)) {
		struct span fact;
		for (int i = 0; i < FACTS_IN_LINE && span_split(&name, ' ', &fact); i++)
			continue;
		if (span_equal_text(name, path))
			return true;
	}
	return false;
}

static bool is_unchanged(const struct checkpoint *checkpoint, struct span rest)
{
	for (size_t i = 0; i < checkpoint_file_count(checkpoint); i++)
		if (!takes_line(&rest, checkpoint_file(checkpoint, i)))
			return false;
	return rest.len == 0;
}

/* Takes the next line if it is what would be noted of this file now. */
static bool takes_line(struct span *rest, const struct checkpoint_file *file)
{
	struct file_facts facts;
	struct buffer text;
	struct error ignored = {0};
	if (file_facts_read(file->full_path, &facts, &ignored) != 0)
		return false;
	buffer_init(&text, NOTE_MAX_BYTES);
	print_line(&facts, file->path, &text);
	const bool same = !buffer_failed(&text) && span_starts(*rest, buffer_span(&text));
	*rest = same ? span_slice(*rest, text.len, rest->len) : *rest;
	buffer_release(&text);
	return same;
}
