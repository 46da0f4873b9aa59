/* Lines of the file `pieces` have a checksum each: an interrupted run leaves half a line. The file
 * begins again with each moment, whose manifest has all that it said. */
#include "storage/backup/backup_notes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/digest/digest.h"
#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/memory.h"

enum {
	PATH_BYTES = 4096,
	FILE_MODE = 0600,
	FOLDER_MODE = 0700,
	LINE_BYTES = 320,
	SUM_LETTERS = 16
};

struct backup_notes {
	const struct file_ops *files;
	char folder[PATH_BYTES];
	int lock_fd;
	int pieces_fd; /* -1: not open */
	uint64_t end;  /* of that file */
	struct error lack; /* why they cannot be written; kind ERROR_NONE: they can */
};

static void path_of(const struct backup_notes *notes, const char *name, char out[PATH_BYTES]);
static int open_all(struct backup_notes *notes, struct error *err);
static int try_open(struct backup_notes *notes, struct error *err);
static void close_all(struct backup_notes *notes);
static int take_lock(struct backup_notes *notes, struct error *err);
static int open_pieces(struct backup_notes *notes, struct error *err);
static void recall_pieces(struct backup_notes *notes, struct backup_known *known);
static bool parse_line(struct span line, char out_key[BACKUP_KEY_BYTES], struct backup_piece *out);
static void recall_moments(struct backup_notes *notes, const uint8_t store[BACKUP_STORE_BYTES],
	struct backup_known *known);

void backup_notes_id(const char *place, char out[BACKUP_ID_BYTES])
{
	uint8_t digest[SHA256_BYTES];
	sha256(span_text(place), digest);
	encode_hex(span_of(digest, (BACKUP_ID_BYTES - 1) / 2), out);
}

struct backup_notes *backup_notes_open(
	const struct file_ops *files, const char *folder, const char *place, struct error *err)
{
	struct backup_notes *notes = backup_notes_look(files, folder, place);
	if (open_all(notes, err) == 0)
		return notes;
	backup_notes_close(notes);
	return NULL;
}

struct backup_notes *backup_notes_look(
	const struct file_ops *files, const char *folder, const char *place)
{
	struct backup_notes *notes = memory_new(sizeof(*notes));
	char id[BACKUP_ID_BYTES];
	notes->files = files;
	notes->lock_fd = -1;
	notes->pieces_fd = -1;
	backup_notes_id(place, id);
	snprintf(notes->folder, sizeof(notes->folder), "%s/backup/%s", folder, id);
	return notes;
}

void backup_notes_close(struct backup_notes *notes)
{
	if (notes == NULL)
		return;
	close_all(notes);
	free(notes);
}

const char *backup_notes_lack(const struct backup_notes *notes)
{
	return notes->lack.kind == ERROR_NONE ? "" : notes->lack.text;
}

bool backup_notes_had_moments(const struct backup_notes *notes)
{
	char **names;
	size_t count;
	struct error ignored;
	struct backup_moment moment;
	bool result = false;
	if (file_list(notes->folder, &names, &count, &ignored) != 0)
		return false;
	for (size_t i = 0; i < count && !result; i++)
		result = backup_moment_parse(span_text(names[i]), &moment);
	file_names_free(names, count);
	return result;
}

const char *backup_notes_folder(const struct backup_notes *notes)
{
	return notes->folder;
}

int backup_notes_renew(struct backup_notes *notes, struct error *err)
{
	char path[PATH_BYTES];
	path_of(notes, "lock", path);
	if (notes->lack.kind == ERROR_NONE && file_exists(path))
		return 0;
	close_all(notes);
	return open_all(notes, err);
}

void backup_notes_recall(struct backup_notes *notes, const uint8_t store[BACKUP_STORE_BYTES],
	struct backup_known *known)
{
	recall_moments(notes, store, known);
	recall_pieces(notes, known);
}

void backup_notes_add(struct backup_notes *notes, const char *key, const struct backup_piece *piece)
{
	char line[LINE_BYTES];
	char digest[2 * BLAKE3_BYTES + 1];
	char path[PATH_BYTES];
	struct error ignored;
	encode_hex(span_of(piece->digest, sizeof(piece->digest)), digest);
	int len = snprintf(line, sizeof(line), "%s %" PRIu64 " %" PRIu64 " %s ", key, piece->from,
		piece->to, digest);
	len += snprintf(line + len, sizeof(line) - (size_t)len, "%016" PRIx64 "\n",
		xxh3_64(span_of(line, (size_t)len)));
	path_of(notes, "pieces", path);
	if (file_write_at(notes->files, notes->pieces_fd, span_of(line, (size_t)len),
		    (off_t)notes->end, path, &ignored) == 0)
		notes->end += (uint64_t)len;
}

void backup_notes_keep(
	struct backup_notes *notes, const struct backup_moment *moment, struct span text)
{
	char name[BACKUP_MOMENT_BYTES];
	char path[PATH_BYTES];
	struct error ignored;
	backup_moment_print(moment, name);
	path_of(notes, name, path);
	if (file_publish(notes->files, path, text, FILE_MODE, &ignored) == 0 &&
		notes->files->ftruncate(notes->files, notes->pieces_fd, 0) == 0)
		notes->end = 0;
}

int backup_notes_manifest(struct backup_notes *notes, const struct backup_moment *moment,
	struct backup_manifest *out, struct error *err)
{
	char name[BACKUP_MOMENT_BYTES];
	char path[PATH_BYTES];
	struct buffer text;
	*out = (struct backup_manifest){.count = 0};
	backup_moment_print(moment, name);
	path_of(notes, name, path);
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	int result = file_read_all(path, &text, err);
	if (result == 0)
		result = backup_manifest_parse(buffer_span(&text), out, err);
	if (result == 0 && backup_moment_compare(&out->moment, moment) != 0)
		result = error_set(err, ERROR_CORRUPT, "%s is of another moment.", path);
	buffer_release(&text);
	return result;
}

void backup_notes_drop(struct backup_notes *notes, const struct backup_moment *moment)
{
	char name[BACKUP_MOMENT_BYTES];
	char path[PATH_BYTES];
	backup_moment_print(moment, name);
	path_of(notes, name, path);
	notes->files->unlink(notes->files, path);
}

static void path_of(const struct backup_notes *notes, const char *name, char out[PATH_BYTES])
{
	const int len = snprintf(out, PATH_BYTES, "%s/%s", notes->folder, name);
	ASSERT(len > 0);
}

/* A disk that takes no writes is a reason to back up, not one to go without. */
static int open_all(struct backup_notes *notes, struct error *err)
{
	struct error why = {0};
	notes->lack.kind = ERROR_NONE;
	if (try_open(notes, &why) == 0)
		return 0;
	if (why.kind != ERROR_READ_ONLY && why.kind != ERROR_NO_SPACE) {
		*err = why;
		return -1;
	}
	close_all(notes);
	notes->lack = why;
	return 0;
}

static int try_open(struct backup_notes *notes, struct error *err)
{
	if (file_make_folder(notes->files, notes->folder, FOLDER_MODE, err) != 0 ||
		take_lock(notes, err) != 0)
		return -1;
	return open_pieces(notes, err);
}

static void close_all(struct backup_notes *notes)
{
	if (notes->pieces_fd >= 0)
		close(notes->pieces_fd);
	if (notes->lock_fd >= 0)
		close(notes->lock_fd);
	notes->pieces_fd = -1;
	notes->lock_fd = -1;
}

static int take_lock(struct backup_notes *notes, struct error *err)
{
	char path[PATH_BYTES];
	path_of(notes, "lock", path);
	notes->lock_fd =
		notes->files->open(notes->files, path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
	if (notes->lock_fd < 0)
		return error_set_errno(err, "%s cannot be opened", path);
	if (flock(notes->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK
		? error_set(err, ERROR_BUSY,
			  "Another backup of this folder to the same place is under way.")
		: error_set_errno(err, "%s cannot be locked", path);
}

static int open_pieces(struct backup_notes *notes, struct error *err)
{
	char path[PATH_BYTES];
	path_of(notes, "pieces", path);
	notes->pieces_fd =
		notes->files->open(notes->files, path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
	return notes->pieces_fd >= 0 ? file_size(path, &notes->end, err)
				     : error_set_errno(err, "%s cannot be opened", path);
}

/* New lines go behind the last whole one. */
static void recall_pieces(struct backup_notes *notes, struct backup_known *known)
{
	char path[PATH_BYTES];
	struct buffer text;
	struct error ignored;
	struct span line;
	path_of(notes, "pieces", path);
	buffer_init(&text, BACKUP_OBJECT_MAX_BYTES);
	if (file_read_all(path, &text, &ignored) != 0)
		buffer_reset(&text);
	struct span rest = buffer_span(&text);
	notes->end = 0;
	while (span_split(&rest, '\n', &line)) {
		char key[BACKUP_KEY_BYTES];
		struct backup_piece piece;
		if (!parse_line(line, key, &piece))
			break;
		backup_known_add(known, key, &piece);
		notes->end += line.len + 1;
	}
	buffer_release(&text);
}

/* "KEY FROM TO DIGEST SUM" */
static bool parse_line(struct span line, char out_key[BACKUP_KEY_BYTES], struct backup_piece *out)
{
	char sum[SUM_LETTERS + 1];
	char path[BACKUP_NAME_BYTES];
	struct span words[4];
	if (line.len <= SUM_LETTERS)
		return false;
	struct span rest = span_slice(line, 0, line.len - SUM_LETTERS);
	snprintf(sum, sizeof(sum), "%016" PRIx64, xxh3_64(rest));
	bool is_right = span_ends_text(line, sum);
	for (size_t i = 0; i < 4; i++)
		is_right = is_right && span_split(&rest, ' ', &words[i]);
	if (!is_right || words[0].len >= BACKUP_KEY_BYTES ||
		!span_parse_u64(words[1], &out->from) || !span_parse_u64(words[2], &out->to) ||
		out->from >= out->to || !decode_hex(words[3], out->digest, sizeof(out->digest)))
		return false;
	snprintf(out_key, BACKUP_KEY_BYTES, "%.*s", (int)words[0].len, (const char *)words[0].data);
	return backup_key_path(out_key, path);
}

static void recall_moments(struct backup_notes *notes, const uint8_t store[BACKUP_STORE_BYTES],
	struct backup_known *known)
{
	char **names;
	size_t count;
	struct error ignored;
	if (file_list(notes->folder, &names, &count, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct backup_moment moment;
		struct backup_manifest manifest = {.count = 0};
		if (backup_moment_parse(span_text(names[i]), &moment) &&
			backup_notes_manifest(notes, &moment, &manifest, &ignored) == 0 &&
			memcmp(manifest.store, store, BACKUP_STORE_BYTES) == 0)
			backup_known_add_all(known, &manifest);
		backup_manifest_release(&manifest);
	}
	file_names_free(names, count);
}
