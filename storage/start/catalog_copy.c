/* All users may write to the place of the copy. So the folder of a copy is new, has a name that
 * cannot be guessed, and only its owner may enter it. Leftovers are removed only from folders that
 * this user owns, and through a descriptor, so that a link cannot redirect the removal. The process
 * that uses a copy has its folder locked; the system drops the lock when the process ends in any
 * way. */
#include "storage/start/catalog_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/encode.h"
#include "base/memory.h"
#include "base/random.h"

enum { PATH_BYTES = 4096, PREFIX_BYTES = 64, NAME_BYTES = 8, PLACES = 3 };

struct catalog_copy {
	const struct file_ops *files;
	char *folder;
	char *path;
	int fd; /* of the folder, locked */
};

static void remove_leftovers(const struct file_ops *files, const char *catalog_path);
static void list_places(const char *out[PLACES]);
static void name_prefix(const char *catalog_path, char out[PREFIX_BYTES]);
static void remove_leftovers_in(
	const struct file_ops *files, const char *place, const char *prefix);
static int take_folder(const char *path);
static void remove_folder(const struct file_ops *files, int fd, const char *path);
static uint64_t size_of(const char *path);
static const char *find_place(const struct file_ops *files, uint64_t bytes);
static bool fits(const struct file_ops *files, const char *folder, uint64_t bytes);
static int make_folder(
	struct catalog_copy *copy, const char *place, const char *catalog_path, struct error *err);
static int copy_file(const struct file_ops *files, const char *from,
	const struct catalog_copy *copy, const char *suffix, struct error *err);

struct catalog_copy *catalog_copy_make(
	const struct file_ops *files, const char *catalog_path, struct error *err)
{
	char log_path[PATH_BYTES];
	snprintf(log_path, sizeof(log_path), "%s-wal", catalog_path);
	remove_leftovers(files, catalog_path);
	uint64_t bytes = size_of(catalog_path) + size_of(log_path);
	const char *place = find_place(files, bytes);
	if (place == NULL) {
		error_set(err, ERROR_NO_SPACE,
			"A store that is only read needs a copy of its catalog in memory, and twice its %llu"
			" bytes fit neither into /dev/shm nor into $TMPDIR nor into /tmp.",
			(unsigned long long)bytes);
		return NULL;
	}
	struct catalog_copy *copy = memory_new(sizeof(*copy));
	copy->files = files;
	copy->fd = -1;
	if (make_folder(copy, place, catalog_path, err) == 0 &&
		copy_file(files, catalog_path, copy, "", err) == 0 &&
		copy_file(files, log_path, copy, "-wal", err) == 0)
		return copy;
	catalog_copy_free(copy);
	return NULL;
}

const char *catalog_copy_path(const struct catalog_copy *copy)
{
	return copy->path;
}

void catalog_copy_free(struct catalog_copy *copy)
{
	if (copy == NULL)
		return;
	if (copy->fd >= 0)
		remove_folder(copy->files, copy->fd, copy->folder);
	free(copy->folder);
	free(copy->path);
	free(copy);
}

static void remove_leftovers(const struct file_ops *files, const char *catalog_path)
{
	const char *places[PLACES];
	char prefix[PREFIX_BYTES];
	list_places(places);
	name_prefix(catalog_path, prefix);
	for (size_t i = 0; i < PLACES; i++)
		if (places[i] != NULL)
			remove_leftovers_in(files, places[i], prefix);
}

static void list_places(const char *out[PLACES])
{
	out[0] = "/dev/shm";
	out[1] = getenv("TMPDIR");
	out[2] = "/tmp";
}

/* The name of each copy of this catalog begins with it. */
static void name_prefix(const char *catalog_path, char out[PREFIX_BYTES])
{
	snprintf(out, PREFIX_BYTES, "deltabucket-catalog-%016llx-",
		(unsigned long long)xxh3_64(span_text(catalog_path)));
}

static void remove_leftovers_in(const struct file_ops *files, const char *place, const char *prefix)
{
	struct error ignored;
	char **names = NULL;
	size_t count = 0;
	if (file_list(place, &names, &count, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof(path), "%s/%s", place, names[i]);
		int fd = strncmp(names[i], prefix, strlen(prefix)) == 0 ? take_folder(path) : -1;
		if (fd >= 0)
			remove_folder(files, fd, path);
	}
	file_names_free(names, count);
}

/* Opens and locks the folder. -1 when it belongs to another user, or a process uses it. */
static int take_folder(const char *path)
{
	struct stat state;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &state) == 0 && state.st_uid == geteuid() && (state.st_mode & 077) == 0 &&
		flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Reaches the files through the descriptor, because `path` may be another folder by now. */
static void remove_folder(const struct file_ops *files, int fd, const char *path)
{
	static const char *const names[] = {
		"catalog.db", "catalog.db-wal", "catalog.db-shm", "catalog.db-journal"};
	ASSERT(fd >= 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char name[64];
		snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", fd, names[i]);
		(void)files->unlink(files, name);
	}
	(void)files->rmdir(files, path);
	close(fd);
}

static uint64_t size_of(const char *path)
{
	struct error ignored;
	uint64_t size = 0;
	return file_size(path, &size, &ignored) == 0 ? size : 0;
}

static const char *find_place(const struct file_ops *files, uint64_t bytes)
{
	const char *places[PLACES];
	list_places(places);
	for (size_t i = 0; i < PLACES; i++)
		if (fits(files, places[i], bytes))
			return places[i];
	return NULL;
}

/* Whether twice the size fits: a checkpoint moves the copied log into the copied catalog. */
static bool fits(const struct file_ops *files, const char *folder, uint64_t bytes)
{
	struct file_space space;
	return folder != NULL && files->space(files, folder, &space) == 0 && space.free / 2 > bytes;
}

static int make_folder(
	struct catalog_copy *copy, const char *place, const char *catalog_path, struct error *err)
{
	ASSERT(copy->fd < 0 && copy->path == NULL);
	const struct file_ops *files = copy->files;
	uint8_t random[NAME_BYTES];
	char name[2 * NAME_BYTES + 1];
	char prefix[PREFIX_BYTES];
	char folder[PATH_BYTES];
	char path[PATH_BYTES + 32];
	random_bytes(random, sizeof(random));
	encode_hex(span_of(random, sizeof(random)), name);
	name_prefix(catalog_path, prefix);
	snprintf(folder, sizeof(folder), "%s/%s%s", place, prefix, name);
	if (files->mkdir(files, folder, 0700) != 0)
		return error_set_errno(err, "cannot make %s", folder);
	copy->fd = take_folder(folder);
	if (copy->fd < 0) {
		(void)files->rmdir(files, folder);
		return error_set(
			err, ERROR_IO, "The folder %s cannot be opened and locked.", folder);
	}
	snprintf(path, sizeof(path), "%s/catalog.db", folder);
	copy->folder = memory_copy_text(folder);
	copy->path = memory_copy_text(path);
	return 0;
}

static int copy_file(const struct file_ops *files, const char *from,
	const struct catalog_copy *copy, const char *suffix, struct error *err)
{
	char to[PATH_BYTES + 32];
	snprintf(to, sizeof(to), "%s%s", copy->path, suffix);
	return file_exists(from) ? file_clone(files, from, to, err) : 0;
}
