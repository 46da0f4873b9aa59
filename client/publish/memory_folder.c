/* The name of a folder says whose it is: the prefix, the user, the process with its start time, and
 * a random number, because one process may have several. Whether the owner lives is known by the
 * lock alone, which ends with the process: process numbers mean nothing between containers that
 * share the place.
 *
 * A folder is made, then locked. In between another process may take it for left over and remove
 * it. So the owner looks again when it has the lock, and makes another one if it has to. */
#include "client/publish/memory_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "client/local/folder_files.h"
#include "client/local/folder_lock.h"

enum { NAME_BYTES = 96, TRIES_MAX = 16, START_FIELD = 22 };

static const char PREFIX[] = "deltabucket-publish-";

static bool has_room(const char *place, uint64_t bytes, struct file_space *out_space);
static int refuse_space(const struct memory_places *places, uint64_t bytes, struct error *err);
static void say_disk(const struct memory_places *places, uint64_t bytes,
	const struct file_space *space, const struct output *output);
static void remove_left(const char *place);
static bool is_left(const char *path, int *out_lock);
static int make(struct memory_folder *folder, const char *place, struct error *err);
static int try_make(struct memory_folder *folder, const char *place, struct error *err);
static bool is_there(int lock, const char *path);
static void print_name(char out[NAME_BYTES]);
static uint64_t start_time(void);

struct memory_places memory_folder_places(void)
{
	const char *const disk = getenv("TMPDIR");
	return (struct memory_places){
		.memory = "/dev/shm", .disk = disk != NULL && disk[0] == '/' ? disk : "/tmp"};
}

int memory_folder_open(struct memory_folder *folder, const struct memory_places *places,
	uint64_t bytes, const struct output *output, struct error *err)
{
	struct file_space in_memory = {0};
	struct file_space on_disk = {0};
	*folder = (struct memory_folder){.lock_fd = -1};
	remove_left(places->memory);
	remove_left(places->disk);
	if (has_room(places->memory, bytes, &in_memory))
		return make(folder, places->memory, err);
	if (!has_room(places->disk, bytes, &on_disk))
		return refuse_space(places, bytes, err);
	say_disk(places, bytes, &in_memory, output);
	return make(folder, places->disk, err);
}

void memory_folder_close(struct memory_folder *folder)
{
	struct error ignored = {0};
	if (folder->path != NULL)
		file_remove_tree(file_system(), folder->path, &ignored);
	folder_lock_leave(folder->lock_fd);
	free(folder->path);
	*folder = (struct memory_folder){.lock_fd = -1};
}

/* *out_space stays zero where there is no such place. */
static bool has_room(const char *place, uint64_t bytes, struct file_space *out_space)
{
	const struct file_ops *const files = file_system();
	return access(place, W_OK | X_OK) == 0 && files->space(files, place, out_space) == 0 &&
		out_space->free >= bytes;
}

static int refuse_space(const struct memory_places *places, uint64_t bytes, struct error *err)
{
	char size[OUTPUT_SIZE_BYTES];
	output_format_size(bytes, size);
	return error_set(err, ERROR_NO_SPACE,
		"the publisher needs %s for the step that it published last, and neither %s nor %s "
		"has so much room; make room, or give it a state folder",
		size, places->memory, places->disk);
}

static void say_disk(const struct memory_places *places, uint64_t bytes,
	const struct file_space *space, const struct output *output)
{
	char needed[OUTPUT_SIZE_BYTES];
	char free_bytes[OUTPUT_SIZE_BYTES];
	output_format_size(bytes, needed);
	output_format_size(space->free, free_bytes);
	output_note(output,
		"%s has %s free and the publisher needs %s: it keeps the step that it published "
		"last in %s, on a disk",
		places->memory, free_bytes, needed, places->disk);
}

/* Failures are ignored: what stays is found by the next one. */
static void remove_left(const char *place)
{
	char **names = NULL;
	size_t count = 0;
	struct error ignored = {0};
	if (file_list(place, &names, &count, &ignored) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		int lock = -1;
		if (strncmp(names[i], PREFIX, strlen(PREFIX)) != 0)
			continue;
		char *const path = folder_files_join(place, names[i]);
		if (is_left(path, &lock))
			file_remove_tree(file_system(), path, &ignored);
		folder_lock_leave(lock);
		free(path);
	}
	file_names_free(names, count);
}

/* Whether it is a folder of this user whose owner does not live any more. Takes the lock. */
static bool is_left(const char *path, int *out_lock)
{
	struct stat facts;
	struct error ignored = {0};
	if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
		return false;
	*out_lock = folder_lock_enter(path, "publisher", &ignored);
	return *out_lock >= 0 && is_there(*out_lock, path);
}

static int make(struct memory_folder *folder, const char *place, struct error *err)
{
	int made = 0;
	for (unsigned i = 0; i < TRIES_MAX && made == 0; i++)
		made = try_make(folder, place, err);
	if (made == 0)
		return error_set(err, ERROR_BUSY,
			"%s: a folder that was made there was removed at once", place);
	return made > 0 ? 0 : -1;
}

/* 1, or 0 when another process has removed the folder before it was locked. */
static int try_make(struct memory_folder *folder, const char *place, struct error *err)
{
	char name[NAME_BYTES];
	struct error ignored = {0};
	print_name(name);
	char *const path = folder_files_join(place, name);
	if (file_system()->mkdir(file_system(), path, 0700) != 0) {
		error_set_errno(err, "making %s", path);
		free(path);
		return -1;
	}
	const int lock = folder_lock_enter(path, "publisher", &ignored);
	if (lock >= 0 && is_there(lock, path)) {
		*folder = (struct memory_folder){.path = path, .lock_fd = lock};
		return 1;
	}
	folder_lock_leave(lock);
	free(path);
	return 0;
}

static bool is_there(int lock, const char *path)
{
	struct stat locked;
	struct stat there;
	return fstat(lock, &locked) == 0 && lstat(path, &there) == 0 &&
		locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

static void print_name(char out[NAME_BYTES])
{
	uint64_t number = 0;
	random_bytes(&number, sizeof(number));
	const int length = snprintf(out, NAME_BYTES, "%s%u-%ld-%" PRIu64 "-%08" PRIx32, PREFIX,
		(unsigned)geteuid(), (long)getpid(), start_time(), (uint32_t)number);
	ASSERT(length > 0 && length < NAME_BYTES);
}

/* Of this process, in clock ticks since the system began; 0 when it is not known. The second field
 * of the line is the program's name, which may hold spaces. */
static uint64_t start_time(void)
{
	char line[1024] = "";
	FILE *const file = fopen("/proc/self/stat", "re");
	if (file == NULL)
		return 0;
	const bool has_line = fgets(line, sizeof(line), file) != NULL;
	fclose(file);
	const char *const name_end = has_line ? strrchr(line, ')') : NULL;
	if (name_end == NULL)
		return 0;
	struct span rest = span_text(name_end + 1);
	struct span word = {0};
	uint64_t start = 0;
	for (unsigned i = 2; i <= START_FIELD; i++)
		if (!span_split(&rest, ' ', &word))
			return 0;
	return span_parse_u64(word, &start) ? start : 0;
}
