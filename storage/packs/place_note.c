#include "storage/packs/place_note.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, NOTE_MAX_BYTES = 4096, PREFIX = 2 };

static int write_note(
	const struct file_ops *files, const char *folder, const char *place, struct error *err);
static int read_note(const char *folder, struct buffer *out, bool *out_is_there, struct error *err);
static bool has_packs(const char *folder);
static bool has_files(const char *path);

int place_note_set(
	const struct file_ops *files, const char *folder, const char *place, struct error *err)
{
	struct buffer text;
	bool is_there = false;
	buffer_init(&text, NOTE_MAX_BYTES);
	int result = read_note(folder, &text, &is_there, err);
	if (result == 0 && !is_there)
		result = write_note(files, folder, place, err);
	else if (result == 0 && !span_equal_text(buffer_span(&text), place))
		result = error_set(err, ERROR_INVALID,
			"The packs of this store lie at %.200s, and not at %.200s. If they have another address now, write it into %s/packs.place.",
			buffer_text(&text), place, folder);
	buffer_release(&text);
	return result;
}

static int write_note(
	const struct file_ops *files, const char *folder, const char *place, struct error *err)
{
	char path[PATH_BYTES];
	if (has_packs(folder))
		return error_set(err, ERROR_INVALID,
			"The packs of this store lie in %s/packs, and not at %s; start without the setting packs.",
			folder, place);
	snprintf(path, sizeof(path), "%s/packs.place", folder);
	return file_publish(
		files != NULL ? files : file_system(), path, span_text(place), 0600, err);
}

static int read_note(const char *folder, struct buffer *out, bool *out_is_there, struct error *err)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/packs.place", folder);
	if (file_find(path, out_is_there, err) != 0)
		return -1;
	if (!*out_is_there || file_read_all(path, out, err) != 0)
		return *out_is_there ? -1 : 0;
	while (out->len > 0 && out->data[out->len - 1] == '\n') /* of an editor */
		out->len--;
	return 0;
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
