/* Folders have random names, so that several jobs work at once and nothing has to be looked up. The
 * folders of an earlier process are removed at a start. Its versions stay until deleting is
 * allowed: the highest one is noted at the start, and versions up to it are released later, one
 * change each. */
#include "storage/objects/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/core/committer.h"
#include "storage/core/store.h"
#include "storage/objects/object_read.h"
#include "storage/versions/scratch_row.h"

enum { NAME_BYTES = 8, FETCH_PIECE_BYTES = 1024 * 1024, FETCH_ARENA_BYTES = 256 * 1024 };

struct scratch {
	const struct file_ops *files;
	char *path;
};

struct poured { /* into a file */
	uint64_t size;
	struct digest128 digest;
};

struct scratch_release {
	struct change change; /* must be the first member */
	int64_t version;
};

static char *join(const char *folder, const char *name);
static int write_object(struct store *store, const struct object *object, int fd, const char *path,
	struct error *err);
static int pour(const struct file_ops *files, struct body_source *source, int fd, const char *path,
	struct poured *out, struct error *err);
static void blame_names(struct error *err);
static int scratch_apply_release(struct change *change, struct db *db, struct error *err);
static int find_left(struct store *store, int64_t *out_version, struct error *err);
static int note_left(struct store *store, struct error *err);

struct scratch *scratch_open(struct store *store, struct error *err)
{
	uint8_t random[NAME_BYTES];
	char name[2 * NAME_BYTES + 1];
	if (disk_floor_check(store_disk_floor(store), err) != 0)
		return NULL;
	random_bytes(random, sizeof(random));
	encode_hex(span_of(random, sizeof(random)), name);
	char *const all = join(store_folder(store), "scratch");
	struct scratch *const scratch = memory_new(sizeof(*scratch));
	scratch->files = store_files(store);
	scratch->path = join(all, name);
	free(all);
	if (file_make_folder(scratch->files, scratch->path, 0700, err) == 0)
		return scratch;
	free(scratch->path);
	free(scratch);
	return NULL;
}

const char *scratch_path(const struct scratch *scratch)
{
	return scratch->path;
}

void scratch_hide_paths(struct store *store, struct error *err)
{
	char *const all = join(store_folder(store), "scratch/");
	/* the folder's name and a slash */
	const size_t folder = strlen(all) + 2 * (size_t)NAME_BYTES + 1;
	for (char *at = err->text; (at = strstr(at, all)) != NULL;) {
		const size_t left = strlen(at);
		const size_t gone = left < folder ? left : folder;
		memmove(at, at + gone, left - gone + 1);
	}
	free(all);
}

void scratch_close(struct scratch *scratch)
{
	struct error ignored;
	if (scratch == NULL)
		return;
	/* the next start removes files that stay */
	(void)file_remove_tree(scratch->files, scratch->path, &ignored);
	free(scratch->path);
	free(scratch);
}

int scratch_fetch(struct store *store, int64_t version, const char *path, struct error *err)
{
	const struct file_ops *const files = store_files(store);
	struct arena *const arena = arena_new(FETCH_ARENA_BYTES);
	struct object object;
	int result = -1;
	if (object_find_sequence(store, version, arena, &object, err) == 0 &&
		file_make_parent(files, path, 0700, err) == 0) {
		const int fd =
			files->open(files, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		result = fd < 0 ? error_set_errno(err, "%s: cannot be made", path)
				: write_object(store, &object, fd, path, err);
		if (fd >= 0)
			close(fd);
		if (fd >= 0 && result != 0)
			(void)files->unlink(files, path);
	}
	if (result != 0)
		blame_names(err);
	arena_free(arena);
	return result;
}

int scratch_release(struct store *store, int64_t version, struct error *err)
{
	struct scratch_release release = {
		.change = {.apply = scratch_apply_release}, .version = version};
	return committer_run(store_committer(store), &release.change, err);
}

int scratch_release_left(struct store *store, struct error *err)
{
	int64_t version = 0;
	int found = find_left(store, &version, err);
	while (found == 1)
		found = scratch_release(store, version, err) == 0 ? find_left(store, &version, err)
								  : -1;
	return found;
}

int scratch_recover(struct store *store, struct error *err)
{
	char *all = join(store_folder(store), "scratch");
	int result = file_remove_tree(store_files(store), all, err);
	if (result != 0 && !store_takes_work(store))
		result = 0; /* the store takes no work, so the files are in nobody's way */
	free(all);
	return result != 0 ? -1 : note_left(store, err);
}

static char *join(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

static int write_object(struct store *store, const struct object *object, int fd, const char *path,
	struct error *err)
{
	struct body_source *const source = object_open(store, object, 0, object->size, err);
	struct poured poured;
	if (source == NULL)
		return -1;
	const int result = pour(store_files(store), source, fd, path, &poured, err);
	source->close(source);
	if (result != 0)
		return -1;
	if (poured.size == object->size &&
		(!object->has_digest || digest128_equal(&poured.digest, &object->digest)))
		return 0;
	return error_set(err, ERROR_CORRUPT, "The object '%.*s' is not what its digest says.",
		(int)(object->key.len > 200 ? 200 : object->key.len),
		(const char *)object->key.data);
}

/* Reads the source to its end into the file. */
static int pour(const struct file_ops *files, struct body_source *source, int fd, const char *path,
	struct poured *out, struct error *err)
{
	uint8_t *const piece = memory_new(FETCH_PIECE_BYTES);
	struct xxh3_stream *const digest = xxh3_stream_new();
	ptrdiff_t got;
	int result = 0;
	out->size = 0;
	while (result == 0 && (got = source->read(source, piece, FETCH_PIECE_BYTES, err)) != 0) {
		ASSERT(got <= FETCH_PIECE_BYTES);
		const struct span bytes = span_of(piece, got < 0 ? 0 : (size_t)got);
		result =
			got < 0 ? -1 : file_write_at(files, fd, bytes, (off_t)out->size, path, err);
		xxh3_stream_add(digest, bytes);
		out->size += bytes.len;
	}
	out->digest = xxh3_stream_result(digest);
	xxh3_stream_free(digest);
	free(piece);
	return result;
}

/* Names that cannot lie beside each other in a folder are the fault of the objects, not of the
 * disk: the error becomes invalid. */
static void blame_names(struct error *err)
{
	static const int names[] = {ENAMETOOLONG, ENOTDIR, EISDIR, EEXIST};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (err->os_errno == names[i])
			err->kind = ERROR_INVALID;
}

static int scratch_apply_release(struct change *change, struct db *db, struct error *err)
{
	return scratch_row_release(db, ((struct scratch_release *)change)->version, err);
}

/* Finds a version that an earlier process left. 1 found, 0 none, -1. */
static int find_left(struct store *store, int64_t *out_version, struct error *err)
{
	struct db *db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int found = scratch_row_find(db, store_parts(store)->scratch_left, out_version, err);
	store_reader_give(store, db);
	return found;
}

/* Versions stay until a later start when the table cannot be read. */
static int note_left(struct store *store, struct error *err)
{
	int64_t last = 0;
	struct db *db = store_reader_take(store, err);
	if (db == NULL)
		return -1;
	int result = scratch_row_last(db, &last, err);
	store_reader_give(store, db);
	store_parts(store)->scratch_left = result == 0 ? last : 0;
	if (result == 0 || err->kind != ERROR_DAMAGED)
		return result;
	log_failure(store_log(store), LOG_ERROR, NULL, "scratch_not_read", err);
	return 0;
}
