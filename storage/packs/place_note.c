#include "storage/packs/place_note.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, NOTE_MAX_BYTES = 4096, PREFIX = 2 };

static int read_note(const char *folder, struct buffer *out, bool *out_is_there, struct error *err);
static bool has_packs(const char *folder);
static bool has_files(const char *path);

int place_note_set(
	const struct file_ops *files, const char *folder, const char *place, struct error *err)
{
	char path[PATH_BYTES];
	struct buffer text;
	bool is_there = false;
	buffer_init(&text, NOTE_MAX_BYTES);
	int result = read_note(folder, &text, &is_there, err);
	if (result == 0 && !is_there && has_packs(folder))
		result = error_set(err, ERROR_INVALID,
			"The packs of this store lie in %s/packs, and not at %s; start without the setting packs.",
			folder, place);
	const bool is_same = is_there && span_equal_text(buffer_span(&text), place);
	if (result == 0 && !is_same) {
		buffer_reset(&text);
		buffer_add_text(&text, place);
		snprintf(path, sizeof(path), "%s/packs.place", folder);
		result = file_publish(
			files != NULL ? files : file_system(), path, buffer_span(&text), 0600, err);
	}
	buffer_release(&text);
	return result;
}

static int read_note(const char *folder, struct buffer *out, bool *out_is_there, struct error *err)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/packs.place", folder);
	if (file_find(path, out_is_there, err) != 0)
		return -1;
	return *out_is_there ? file_read_all(path, out, err) : 0;
}

static bool has_packs(const char *folder)
{
	char path[PATH_BYTES];
	char **names = NULL;
	size_t count = 0;
	struct error ignored;
	bool has = false;
	snprintf(path, sizeof(path), "%s/packs", folder);
	if (!file_exists(path) || file_list(path, &names, &count, &ignored) != 0)
		return false;
	for (size_t i = 0; i < count && !has; i++) {
		snprintf(path, sizeof(path), "%s/packs/%.200s", folder, names[i]);
		has = strlen(names[i]) == PREFIX && has_files(path);
	}
	file_names_free(names, count);
	return has;
}

static bool has_files(const char *path)
{
	char **names = NULL;
	size_t count = 0;
	struct error ignored;
	if (file_list(path, &names, &count, &ignored) != 0)
		return false;
	file_names_free(names, count);
	return count > 0;
}

int place_note_check(const char *folder, struct error *err)
{
	struct buffer text;
	bool is_there = false;
	buffer_init(&text, NOTE_MAX_BYTES);
	int result = read_note(folder, &text, &is_there, err);
	if (result == 0 && is_there)
		result = error_set(err, ERROR_INVALID,
			"The packs of this store lie at %.200s, and not in %s/packs; only a server with the setting packs reads them.",
			buffer_text(&text), folder);
	buffer_release(&text);
	return result;
}
