/* A thing is a file, a folder or a link, known by its inode; the disk holds it open (O_PATH,
 * which leaves SQLite's locks alone) so that its number is not given to another. */
#include "tests/unit/power_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/xxh3.h"
#include "base/memory.h"
#include "tests/unit/unit.h"

enum {
	TRACE_MAX_BYTES = 16 * 1024 * 1024,
	FILE_MAX_BYTES = 256 * 1024 * 1024,
	HEX_RUN = 16,
	WAL_HEADER_BYTES = 32
};

struct power_thing;
struct power_entry {
	char *name;
	struct power_thing *thing;
};
struct power_thing {
	dev_t device;
	ino_t inode;
	mode_t mode;
	int fd;
	struct buffer content;       /* of a file: as of its last sync; of a link: where it leads */
	struct power_entry *entries; /* of a folder: as of its last sync */
	size_t entry_count;
	struct power_thing *next;
};

struct power_disk {
	struct file_ops ops;
	pthread_mutex_t mutex;
	char *folder;
	struct power_thing *things;
	struct power_thing *root;
	struct buffer trace;
	struct buffer line; /* the last one */
	bool cuts_each;
	enum power_cut cut;
	unsigned mark;
	struct power_taken *taken;
	size_t taken_count;
	struct digest128 last_taken; /* of what is in the last one */
};

static char *join(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + strlen(name) + 2;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

static void name_fd(int fd, char out[64])
{
	snprintf(out, 64, "/proc/self/fd/%d", fd);
}

/* Takes the descriptor over. */
static struct power_thing *find_thing(struct power_disk *disk, int fd)
{
	struct stat facts;
	ck_assert_int_eq(fstat(fd, &facts), 0);
	for (struct power_thing *thing = disk->things; thing != NULL; thing = thing->next)
		if (thing->device == facts.st_dev && thing->inode == facts.st_ino) {
			close(fd);
			return thing;
		}
	struct power_thing *const thing = memory_new(sizeof *thing);
	*thing = (struct power_thing){.device = facts.st_dev,
		.inode = facts.st_ino,
		.mode = facts.st_mode,
		.fd = fd,
		.next = disk->things};
	buffer_init(&thing->content, FILE_MAX_BYTES);
	if (S_ISLNK(facts.st_mode)) {
		char target[PATH_MAX];
		const ssize_t len = readlinkat(fd, "", target, sizeof target);
		ck_assert_int_ge(len, 0);
		buffer_add(&thing->content, target, (size_t)len);
	}
	disk->things = thing;
	return thing;
}

/* NULL when it is gone. */
static struct power_thing *find_path(struct power_disk *disk, const char *path)
{
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? NULL : find_thing(disk, fd);
}

static void read_file(const struct power_thing *thing, struct buffer *out)
{
	char path[64];
	struct error err = {0};
	name_fd(thing->fd, path);
	ck_assert_msg(file_read_all(path, out, &err) == 0, "%s", err.text);
}

static void free_entries(struct power_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(entries[i].name);
	free(entries);
}

static void forget_entries(struct power_thing *thing)
{
	free_entries(thing->entries, thing->entry_count);
	thing->entries = NULL;
	thing->entry_count = 0;
}

static void read_entries(struct power_disk *disk, const struct power_thing *thing,
	struct power_entry **out, size_t *out_count)
{
	char path[64];
	char **names = NULL;
	struct error err = {0};
	size_t count;
	name_fd(thing->fd, path);
	*out_count = 0;
	if (file_list(path, &names, &count, &err) != 0 && err.kind == ERROR_NOT_FOUND)
		count = 0; /* it was removed, and something remembers it */
	else
		ck_assert_msg(err.kind == ERROR_NONE, "%s", err.text);
	*out = memory_new_array(count + 1, sizeof **out);
	for (size_t i = 0; i < count; i++) {
		char *const child = join(path, names[i]);
		struct power_thing *const found = find_path(disk, child);
		if (found != NULL)
			(*out)[(*out_count)++] =
				(struct power_entry){memory_copy_text(names[i]), found};
		free(child);
	}
	file_names_free(names, count);
}

static void make_durable(struct power_disk *disk, struct power_thing *thing)
{
	if (S_ISDIR(thing->mode)) {
		forget_entries(thing);
		read_entries(disk, thing, &thing->entries, &thing->entry_count);
	} else if (S_ISREG(thing->mode)) {
		buffer_reset(&thing->content);
		read_file(thing, &thing->content);
	}
}

/* SQLite would lose its locks if its files were opened and closed here. */
static bool is_database(const char *name)
{
	const char *const end = strstr(name, ".db");
	return end != NULL && (end[3] == '\0' || end[3] == '-');
}

static void make_all_durable(struct power_disk *disk, struct power_thing *thing)
{
	make_durable(disk, thing);
	for (size_t i = 0; i < thing->entry_count; i++)
		if (!is_database(thing->entries[i].name))
			make_all_durable(disk, thing->entries[i].thing);
}

/* The path below the folder, random parts left out. */
static void add_path(const struct power_disk *disk, const char *path, struct buffer *line)
{
	const size_t len = strlen(disk->folder);
	const bool is_below =
		strncmp(path, disk->folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
	const char *at = !is_below ? path : path[len] == '\0' ? "." : path + len + 1;
	while (*at != '\0') {
		const size_t run = strspn(at, "0123456789abcdef");
		if (run >= HEX_RUN)
			buffer_add_byte(line, '*');
		else
			buffer_add(line, at, run > 0 ? run : 1);
		at += run > 0 ? run : 1;
	}
}

static void take(struct power_disk *disk, const char *line);

/* Enters the table, before what `word` and the paths say happens. `to` may be NULL. */
static struct power_disk *enter(
	const struct file_ops *ops, const char *word, const char *path, const char *to)
{
	struct power_disk *const disk = ops->state;
	struct buffer line;
	buffer_init(&line, TRACE_MAX_BYTES);
	buffer_format(&line, "%s ", word);
	pthread_mutex_lock(&disk->mutex);
	add_path(disk, path, &line);
	if (to != NULL) {
		buffer_add_byte(&line, ' ');
		add_path(disk, to, &line);
	}
	const bool repeats = strcmp(word, "write") == 0 &&
		span_equal(buffer_span(&line), buffer_span(&disk->line));
	buffer_release(&disk->line);
	disk->line = line;
	if (!repeats && disk->cuts_each)
		take(disk, buffer_text(&line));
	if (!repeats)
		buffer_format(&disk->trace, "%s\n", buffer_text(&line));
	return disk;
}

static void leave(struct power_disk *disk)
{
	const int saved = errno;
	pthread_mutex_unlock(&disk->mutex);
	errno = saved;
}

static struct power_disk *enter_fd(const struct file_ops *ops, const char *word, int fd)
{
	char link[64];
	char path[PATH_MAX];
	name_fd(fd, link);
	const ssize_t len = readlink(link, path, sizeof path - 1);
	ck_assert_int_gt(len, 0);
	path[len] = '\0';
	return enter(ops, word, path, NULL);
}

static int power_open(const struct file_ops *ops, const char *path, int flags, mode_t mode)
{
	const struct file_ops *const real = file_system();
	struct stat facts;
	const bool is_there = lstat(path, &facts) == 0;
	const bool makes = (flags & O_CREAT) != 0 && !is_there;
	if (!makes && ((flags & O_TRUNC) == 0 || !is_there))
		return real->open(real, path, flags, mode);
	struct power_disk *const disk = enter(ops, makes ? "create" : "cut", path, NULL);
	const int fd = real->open(real, path, flags, mode);
	leave(disk);
	return fd;
}

static ssize_t power_pwrite(
	const struct file_ops *ops, int fd, const void *data, size_t len, off_t offset)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter_fd(ops, "write", fd);
	const ssize_t wrote = real->pwrite(real, fd, data, len, offset);
	leave(disk);
	return wrote;
}

static ssize_t power_preadv(
	const struct file_ops *ops, int fd, const struct iovec *parts, int count, off_t offset)
{
	const struct file_ops *const real = file_system();
	(void)ops;
	return real->preadv(real, fd, parts, count, offset);
}

static int power_fdatasync(const struct file_ops *ops, int fd)
{
	char path[64];
	struct stat facts;
	ck_assert_int_eq(fstat(fd, &facts), 0);
	struct power_disk *const disk =
		enter_fd(ops, S_ISDIR(facts.st_mode) ? "sync-folder" : "sync", fd);
	name_fd(fd, path);
	const int own = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_ge(own, 0);
	make_durable(disk, find_thing(disk, own));
	leave(disk);
	return 0;
}

static int power_ftruncate(const struct file_ops *ops, int fd, off_t length)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter_fd(ops, "cut", fd);
	const int result = real->ftruncate(real, fd, length);
	leave(disk);
	return result;
}

static int power_rename(const struct file_ops *ops, const char *from, const char *to)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "rename", from, to);
	const int result = real->rename(real, from, to);
	leave(disk);
	return result;
}

static int power_unlink(const struct file_ops *ops, const char *path)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "unlink", path, NULL);
	const int result = real->unlink(real, path);
	leave(disk);
	return result;
}

static int power_mkdir(const struct file_ops *ops, const char *path, mode_t mode)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "mkdir", path, NULL);
	const int result = real->mkdir(real, path, mode);
	leave(disk);
	return result;
}

static int power_rmdir(const struct file_ops *ops, const char *path)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "rmdir", path, NULL);
	const int result = real->rmdir(real, path);
	leave(disk);
	return result;
}

static int power_link(const struct file_ops *ops, const char *from, const char *to)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "link", from, to);
	const int result = real->link(real, from, to);
	leave(disk);
	return result;
}

static int power_symlink(const struct file_ops *ops, const char *target, const char *path)
{
	const struct file_ops *const real = file_system();
	struct power_disk *const disk = enter(ops, "symlink", target, path);
	const int result = real->symlink(real, target, path);
	leave(disk);
	return result;
}

static int power_space(const struct file_ops *ops, const char *path, struct file_space *out)
{
	const struct file_ops *const real = file_system();
	(void)ops;
	return real->space(real, path, out);
}

struct power_disk *power_disk_new(const char *folder)
{
	struct power_disk *const disk = memory_new(sizeof *disk);
	disk->ops = (struct file_ops){
		.open = power_open,
		.pwrite = power_pwrite,
		.preadv = power_preadv,
		.fdatasync = power_fdatasync,
		.ftruncate = power_ftruncate,
		.rename = power_rename,
		.unlink = power_unlink,
		.mkdir = power_mkdir,
		.rmdir = power_rmdir,
		.link = power_link,
		.symlink = power_symlink,
		.space = power_space,
		.state = disk,
	};
	pthread_mutex_init(&disk->mutex, NULL);
	disk->folder = realpath(folder, NULL);
	ck_assert(disk->folder != NULL);
	buffer_init(&disk->trace, TRACE_MAX_BYTES);
	disk->root = find_path(disk, folder);
	ck_assert(disk->root != NULL);
	make_all_durable(disk, disk->root);
	return disk;
}

void power_disk_free(struct power_disk *disk)
{
	while (disk->things != NULL) {
		struct power_thing *const thing = disk->things;
		disk->things = thing->next;
		forget_entries(thing);
		buffer_release(&thing->content);
		close(thing->fd);
		free(thing);
	}
	for (size_t i = 0; i < disk->taken_count; i++) {
		unit_scratch_remove(disk->taken[i].folder);
		free(disk->taken[i].line);
	}
	free(disk->taken);
	buffer_release(&disk->line);
	buffer_release(&disk->trace);
	pthread_mutex_destroy(&disk->mutex);
	free(disk->folder);
	free(disk);
}

const struct file_ops *power_disk_files(const struct power_disk *disk)
{
	return &disk->ops;
}

const char *power_disk_trace(const struct power_disk *disk)
{
	return buffer_text(&disk->trace);
}

void power_disk_forget_trace(struct power_disk *disk)
{
	buffer_reset(&disk->trace);
	buffer_reset(&disk->line);
}

size_t power_disk_count(const struct power_disk *disk, const char *line)
{
	struct span rest = buffer_span(&disk->trace);
	struct span found;
	size_t count = 0;
	while (span_split(&rest, '\n', &found))
		count += span_equal_text(found, line);
	return count;
}

void power_disk_cut_each(struct power_disk *disk, enum power_cut cut)
{
	pthread_mutex_lock(&disk->mutex);
	disk->cuts_each = true;
	disk->cut = cut;
	pthread_mutex_unlock(&disk->mutex);
}

void power_disk_mark(struct power_disk *disk, unsigned mark)
{
	pthread_mutex_lock(&disk->mutex);
	disk->mark = mark;
	pthread_mutex_unlock(&disk->mutex);
}

const struct power_taken *power_disk_taken(const struct power_disk *disk, size_t *out_count)
{
	*out_count = disk->taken_count;
	return disk->taken;
}

/* What a cut keeps of that which was not synced. */
enum unsynced { UNSYNCED_LOST, UNSYNCED_ZEROS, UNSYNCED_KEPT };
enum { NAMES_LOST = 0, NAMES_UPPER = 1, NAMES_LOWER = 2, NAMES_KEPT = 3 };
struct kept {
	unsigned names; /* bit 0: of folders at even depths, bit 1: of those at odd ones */
	enum unsynced content;
};
static const struct kept kept_by[POWER_CUTS] = {
	[POWER_CUT_DROPS_ALL] = {NAMES_LOST, UNSYNCED_LOST},
	[POWER_CUT_KEEPS_ALL] = {NAMES_KEPT, UNSYNCED_KEPT},
	[POWER_CUT_KEEPS_NAMES] = {NAMES_KEPT, UNSYNCED_LOST},
	[POWER_CUT_KEEPS_LENGTHS] = {NAMES_KEPT, UNSYNCED_ZEROS},
	[POWER_CUT_KEEPS_CONTENT] = {NAMES_LOST, UNSYNCED_KEPT},
	[POWER_CUT_KEEPS_UPPER] = {NAMES_UPPER, UNSYNCED_LOST},
	[POWER_CUT_KEEPS_LOWER] = {NAMES_LOWER, UNSYNCED_LOST},
};

/* What a cut leaves of one thing. */
struct leftover {
	char *path; /* below the folder */
	mode_t mode;
	struct buffer bytes; /* of a file; of a link: where it leads */
};
struct leftovers {
	struct leftover *items; /* a folder comes before what is in it */
	size_t count;
};

static struct buffer *add_leftover(struct leftovers *all, const char *path, mode_t mode)
{
	all->items = memory_grow(all->items, all->count + 1, sizeof *all->items);
	struct leftover *const item = &all->items[all->count++];
	*item = (struct leftover){.path = memory_copy_text(path), .mode = mode};
	buffer_init(&item->bytes, FILE_MAX_BYTES);
	return &item->bytes;
}

static void leftovers_release(struct leftovers *all)
{
	for (size_t i = 0; i < all->count; i++) {
		free(all->items[i].path);
		buffer_release(&all->items[i].bytes);
	}
	free(all->items);
}

static struct digest128 leftovers_digest(const struct leftovers *all)
{
	struct xxh3_stream *const stream = xxh3_stream_new();
	for (size_t i = 0; i < all->count; i++) {
		const struct leftover *const item = &all->items[i];
		xxh3_stream_add(stream, span_of(item->path, strlen(item->path) + 1));
		xxh3_stream_add(stream, span_of(&item->mode, sizeof item->mode));
		xxh3_stream_add(stream, span_of(&item->bytes.len, sizeof item->bytes.len));
		xxh3_stream_add(stream, buffer_span(&item->bytes));
	}
	const struct digest128 digest = xxh3_stream_result(stream);
	xxh3_stream_free(stream);
	return digest;
}

static void write_file(const struct leftover *item, const char *path)
{
	struct error err = {0};
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, item->mode & 0777);
	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_msg(
		file_write_at(file_system(), fd, buffer_span(&item->bytes), 0, path, &err) == 0,
		"%s", err.text);
	close(fd);
}

static char *write_leftovers(const struct leftovers *all)
{
	char *const folder = unit_scratch_make();
	for (size_t i = 0; i < all->count; i++) {
		const struct leftover *const item = &all->items[i];
		char *const path = join(folder, item->path);
		if (S_ISDIR(item->mode))
			ck_assert_int_eq(mkdir(path, item->mode & 0777), 0);
		else if (S_ISLNK(item->mode))
			ck_assert_int_eq(symlink(buffer_text(&item->bytes), path), 0);
		else
			write_file(item, path);
		free(path);
	}
	return folder;
}

static void cut_file(const struct power_thing *thing, enum unsynced content, struct buffer *bytes)
{
	read_file(thing, bytes);
	const size_t length = bytes->len;
	if (content != UNSYNCED_KEPT) {
		buffer_reset(bytes);
		buffer_add_span(bytes, buffer_span(&thing->content));
	}
	while (content == UNSYNCED_ZEROS && bytes->len < length)
		buffer_add_byte(bytes, 0);
}

static void read_whole(const char *path, struct buffer *out)
{
	struct error err = {0};
	buffer_reset(out);
	if (file_exists(path))
		ck_assert_msg(file_read_all(path, out, &err) == 0, "%s", err.text);
}

static bool same_beginning(const struct buffer *a, const struct buffer *b)
{
	return span_equal(span_slice(buffer_span(a), 0, WAL_HEADER_BYTES),
		span_slice(buffer_span(b), 0, WAL_HEADER_BYTES));
}

/* The database, then its log, which holds all that a checkpoint may be moving meanwhile; again
 * when the log began from its start in between. */
static void cut_database(struct leftovers *all, const char *from, const char *to)
{
	struct buffer before;
	struct buffer base;
	struct buffer log;
	char *const log_from = memory_new(strlen(from) + 5);
	char *const log_to = memory_new(strlen(to) + 5);
	stpcpy(stpcpy(log_from, from), "-wal");
	stpcpy(stpcpy(log_to, to), "-wal");
	buffer_init(&before, FILE_MAX_BYTES);
	buffer_init(&base, FILE_MAX_BYTES);
	buffer_init(&log, FILE_MAX_BYTES);
	do {
		read_whole(log_from, &before);
		read_whole(from, &base);
		read_whole(log_from, &log);
	} while (!same_beginning(&before, &log));
	buffer_add_span(add_leftover(all, to, S_IFREG | 0600), buffer_span(&base));
	if (log.len > 0)
		buffer_add_span(add_leftover(all, log_to, S_IFREG | 0600), buffer_span(&log));
	buffer_release(&log);
	buffer_release(&base);
	buffer_release(&before);
	free(log_to);
	free(log_from);
}

static void cut_databases(struct leftovers *all, const struct power_thing *folder, const char *to)
{
	char path[64];
	char **names;
	struct error err = {0};
	size_t count;
	name_fd(folder->fd, path);
	if (file_list(path, &names, &count, &err) != 0)
		return; /* the folder is gone, and they are with it */
	for (size_t i = 0; i < count; i++) {
		if (!is_database(names[i]) || strchr(strstr(names[i], ".db"), '-') != NULL)
			continue;
		char *const from = join(path, names[i]);
		char *const copy = join(to, names[i]);
		cut_database(all, from, copy);
		free(copy);
		free(from);
	}
	file_names_free(names, count);
}

/* One cut on its way. */
struct cutting {
	struct power_disk *disk;
	const struct kept *kept;
	unsigned depth;
	struct leftovers left;
};

static void cut_folder(struct cutting *cutting, struct power_thing *thing, const char *to);

static void cut_thing(struct cutting *cutting, struct power_thing *thing, const char *to)
{
	struct buffer *const bytes = add_leftover(&cutting->left, to, thing->mode);
	if (S_ISREG(thing->mode))
		cut_file(thing, cutting->kept->content, bytes);
	else if (S_ISLNK(thing->mode))
		buffer_add_span(bytes, buffer_span(&thing->content));
	else if (S_ISDIR(thing->mode))
		cut_folder(cutting, thing, to);
}

static void cut_folder(struct cutting *cutting, struct power_thing *thing, const char *to)
{
	const bool keeps_names = (cutting->kept->names >> cutting->depth % 2 & 1) != 0;
	struct power_entry *entries = thing->entries;
	size_t count = thing->entry_count;
	if (keeps_names)
		read_entries(cutting->disk, thing, &entries, &count);
	cutting->depth++;
	for (size_t i = 0; i < count; i++) {
		char *const path = join(to, entries[i].name);
		if (!is_database(entries[i].name))
			cut_thing(cutting, entries[i].thing, path);
		free(path);
	}
	cutting->depth--;
	if (keeps_names)
		free_entries(entries, count);
	cut_databases(&cutting->left, thing, to);
}

static struct leftovers cut_all(struct power_disk *disk, enum power_cut cut)
{
	struct cutting cutting = {.disk = disk, .kept = &kept_by[cut]};
	cut_folder(&cutting, disk->root, ".");
	return cutting.left;
}

char *power_disk_cut(struct power_disk *disk, enum power_cut cut)
{
	pthread_mutex_lock(&disk->mutex);
	struct leftovers left = cut_all(disk, cut);
	pthread_mutex_unlock(&disk->mutex);
	char *const folder = write_leftovers(&left);
	leftovers_release(&left);
	return folder;
}

static void take(struct power_disk *disk, const char *line)
{
	struct leftovers left = cut_all(disk, disk->cut);
	const struct digest128 digest = leftovers_digest(&left);
	const bool is_known = disk->taken_count > 0 &&
		digest128_equal(&digest, &disk->last_taken) &&
		disk->taken[disk->taken_count - 1].mark == disk->mark;
	if (!is_known) {
		disk->taken = memory_grow(disk->taken, disk->taken_count + 1, sizeof *disk->taken);
		disk->taken[disk->taken_count++] = (struct power_taken){
			write_leftovers(&left), memory_copy_text(line), disk->mark};
		disk->last_taken = digest;
	}
	leftovers_release(&left);
}

void power_disk_cut_now(struct power_disk *disk, const char *line)
{
	pthread_mutex_lock(&disk->mutex);
	take(disk, line);
	pthread_mutex_unlock(&disk->mutex);
}
