/* Packs as files: FOLDER/xx/<name>, where xx is the first two characters of the name, so that no
 * folder grows huge. Flags remember in which of the 256 folders names have changed since the last
 * sync. A file moves to the folder of doubtful files, and back, by a second name, which is durable
 * before the old one goes. */
#include "storage/packs/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/memory.h"
#include "storage/packs/direct_reader.h"

enum { FOLDER_PATH_BYTES = 4096, FOLDER_PREFIX = 2, FOLDER_PARTS_MAX = 64 };

struct backend_folder {
	struct backend base;
	const struct file_ops *files;
	char *folder;
	char *aside;
	atomic_bool names_changed[256];  /* in the folder xx, since the last sync */
	atomic_bool aside_changed;       /* names were removed from there since the last sync */
	atomic_bool aside_synced;        /* the name of that folder is durable */
	atomic_bool parents_synced[256]; /* the name of the folder xx is durable */
};
struct folder_file {
	struct backend_file base;
	int fd;
	atomic_bool name_synced;      /* the folder entry is durable */
	struct direct_reader *direct; /* NULL: reads go through the page cache */
	char path[];
};

static int backend_folder_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int folder_open_path(struct backend_folder *folder, const char *name, int flags,
	struct backend_file **out_file, struct error *err);
static int folder_path(const struct backend_folder *folder, const char *name,
	char out[FOLDER_PATH_BYTES], struct error *err);
static struct folder_file *file_new(struct backend_folder *folder, int fd, const char *path);
static int folder_make_parent(const struct file_ops *files, const char *path, struct error *err);
static void folder_cut_to_parent(char *path);
static int backend_folder_open_file(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int backend_folder_open_uncached(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err);
static int backend_folder_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err);
static const struct file_ops *folder_files(const struct backend_file *file);
static int backend_folder_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static int read_direct(const struct folder_file *file, const struct iovec *parts, int count,
	uint64_t offset, struct error *err);
static int folder_advance(struct iovec *parts, int count, size_t done);
static int backend_folder_sync(struct backend_file *base, struct error *err);
static int folder_sync_parent(struct backend_folder *folder, const char *parent, struct error *err);
static int backend_folder_truncate(struct backend_file *base, uint64_t length, struct error *err);
static int backend_folder_size(struct backend_file *base, uint64_t *out_size, struct error *err);
static void backend_folder_close(struct backend_file *base);
static int backend_folder_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err);
static int folder_put_by(struct backend *backend, const char *name, struct span bytes,
	int (*write)(const struct file_ops *, const char *, struct span, mode_t, struct error *),
	struct error *err);
static int backend_folder_put_derived(
	struct backend *backend, const char *name, struct span bytes, struct error *err);
static int backend_folder_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err);
static int backend_folder_remove(struct backend *backend, const char *name, struct error *err);
static void folder_note_name(struct backend_folder *folder, const char *name);
static int backend_folder_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int folder_list_one(const char *path, backend_take_fn *take, void *taker, struct error *err);
static int folder_take_one(
	const char *path, const char *name, backend_take_fn *take, void *taker, struct error *err);
static int backend_folder_set_aside(struct backend *backend, const char *name, struct error *err);
static int find_place_aside(const struct backend_folder *folder, const char *name, const char *from,
	char to[FOLDER_PATH_BYTES], struct error *err);
static int aside_path(const struct backend_folder *folder, const char *name,
	char out[FOLDER_PATH_BYTES], struct error *err);
static bool is_same_file(const char *one, const char *other);
static int give_name(
	const struct backend_folder *folder, const char *from, const char *to, struct error *err);
static int sync_aside(struct backend_folder *folder, struct error *err);
static int take_name(const struct backend_folder *folder, const char *path, struct error *err);
static int backend_folder_bring_back(struct backend *backend, const char *name, struct error *err);
static int backend_folder_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err);
static int backend_folder_sync_names(struct backend *backend, struct error *err);
static int sync_changed_aside(struct backend_folder *folder, struct error *err);
static int sync_part(struct backend_folder *folder, unsigned number, struct error *err);
static void backend_folder_free(struct backend *backend);

static const struct backend_ops folder_ops = {
	.create = backend_folder_create,
	.open = backend_folder_open_file,
	.open_uncached = backend_folder_open_uncached,
	.append = backend_folder_append,
	.read = backend_folder_read,
	.sync = backend_folder_sync,
	.truncate = backend_folder_truncate,
	.size = backend_folder_size,
	.close = backend_folder_close,
	.put = backend_folder_put,
	.put_derived = backend_folder_put_derived,
	.get = backend_folder_get,
	.remove = backend_folder_remove,
	.list = backend_folder_list,
	.set_aside = backend_folder_set_aside,
	.bring_back = backend_folder_bring_back,
	.list_aside = backend_folder_list_aside,
	.sync_names = backend_folder_sync_names,
	.free = backend_folder_free,
};

struct backend *backend_folder_open(
	const char *path, const char *aside, const struct file_ops *files, struct error *err)
{
	const struct file_ops *const used = files != NULL ? files : file_system();
	if (file_make_folder(used, path, 0700, err) != 0)
		return NULL;
	struct backend_folder *const folder = memory_new(sizeof(*folder));
	folder->base.ops = &folder_ops;
	folder->files = used;
	folder->folder = memory_copy_text(path);
	folder->aside = memory_copy_text(aside);
	return &folder->base;
}

static int backend_folder_create(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	return folder_open_path(
		(struct backend_folder *)backend, name, O_RDWR | O_CREAT | O_EXCL, out_file, err);
}

static int folder_open_path(struct backend_folder *folder, const char *name, int flags,
	struct backend_file **out_file, struct error *err)
{
	char path[FOLDER_PATH_BYTES];
	if (folder_path(folder, name, path, err) != 0)
		return -1;
	const bool creating = (flags & O_CREAT) != 0;
	if (creating && folder_make_parent(folder->files, path, err) != 0)
		return -1;
	const int fd = folder->files->open(folder->files, path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set_errno(err, "cannot %s %s", creating ? "create" : "open", path);
	struct folder_file *const file = file_new(folder, fd, path);
	atomic_init(&file->name_synced, !creating);
	*out_file = &file->base;
	return 0;
}

static int folder_path(const struct backend_folder *folder, const char *name,
	char out[FOLDER_PATH_BYTES], struct error *err)
{
	ASSERT(strlen(name) > FOLDER_PREFIX && strchr(name, '/') == NULL && name[0] != '.');
	const int len = snprintf(
		out, FOLDER_PATH_BYTES, "%s/%.*s/%s", folder->folder, FOLDER_PREFIX, name, name);
	if (len < 0 || len >= FOLDER_PATH_BYTES)
		return error_set(err, ERROR_INVALID, "The path of %s below %s is over %d bytes.",
			name, folder->folder, FOLDER_PATH_BYTES - 1);
	return 0;
}

static struct folder_file *file_new(struct backend_folder *folder, int fd, const char *path)
{
	struct folder_file *const file = memory_new(sizeof(*file) + strlen(path) + 1);
	file->base.backend = &folder->base;
	file->fd = fd;
	memcpy(file->path, path, strlen(path) + 1);
	return file;
}

static int folder_make_parent(const struct file_ops *files, const char *path, struct error *err)
{
	char parent[FOLDER_PATH_BYTES];
	ASSERT(strlen(path) < sizeof(parent));
	snprintf(parent, sizeof(parent), "%s", path);
	folder_cut_to_parent(parent);
	return file_exists(parent) ? 0 : file_make_folder(files, parent, 0700, err);
}

/* Cuts `path` to the folder that contains it. */
static void folder_cut_to_parent(char *path)
{
	char *const slash = strrchr(path, '/');
	ASSERT(slash != NULL);
	*slash = '\0';
}

static int backend_folder_open_file(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	return folder_open_path((struct backend_folder *)backend, name, O_RDONLY, out_file, err);
}

static int backend_folder_open_uncached(struct backend *backend, const char *name,
	struct backend_file **out_file, struct error *err)
{
	struct backend_folder *const folder = (struct backend_folder *)backend;
	char path[FOLDER_PATH_BYTES];
	if (folder_path(folder, name, path, err) != 0)
		return -1;
	const int fd = direct_reader_open(folder->files, path, err);
	if (fd < 0)
		return -1;
	struct folder_file *const file = file_new(folder, fd, path);
	atomic_init(&file->name_synced, true);
	file->direct = direct_reader_new(folder->files, fd, file->path);
	*out_file = &file->base;
	return 0;
}

static int backend_folder_append(
	struct backend_file *base, struct span bytes, uint64_t offset, struct error *err)
{
	const struct folder_file *const file = (const struct folder_file *)base;
	return file_write_at(folder_files(base), file->fd, bytes, (off_t)offset, file->path, err);
}

static const struct file_ops *folder_files(const struct backend_file *file)
{
	return ((const struct backend_folder *)file->backend)->files;
}

static int backend_folder_read(struct backend_file *base, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	const struct folder_file *const file = (const struct folder_file *)base;
	const struct file_ops *const files = folder_files(base);
	ASSERT(count >= 1 && count <= FOLDER_PARTS_MAX);
	if (file->direct != NULL)
		return read_direct(file, parts, count, offset, err);
	struct iovec rest[FOLDER_PARTS_MAX];
	memcpy(rest, parts, (size_t)count * sizeof(*rest));
	off_t at = (off_t)offset;
	for (int first = 0; first < count;) {
		const ssize_t got = files->preadv(files, file->fd, rest + first, count - first, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set_errno(err, "cannot read %s", file->path);
		if (got == 0)
			return error_set(err, ERROR_CORRUPT,
				"%s ends at byte %lld, inside a record.", file->path,
				(long long)at);
		at += got;
		first += folder_advance(rest + first, count - first, (size_t)got);
	}
	return 0;
}

static int read_direct(const struct folder_file *file, const struct iovec *parts, int count,
	uint64_t offset, struct error *err)
{
	int result = 0;
	for (int i = 0; result == 0 && i < count; i++) {
		result = direct_reader_read(file->direct, parts[i], offset, err);
		offset += parts[i].iov_len;
	}
	return result;
}

/* Drops the first `done` bytes of the parts. Returns how many parts are used up. */
static int folder_advance(struct iovec *parts, int count, size_t done)
{
	int used = 0;
	while (used < count && done >= parts[used].iov_len)
		done -= parts[used++].iov_len;
	if (used < count) {
		parts[used].iov_base = (uint8_t *)parts[used].iov_base + done;
		parts[used].iov_len -= done;
	}
	return used;
}

static int backend_folder_sync(struct backend_file *base, struct error *err)
{
	struct folder_file *const file = (struct folder_file *)base;
	if (file_sync(folder_files(base), file->fd, file->path, err) != 0)
		return -1;
	if (atomic_load(&file->name_synced))
		return 0;
	char parent[FOLDER_PATH_BYTES];
	snprintf(parent, sizeof(parent), "%s", file->path);
	folder_cut_to_parent(parent);
	if (file_sync_folder(folder_files(base), parent, err) != 0 ||
		folder_sync_parent((struct backend_folder *)base->backend, parent, err) != 0)
		return -1;
	atomic_store(&file->name_synced, true);
	return 0;
}

/* The maker of the parent may not have synced its name yet, or may have failed to, so every call
 * syncs it until that has succeeded once. */
static int folder_sync_parent(struct backend_folder *folder, const char *parent, struct error *err)
{
	uint8_t number; /* names are hex */
	const bool is_known =
		decode_hex(span_text(parent + strlen(parent) - FOLDER_PREFIX), &number, 1);
	if (is_known && atomic_load(&folder->parents_synced[number]))
		return 0;
	if (file_sync_folder(folder->files, folder->folder, err) != 0)
		return -1;
	if (is_known)
		atomic_store(&folder->parents_synced[number], true);
	return 0;
}

static int backend_folder_truncate(struct backend_file *base, uint64_t length, struct error *err)
{
	const struct folder_file *const file = (const struct folder_file *)base;
	const struct file_ops *const files = folder_files(base);
	return files->ftruncate(files, file->fd, (off_t)length) == 0
		? 0
		: error_set_errno(err, "cannot cut %s", file->path);
}

static int backend_folder_size(struct backend_file *base, uint64_t *out_size, struct error *err)
{
	const struct folder_file *const file = (const struct folder_file *)base;
	struct stat state;
	if (fstat(file->fd, &state) != 0)
		return error_set_errno(err, "cannot stat %s", file->path);
	*out_size = (uint64_t)state.st_size;
	return 0;
}

static void backend_folder_close(struct backend_file *base)
{
	struct folder_file *const file = (struct folder_file *)base;
	direct_reader_free(file->direct);
	close(file->fd);
	free(file);
}

static int backend_folder_put(
	struct backend *backend, const char *name, struct span bytes, struct error *err)
{
	return folder_put_by(backend, name, bytes, file_publish, err);
}

static int folder_put_by(struct backend *backend, const char *name, struct span bytes,
	int (*write)(const struct file_ops *, const char *, struct span, mode_t, struct error *),
	struct error *err)
{
	const struct backend_folder *const folder = (const struct backend_folder *)backend;
	char path[FOLDER_PATH_BYTES];
	if (folder_path(folder, name, path, err) != 0 ||
		folder_make_parent(folder->files, path, err) != 0)
		return -1;
	return write(folder->files, path, bytes, 0600, err);
}

static int backend_folder_put_derived(
	struct backend *backend, const char *name, struct span bytes, struct error *err)
{
	return folder_put_by(backend, name, bytes, file_place, err);
}

static int backend_folder_get(
	struct backend *backend, const char *name, struct buffer *out, struct error *err)
{
	char path[FOLDER_PATH_BYTES];
	if (folder_path((const struct backend_folder *)backend, name, path, err) != 0)
		return -1;
	return file_read_all(path, out, err);
}

static int backend_folder_remove(struct backend *backend, const char *name, struct error *err)
{
	const struct backend_folder *const folder = (const struct backend_folder *)backend;
	char path[FOLDER_PATH_BYTES];
	if (folder_path(folder, name, path, err) != 0)
		return -1;
	if (folder->files->unlink(folder->files, path) != 0 && errno != ENOENT)
		return error_set_errno(err, "cannot remove %s", path);
	folder_note_name((struct backend_folder *)backend, name);
	return 0;
}

/* Names begin with two hex digits; others are not tracked. */
static void folder_note_name(struct backend_folder *folder, const char *name)
{
	uint8_t number;
	if (decode_hex(span_of(name, FOLDER_PREFIX), &number, 1))
		atomic_store(&folder->names_changed[number], true);
}

static int backend_folder_list(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	const struct backend_folder *const folder = (const struct backend_folder *)backend;
	char **names = NULL;
	size_t count = 0;
	if (file_list(folder->folder, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char path[FOLDER_PATH_BYTES];
		snprintf(path, sizeof(path), "%s/%s", folder->folder, names[i]);
		if (strlen(names[i]) == FOLDER_PREFIX)
			result = folder_list_one(path, take, taker, err);
	}
	file_names_free(names, count);
	return result;
}

static int folder_list_one(const char *path, backend_take_fn *take, void *taker, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	if (file_list(path, &names, &count, err) != 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		result = folder_take_one(path, names[i], take, taker, err);
	file_names_free(names, count);
	return result;
}

/* Skips a name that vanished meanwhile. */
static int folder_take_one(
	const char *path, const char *name, backend_take_fn *take, void *taker, struct error *err)
{
	char full[FOLDER_PATH_BYTES + NAME_MAX];
	struct stat state;
	snprintf(full, sizeof(full), "%s/%s", path, name);
	if (stat(full, &state) == 0)
		return take(taker, name, (uint64_t)state.st_size, err);
	return errno == ENOENT ? 0 : error_set_errno(err, "cannot stat %s", full);
}

/* The new name is durable before the old one goes: whatever a power cut keeps, the file is in one
 * place or in both. */
static int backend_folder_set_aside(struct backend *backend, const char *name, struct error *err)
{
	struct backend_folder *folder = (struct backend_folder *)backend;
	char from[FOLDER_PATH_BYTES];
	char to[FOLDER_PATH_BYTES];
	if (folder_path(folder, name, from, err) != 0 ||
		find_place_aside(folder, name, from, to, err) != 0 ||
		file_make_folder(folder->files, folder->aside, 0700, err) != 0 ||
		give_name(folder, from, to, err) != 0 || sync_aside(folder, err) != 0)
		return -1;
	folder_note_name(folder, name);
	return take_name(folder, from, err);
}

/* A file that is already there is not replaced, because it may be the better one: NAME.1 and so on
 * are tried. A move that a power cut broke off has left both names. */
static int find_place_aside(const struct backend_folder *folder, const char *name, const char *from,
	char to[FOLDER_PATH_BYTES], struct error *err)
{
	char numbered[NAME_MAX + 1];
	int result = aside_path(folder, name, to, err);
	for (unsigned i = 1; result == 0 && file_exists(to) && !is_same_file(from, to); i++) {
		if (snprintf(numbered, sizeof(numbered), "%s.%u", name, i) >= (int)sizeof(numbered))
			return error_set(err, ERROR_INVALID,
				"The name %s is too long to get a number.", name);
		result = aside_path(folder, numbered, to, err);
	}
	return result;
}

static int aside_path(const struct backend_folder *folder, const char *name,
	char out[FOLDER_PATH_BYTES], struct error *err)
{
	if (snprintf(out, FOLDER_PATH_BYTES, "%s/%s", folder->aside, name) >= FOLDER_PATH_BYTES)
		return error_set(err, ERROR_INVALID, "The path of %s below %s is over %d bytes.",
			name, folder->aside, FOLDER_PATH_BYTES - 1);
	return 0;
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat a;
	struct stat b;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/* Without hard links the file is moved at once, even onto a name that an earlier move has left. */
static int give_name(
	const struct backend_folder *folder, const char *from, const char *to, struct error *err)
{
	const struct file_ops *files = folder->files;
	return files->link(files, from, to) == 0 || files->rename(files, from, to) == 0
		? 0
		: error_set_errno(err, "cannot move %s to %s", from, to);
}

static int sync_aside(struct backend_folder *folder, struct error *err)
{
	char parent[FOLDER_PATH_BYTES];
	if (file_sync_folder(folder->files, folder->aside, err) != 0)
		return -1;
	if (atomic_load(&folder->aside_synced))
		return 0;
	snprintf(parent, sizeof(parent), "%s", folder->aside);
	folder_cut_to_parent(parent);
	if (file_sync_folder(folder->files, parent, err) != 0)
		return -1;
	atomic_store(&folder->aside_synced, true);
	return 0;
}

static int take_name(const struct backend_folder *folder, const char *path, struct error *err)
{
	const struct file_ops *files = folder->files;
	return files->unlink(files, path) == 0 || errno == ENOENT
		? 0
		: error_set_errno(err, "cannot remove %s", path);
}

static int backend_folder_bring_back(struct backend *backend, const char *name, struct error *err)
{
	struct backend_folder *folder = (struct backend_folder *)backend;
	char from[FOLDER_PATH_BYTES];
	char to[FOLDER_PATH_BYTES];
	char part[FOLDER_PATH_BYTES];
	if (aside_path(folder, name, from, err) != 0 || folder_path(folder, name, to, err) != 0)
		return -1;
	snprintf(part, sizeof(part), "%s", to);
	folder_cut_to_parent(part);
	if (folder_make_parent(folder->files, to, err) != 0 ||
		give_name(folder, from, to, err) != 0 ||
		file_sync_folder(folder->files, part, err) != 0 ||
		folder_sync_parent(folder, part, err) != 0)
		return -1;
	atomic_store(&folder->aside_changed, true);
	return take_name(folder, from, err);
}

static int backend_folder_list_aside(
	struct backend *backend, backend_take_fn *take, void *taker, struct error *err)
{
	const struct backend_folder *folder = (const struct backend_folder *)backend;
	return file_exists(folder->aside) ? folder_list_one(folder->aside, take, taker, err) : 0;
}

static int backend_folder_sync_names(struct backend *backend, struct error *err)
{
	struct backend_folder *folder = (struct backend_folder *)backend;
	int result = sync_changed_aside(folder, err);
	for (unsigned i = 0; i < 256 && result == 0; i++)
		result = sync_part(folder, i, err);
	return result;
}

static int sync_changed_aside(struct backend_folder *folder, struct error *err)
{
	if (!atomic_exchange(&folder->aside_changed, false) || sync_aside(folder, err) == 0)
		return 0;
	atomic_store(&folder->aside_changed, true);
	return -1;
}

static int sync_part(struct backend_folder *folder, unsigned number, struct error *err)
{
	char path[FOLDER_PATH_BYTES];
	ASSERT(number < 256);
	if (!atomic_exchange(&folder->names_changed[number], false))
		return 0;
	snprintf(path, sizeof(path), "%s/%02x", folder->folder, number);
	if (!file_exists(path) ||
		file_sync_folder(folder->files, path, err) ==
			0) /* a name that never was there may be removed too */
		return 0;
	atomic_store(&folder->names_changed[number], true);
	return -1;
}

static void backend_folder_free(struct backend *backend)
{
	struct backend_folder *const folder = (struct backend_folder *)backend;
	free(folder->aside);
	free(folder->folder);
	free(folder);
}
