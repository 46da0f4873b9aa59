/* The states are: begun, files added, committed. All is built at `temp`, beside the target, so that
 * one rename moves it on the same file system. A commit syncs all files, then the folders from the
 * deepest up, renames, and syncs the parent. A name that a crash may take back must not be reported
 * as there: if the last sync fails, the commit removes the result again. */
#include "weights/model/staging.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "weights/model/relative_path.h"

enum { TOKEN_BYTES = 8, PIECE_BYTES = 8 << 20 };

struct staging {
	const struct file_ops *ops;
	bool is_folder;
	bool committed;
	char *out;
	char *parent;
	char *temp;
	struct staged_file **files;
	size_t count;
	char **folders; /* in the order made: temp if it is a folder, then those below it */
	size_t folder_count;
	int *scratch; /* descriptors of unnamed files */
	size_t scratch_count;
};

static void split_out(struct staging *staging, const char *out);
static void name_temp(struct staging *staging);
static void note_folder(struct staging *staging, char *path);
static char *place(struct staging *staging, struct span path, struct error *err);
static int make_parents(struct staging *staging, const char *path, struct error *err);
static bool knows_folder(const struct staging *staging, const char *path);
static int create(
	struct staging *staging, struct span path, char **out_path, int *out_fd, struct error *err);
static int write_pieces(
	const struct file_ops *ops, int fd, struct span bytes, const char *path, struct error *err);
static int sync_all(struct staging *staging, struct error *err);

struct staging *staging_begin(
	const struct file_ops *ops, const char *out, bool is_folder, struct error *err)
{
	ASSERT(ops != NULL && out != NULL);
	struct staging *const staging = memory_new(sizeof(*staging));
	staging->ops = ops;
	staging->is_folder = is_folder;
	split_out(staging, out);
	name_temp(staging);
	int result = 0;
	if (out[0] == 0)
		result = error_set(err, ERROR_INVALID, "the path to write to is empty");
	else if (file_exists(staging->out))
		result = error_set(err, ERROR_EXISTS, "'%s' exists already", staging->out);
	else if (!file_exists(staging->parent))
		result = error_set(
			err, ERROR_NOT_FOUND, "the folder '%s' does not exist", staging->parent);
	else if (is_folder)
		result = file_make_folder(staging->ops, staging->temp, 0755, err);
	if (result != 0) {
		staging_free(staging);
		return NULL;
	}
	if (is_folder)
		note_folder(staging, memory_copy_text(staging->temp));
	return staging;
}

int staging_link(struct staging *staging, struct span path, const char *from, struct error *err)
{
	char *const to = place(staging, path, err);
	const int result = to == NULL ? -1 : file_share(staging->ops, from, to, err);
	free(to);
	return result;
}

const struct staged_file *staging_add(struct staging *staging, struct span path, struct error *err)
{
	struct staged_file *const file = memory_new(sizeof(*file));
	file->fd = -1;
	if (create(staging, path, &file->path, &file->fd, err) != 0) {
		free(file->path);
		free(file);
		return NULL;
	}
	staging->files = memory_grow(staging->files, staging->count + 1, sizeof(staging->files[0]));
	staging->files[staging->count++] = file;
	return file;
}

int staging_put(struct staging *staging, struct span path, struct span bytes, struct error *err)
{
	char *full_path = NULL;
	int fd = -1;
	int result = create(staging, path, &full_path, &fd, err);
	if (result == 0)
		result = write_pieces(staging->ops, fd, bytes, full_path, err);
	if (result == 0)
		result = file_sync(staging->ops, fd, full_path, err);
	if (fd >= 0)
		close(fd);
	free(full_path);
	return result;
}

int staging_scratch(struct staging *staging, struct error *err)
{
	uint8_t token[TOKEN_BYTES];
	char name[2 * TOKEN_BYTES + 16] = ".part-";
	random_bytes(token, sizeof(token));
	encode_hex(span_of(token, sizeof(token)), name + strlen(name));
	char *const path = relative_path_join(
		staging->is_folder ? staging->temp : staging->parent, span_text(name));
	const int fd =
		staging->ops->open(staging->ops, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const int result = fd >= 0 ? 0 : error_set_errno(err, "cannot make '%s'", path);
	if (fd >= 0 && staging->ops->unlink(staging->ops, path) != 0) {
		error_set_errno(err, "cannot unlink '%s'", path);
		close(fd);
		(void)staging->ops->unlink(staging->ops, path);
		free(path);
		return -1;
	}
	free(path);
	if (result != 0)
		return -1;
	staging->scratch = memory_grow(
		staging->scratch, staging->scratch_count + 1, sizeof(staging->scratch[0]));
	staging->scratch[staging->scratch_count++] = fd;
	return fd;
}

int staging_commit(struct staging *staging, struct error *err)
{
	ASSERT(!staging->committed);
	if (sync_all(staging, err) != 0)
		return -1;
	if (file_exists(staging->out))
		return error_set(
			err, ERROR_EXISTS, "'%s' has been created in the meantime", staging->out);
	if (staging->ops->rename(staging->ops, staging->temp, staging->out) != 0)
		return error_set_errno(
			err, "cannot rename '%s' to '%s'", staging->temp, staging->out);
	staging->committed = true;
	if (file_sync_folder(staging->ops, staging->parent, err) == 0)
		return 0;
	/* The name may or may not survive a crash. The caller gets a failure, so it must not find
	 * the result. */
	struct error unused;
	(void)file_remove_tree(staging->ops, staging->out, &unused);
	return -1;
}

void staging_free(struct staging *staging)
{
	if (staging == NULL)
		return;
	for (size_t i = 0; i < staging->count; i++) {
		close(staging->files[i]->fd);
		free(staging->files[i]->path);
		free(staging->files[i]);
	}
	for (size_t i = 0; i < staging->scratch_count; i++)
		close(staging->scratch[i]);
	free(staging->scratch);
	struct error unused;
	if (!staging->committed)
		(void)file_remove_tree(staging->ops, staging->temp, &unused);
	for (size_t i = 0; i < staging->folder_count; i++)
		free(staging->folders[i]);
	free(staging->folders);
	free(staging->files);
	free(staging->out);
	free(staging->parent);
	free(staging->temp);
	free(staging);
}

/* Sets staging->out, without trailing slashes, and the folder that it is in. */
static void split_out(struct staging *staging, const char *out)
{
	size_t len = strlen(out);
	while (len > 1 && out[len - 1] == '/')
		len--;
	staging->out = memory_new(len + 1);
	memcpy(staging->out, out, len);
	const char *const slash = strrchr(staging->out, '/');
	staging->parent = slash == NULL ? memory_copy_text(".") : memory_copy_text(staging->out);
	if (slash != NULL)
		staging->parent[slash == staging->out ? 1 : slash - staging->out] = 0;
}

static void name_temp(struct staging *staging)
{
	uint8_t token[TOKEN_BYTES];
	char text[2 * TOKEN_BYTES + 1];
	random_bytes(token, sizeof(token));
	encode_hex(span_of(token, sizeof(token)), text);
	char name[sizeof(text) + 8];
	snprintf(name, sizeof(name), STAGING_PREFIX "%s", text);
	staging->temp = relative_path_join(staging->parent, span_text(name));
}

static void note_folder(struct staging *staging, char *path)
{
	staging->folders = memory_grow(
		staging->folders, staging->folder_count + 1, sizeof(staging->folders[0]));
	staging->folders[staging->folder_count++] = path;
}

/* Returns the path where a file is built and makes its folders. The caller frees it. NULL on
 * failure. */
static char *place(struct staging *staging, struct span path, struct error *err)
{
	ASSERT(!staging->committed);
	if (!staging->is_folder)
		return memory_copy_text(staging->temp);
	if (!relative_path_is_valid(path)) {
		error_set(err, ERROR_INVALID,
			"a file of '%s' has a path that leads elsewhere or is malformed",
			staging->out);
		return NULL;
	}
	char *const made = relative_path_join(staging->temp, path);
	if (make_parents(staging, made, err) == 0)
		return made;
	free(made);
	return NULL;
}

/* Makes every folder between temp and the file. */
static int make_parents(struct staging *staging, const char *path, struct error *err)
{
	const size_t start = strlen(staging->temp) + 1;
	for (const char *slash = strchr(path + start, '/'); slash != NULL;
		slash = strchr(slash + 1, '/')) {
		char *const folder = memory_copy_text(path);
		folder[slash - path] = 0;
		if (knows_folder(staging, folder)) {
			free(folder);
			continue;
		}
		note_folder(staging, folder);
		if (file_make_folder(staging->ops, folder, 0755, err) != 0)
			return -1;
	}
	return 0;
}

static bool knows_folder(const struct staging *staging, const char *path)
{
	for (size_t i = staging->folder_count; i-- > 0;)
		if (strcmp(staging->folders[i], path) == 0)
			return true;
	return false;
}

/* Opens a new file. The caller frees *out_path, also after a failure. */
static int create(
	struct staging *staging, struct span path, char **out_path, int *out_fd, struct error *err)
{
	*out_path = place(staging, path, err);
	if (*out_path == NULL)
		return -1;
	*out_fd = staging->ops->open(
		staging->ops, *out_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return *out_fd >= 0 ? 0 : error_set_errno(err, "cannot make '%s'", *out_path);
}

static int write_pieces(
	const struct file_ops *ops, int fd, struct span bytes, const char *path, struct error *err)
{
	for (size_t from = 0; from < bytes.len; from += PIECE_BYTES)
		if (file_write_at(ops, fd, span_slice(bytes, from, PIECE_BYTES), (off_t)from, path,
			    err) != 0)
			return -1;
	return 0;
}

static int sync_all(struct staging *staging, struct error *err)
{
	for (size_t i = 0; i < staging->count; i++)
		if (file_sync(staging->ops, staging->files[i]->fd, staging->files[i]->path, err) !=
			0)
			return -1;
	/* A folder was made before those in it, so this order syncs entries before the folder that
	 * names them. */
	for (size_t i = staging->folder_count; i-- > 0;)
		if (file_sync_folder(staging->ops, staging->folders[i], err) != 0)
			return -1;
	return 0;
}
