#include "storage/backup/backup_fetch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0600, FOLDER_MODE = 0700 };

static int fetch_pieces(struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err);
static int place_piece(struct backup_fetch *fetch, const struct backup_file *file, size_t number,
	int fd, const char *path, struct error *err);
static bool is_there(
	struct backup_fetch *fetch, const struct backup_piece *piece, int fd, const char *path);
static int cut(const struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err);
static int read_piece(struct backup_vault *vault, const char *name, struct buffer *out,
	struct error *err);
static bool is_right(struct span bytes, const struct backup_piece *piece);

int backup_fetch_file(struct backup_fetch *fetch, const struct backup_file *file, const char *path,
	struct error *err)
{
	const struct file_ops *files = fetch->files;
	if (file->count == 0)
		return 0;
	if (fetch->piece.cap == 0)
		buffer_init(&fetch->piece, BACKUP_PIECE_MAX_BYTES);
	if (file_make_parent(files, path, FOLDER_MODE, err) != 0)
		return -1;
	const int fd = files->open(files, path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return error_set_errno(err, "%s cannot be made", path);
	int result = fetch_pieces(fetch, file, fd, path, err);
	if (result == 0)
		result = file_sync(files, fd, path, err);
	close(fd);
	return result == 0 ? file_sync_name(files, path, err) : -1;
}

int backup_fetch_piece(struct backup_vault *vault, const char *key,
	const struct backup_piece *piece, struct buffer *out, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	const size_t len = (size_t)(piece->to - piece->from);
	buffer_reset(out);
	backup_piece_name(key, piece, name);
	if (read_piece(vault, name, out, err) != 0)
		return -1;
	if (out->len == len && is_right(buffer_span(out), piece))
		return 0;
	if (out->len > len)
		out->len = len;
	return error_set(err, ERROR_CORRUPT,
		"The object %s does not have the bytes that were backed up.", name);
}

void backup_fetch_release(struct backup_fetch *fetch)
{
	buffer_release(&fetch->piece);
}

static int fetch_pieces(struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err)
{
	for (size_t i = 0; i < file->count; i++)
		if (!is_there(fetch, &file->pieces[i], fd, path) &&
			place_piece(fetch, file, i, fd, path, err) != 0)
			return -1;
	return cut(fetch, file, fd, path, err);
}

/* A piece that is damaged has sound records in it: each of them is verified when it is read. Where
 * nothing is found, what an interrupted run has left there stays. */
static int place_piece(struct backup_fetch *fetch, const struct backup_file *file, size_t number,
	int fd, const char *path, struct error *err)
{
	const struct backup_piece *piece = &file->pieces[number];
	struct buffer *bytes = &fetch->piece;
	if (backup_fetch_piece(fetch->vault, file->key, piece, bytes, err) != 0) {
		if (err->kind != ERROR_CORRUPT || fetch->take_lack == NULL)
			return -1;
		fetch->take_lack(fetch->owner, err);
	}
	fetch->fetched += bytes->len;
	return bytes->len == 0 ? 0
			       : file_write_at(fetch->files, fd, buffer_span(bytes),
					 (off_t)piece->from, path, err);
}

/* From an interrupted run. */
static bool is_there(
	struct backup_fetch *fetch, const struct backup_piece *piece, int fd, const char *path)
{
	struct error ignored;
	const size_t len = (size_t)(piece->to - piece->from);
	buffer_reset(&fetch->piece);
	uint8_t *room = buffer_reserve(&fetch->piece, len);
	if (room == NULL ||
		file_read_at(fetch->files, fd, (struct iovec){.iov_base = room, .iov_len = len},
			(off_t)piece->from, path, &ignored) != 0)
		return false;
	return is_right(span_of(room, len), piece);
}

/* To the bytes of its pieces. A pack of which there is nothing is a missing one. */
static int cut(const struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err)
{
	const struct file_ops *files = fetch->files;
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return error_set_errno(err, "%s cannot be read", path);
	if (facts.st_size == 0)
		return files->unlink(files, path) == 0
			? 0
			: error_set_errno(err, "%s cannot be removed", path);
	return files->ftruncate(files, fd, (off_t)backup_file_covered(file)) == 0
		? 0
		: error_set_errno(err, "%s cannot be cut", path);
}

/* Fails with corrupt when the object is missing though its place is there, or too large. */
static int read_piece(
	struct backup_vault *vault, const char *name, struct buffer *out, struct error *err)
{
	if (backup_vault_get(vault, name, out, err) == 0)
		return 0;
	const enum error_kind kind = err->kind;
	if (kind == ERROR_NOT_FOUND || kind == ERROR_TOO_LARGE)
		buffer_reset(out);
	if (kind == ERROR_NOT_FOUND && backup_vault_check(vault, err) != 0)
		return -1;
	if (kind == ERROR_NOT_FOUND)
		return error_set(err, ERROR_CORRUPT, "The backup lacks the object %s.", name);
	return kind != ERROR_TOO_LARGE
		? -1
		: error_set(err, ERROR_CORRUPT,
			  "The object %s is larger than what was backed up.", name);
}

static bool is_right(struct span bytes, const struct backup_piece *piece)
{
	uint8_t digest[BLAKE3_BYTES];
	blake3(NULL, bytes, digest);
	return memcmp(digest, piece->digest, sizeof(digest)) == 0;
}
