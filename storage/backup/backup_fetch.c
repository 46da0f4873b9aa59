#include "storage/backup/backup_fetch.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MODE = 0600, FOLDER_MODE = 0700 };

static int fetch_pieces(struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err);
static bool is_there(
	struct backup_fetch *fetch, const struct backup_piece *piece, int fd, const char *path);
static int fetch_piece(struct backup_fetch *fetch, const struct backup_file *file,
	const struct backup_piece *piece, struct error *err);
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

void backup_fetch_release(struct backup_fetch *fetch)
{
	buffer_release(&fetch->piece);
}

static int fetch_pieces(struct backup_fetch *fetch, const struct backup_file *file, int fd,
	const char *path, struct error *err)
{
	const struct file_ops *files = fetch->files;
	for (size_t i = 0; i < file->count; i++) {
		const struct backup_piece *piece = &file->pieces[i];
		if (is_there(fetch, piece, fd, path))
			continue;
		if (fetch_piece(fetch, file, piece, err) != 0 ||
			file_write_at(files, fd, buffer_span(&fetch->piece), (off_t)piece->from,
				path, err) != 0)
			return -1;
		fetch->fetched += piece->to - piece->from;
	}
	return files->ftruncate(files, fd, (off_t)backup_file_covered(file)) == 0
		? 0
		: error_set_errno(err, "%s cannot be cut", path);
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

static int fetch_piece(struct backup_fetch *fetch, const struct backup_file *file,
	const struct backup_piece *piece, struct error *err)
{
	char name[BACKUP_NAME_BYTES];
	buffer_reset(&fetch->piece);
	backup_piece_name(file->key, piece, name);
	if (backup_vault_get(fetch->vault, name, &fetch->piece, err) != 0)
		return err->kind == ERROR_NOT_FOUND
			? error_set(err, ERROR_CORRUPT, "The backup lacks the object %s.", name)
			: -1;
	return fetch->piece.len == piece->to - piece->from &&
			is_right(buffer_span(&fetch->piece), piece)
		? 0
		: error_set(err, ERROR_CORRUPT,
			  "The object %s does not have the bytes that were backed up.", name);
}

static bool is_right(struct span bytes, const struct backup_piece *piece)
{
	uint8_t digest[BLAKE3_BYTES];
	blake3(NULL, bytes, digest);
	return memcmp(digest, piece->digest, sizeof(digest)) == 0;
}
