/* The lock is taken before anything else is read or made. The master key is made only while there
 * is no store, because a new key could not open the secrets in it. The key is published with its
 * name synced; a start that finds a key but no store syncs the name again, because the process that
 * made the key may have been killed in between. */
#include "server/data_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "server/folder_entry.h"
#include "server/folder_owner.h"

struct store_entry {
	const char *name;
	bool is_folder;
};

static int make_folder(const struct data_folder *folder, struct error *err);
static int find_store(const char *folder, bool *out_has, struct error *err);
static int find_entry(const char *folder, const struct store_entry *entry, bool *out_has,
	struct error *err);
static bool is_file(const char *folder, const char *name, const char *file);
static int make_absolute(struct data_folder *folder, struct error *err);
static int refuse_half(const struct data_folder *folder, struct error *err);
static int open_key(struct data_folder *folder, const char *master_key_file, struct error *err);
static int sync_new_key(const struct data_folder *folder, const char *path, struct error *err);
static int take_lock(struct data_folder *folder, struct error *err);
static int refuse_user(const struct data_folder *folder, const char *lock_path, struct error *err);
static int advise_user(const char *folder, struct error *err);
static int refuse_lock(int lock_fd, const char *path, struct error *err);
static void sign_lock(const struct data_folder *folder, const char *path);
static int check_mode(const char *path, struct error *err);
static int make_key(struct data_folder *folder, const char *path, struct error *err);

/* One of these, and of folders one with something in it, shows that there is a store. A first start
 * that was killed may have left empty folders. */
static const struct store_entry store_entries[] = {{"catalog.db", false}, {"catalog.db-wal", false},
	{"acknowledged", false}, {"journal", true}, {"packs", true}};
enum { STORE_ENTRIES = sizeof(store_entries) / sizeof(store_entries[0]) };

char *data_folder_path(const char *folder, const char *name)
{
	const size_t len = strlen(folder) + 1 + strlen(name) + 1;
	char *const path = memory_new(len);
	snprintf(path, len, "%s/%s", folder, name);
	return path;
}

int data_folder_open(struct data_folder *folder, const struct file_ops *files, const char *path,
	const char *master_key_file, bool create, struct error *err)
{
	if (data_folder_lock(folder, files, path, create, err) != 0)
		return -1;
	if (refuse_half(folder, err) == 0 && open_key(folder, master_key_file, err) == 0)
		return 0;
	data_folder_close(folder);
	return -1;
}

int data_folder_lock(struct data_folder *folder, const struct file_ops *files, const char *path,
	bool create, struct error *err)
{
	ASSERT(files != NULL && path != NULL);
	*folder =
		(struct data_folder){.files = files, .path = memory_copy_text(path), .lock_fd = -1};
	int outcome = create ? make_folder(folder, err) : data_folder_need_store(path, err);
	if (outcome == 0)
		outcome = make_absolute(folder, err);
	if (outcome == 0)
		outcome = take_lock(folder, err);
	/* Temporary files of a rebuild are as large as the catalog, so they go to the same disk. */
	if (outcome == 0)
		setenv("SQLITE_TMPDIR", folder->path, 0);
	if (outcome != 0)
		data_folder_close(folder);
	return outcome;
}

int data_folder_read_key(const char *path, uint8_t out[MASTER_KEY_BYTES], struct error *err)
{
	struct buffer text;
	buffer_init(&text, 1024);
	int outcome = check_mode(path, err);
	if (outcome == 0)
		outcome = file_read_all(path, &text, err);
	if (outcome == 0) {
		struct span digits = buffer_span(&text);
		if (digits.len > 0 && digits.data[digits.len - 1] == '\n')
			digits.len--;
		if (!decode_hex(digits, out, MASTER_KEY_BYTES))
			outcome = error_set(err, ERROR_CORRUPT,
				"the master key %s is not %d hex digits", path,
				2 * MASTER_KEY_BYTES);
	}
	if (text.data != NULL)
		explicit_bzero(text.data, text.len);
	buffer_release(&text);
	return outcome;
}

int data_folder_need_store(const char *path, struct error *err)
{
	bool has = false;
	if (data_folder_need(path, err) != 0)
		return -1;
	if (find_store(path, &has, err) != 0)
		return advise_user(path, err);
	return has ? 0
		   : error_set(err, ERROR_NOT_FOUND,
			     "there is no store in %s (no catalog.db)", path);
}

int data_folder_need(const char *path, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0 && errno == ENOENT)
		return error_set(err, ERROR_NOT_FOUND, "there is no data folder %s", path);
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "cannot look at the data folder %s", path);
	return S_ISDIR(facts.st_mode)
		? 0
		: error_set(err, ERROR_INVALID, "%s is not a folder", path);
}

int data_folder_check_new(const char *path, const char *settings_file, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	bool has = false;
	if (!file_exists(path))
		return 0;
	if (find_store(path, &has, err) != 0 || (!has && file_list(path, &names, &count, err) != 0))
		return advise_user(path, err);
	int outcome = 0;
	for (size_t i = 0; i < count && outcome == 0; i++)
		if (!folder_entry_is_known(names[i]) && strcmp(names[i], "lost+found") != 0 &&
			!is_file(path, names[i], settings_file))
			outcome = error_set(err, ERROR_EXISTS,
				"there is no store in the data folder %s, and it has other files, such as"
				" %.100s: name an empty or a new folder",
				path, names[i]);
	file_names_free(names, count);
	return outcome;
}

void data_folder_close(struct data_folder *folder)
{
	if (folder->path != NULL && folder->lock_fd >= 0) {
		folder_owner_give(folder->path);
		close(folder->lock_fd);
	}
	free(folder->path);
	explicit_bzero(folder->master_key, sizeof(folder->master_key));
	*folder = (struct data_folder){.path = NULL, .lock_fd = -1};
}

static int make_folder(const struct data_folder *folder, struct error *err)
{
	return file_exists(folder->path)
		? data_folder_need(folder->path, err)
		: file_make_folder(folder->files, folder->path, 0700, err);
}

static int find_store(const char *folder, bool *out_has, struct error *err)
{
	*out_has = false;
	for (size_t i = 0; i < STORE_ENTRIES && !*out_has; i++)
		if (find_entry(folder, &store_entries[i], out_has, err) != 0)
			return -1;
	return 0;
}

static int find_entry(const char *folder, const struct store_entry *entry, bool *out_has,
	struct error *err)
{
	char *const path = data_folder_path(folder, entry->name);
	char **names = NULL;
	size_t count = 0;
	int outcome = file_find(path, out_has, err);
	if (outcome == 0 && *out_has && entry->is_folder) {
		outcome = file_list(path, &names, &count, err);
		*out_has = count > 0;
	}
	file_names_free(names, count);
	free(path);
	return outcome;
}

/* Whether the entry of the folder is this file; NULL: no. */
static bool is_file(const char *folder, const char *name, const char *file)
{
	struct stat entry;
	struct stat facts;
	char *const path = data_folder_path(folder, name);
	const bool is_same = file != NULL && stat(path, &entry) == 0 && stat(file, &facts) == 0 &&
		entry.st_dev == facts.st_dev && entry.st_ino == facts.st_ino;
	free(path);
	return is_same;
}

/* Makes the path absolute, so that printed paths, such as that of the CA, are valid everywhere. */
static int make_absolute(struct data_folder *folder, struct error *err)
{
	char *const absolute = realpath(folder->path, NULL);
	if (absolute == NULL)
		return error_set_errno(err, "cannot resolve the data folder %s", folder->path);
	free(folder->path);
	folder->path = absolute;
	return 0;
}

/* A restore makes the catalog last. */
static int refuse_half(const struct data_folder *folder, struct error *err)
{
	char *const mark = data_folder_path(folder->path, "restoring");
	char *const catalog = data_folder_path(folder->path, "catalog.db");
	const bool is_half = file_exists(mark) && !file_exists(catalog);
	free(mark);
	free(catalog);
	return !is_half
		? 0
		: error_set(err, ERROR_NOT_FOUND,
			  "a restore to %s was interrupted: repeat it (deltabucketd restore), and it goes on",
			  folder->path);
}

static int open_key(struct data_folder *folder, const char *master_key_file, struct error *err)
{
	char *const path = master_key_file != NULL ? memory_copy_text(master_key_file)
						   : data_folder_path(folder->path, "master.key");
	const bool is_there = file_exists(path);
	int outcome = is_there ? data_folder_read_key(path, folder->master_key, err)
			       : make_key(folder, path, err);
	if (outcome != 0 && is_there)
		advise_user(folder->path, err);
	if (outcome == 0 && is_there && master_key_file == NULL)
		outcome = sync_new_key(folder, path, err);
	free(path);
	return outcome;
}

/* A start that was killed while it made the key may have left the name unsynced. */
static int sync_new_key(const struct data_folder *folder, const char *path, struct error *err)
{
	bool has = false;
	if (find_store(folder->path, &has, err) != 0)
		return -1;
	return has ? 0 : file_sync_name(folder->files, path, err);
}

static int take_lock(struct data_folder *folder, struct error *err)
{
	char *const path = data_folder_path(folder->path, "lock");
	int outcome = 0;
	folder->lock_fd = folder->files->open(folder->files, path, O_RDWR | O_CREAT, 0600);
	if (folder->lock_fd < 0 &&
		errno == EROFS) /* On a read-only disk the folder itself can be locked. */
		folder->lock_fd = folder->files->open(
			folder->files, file_exists(path) ? path : folder->path, O_RDONLY, 0);
	if (folder->lock_fd < 0)
		outcome = refuse_user(folder, path, err);
	else if (flock(folder->lock_fd, LOCK_EX | LOCK_NB) != 0)
		outcome = errno == EWOULDBLOCK ? refuse_lock(folder->lock_fd, path, err)
					       : error_set_errno(err, "cannot lock %s", path);
	else
		sign_lock(folder, path);
	free(path);
	return outcome;
}

/* Sets the error from errno. If the folder belongs to another user, the message says so. */
static int refuse_user(const struct data_folder *folder, const char *lock_path, struct error *err)
{
	error_set_errno(err, "cannot open %s", lock_path);
	return advise_user(folder->path, err);
}

static int advise_user(const char *folder, struct error *err)
{
	struct stat facts;
	char owner[FOLDER_OWNER_BYTES];
	char user[FOLDER_OWNER_BYTES];
	if (err->kind != ERROR_DENIED || stat(folder, &facts) != 0)
		return -1;
	if (facts.st_uid == geteuid())
		return folder_owner_advise(folder, err);
	folder_owner_name(facts.st_uid, owner);
	folder_owner_name(geteuid(), user);
	return error_advise(err,
		"the data folder %s belongs to the user %s, and this is the user %s: run it as %s"
		" (sudo -u %s)%s",
		folder, owner, user, owner, owner, facts.st_uid != 0 ? " or as root" : "");
}

static int refuse_lock(int lock_fd, const char *path, struct error *err)
{
	char text[24] = "";
	const ssize_t length = pread(lock_fd, text, sizeof(text) - 1, 0);
	const long process = length > 0 ? strtol(text, NULL, 10) : 0;
	if (process <= 0)
		return error_set(err, ERROR_BUSY,
			"%s is locked: a server or command is using this data folder", path);
	return error_set(err, ERROR_BUSY,
		"%s is locked: process %ld, a server or command, is using this data folder", path,
		process);
}

/* Writes the process id for the message of a second process. A failure is ignored. */
static void sign_lock(const struct data_folder *folder, const char *path)
{
	char text[24];
	struct error ignored = {0};
	snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (folder->files->ftruncate(folder->files, folder->lock_fd, 0) == 0)
		(void)file_write_at(
			folder->files, folder->lock_fd, span_text(text), 0, path, &ignored);
}

static int check_mode(const char *path, struct error *err)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "cannot read the mode of %s", path);
	if ((facts.st_mode & (S_IRWXO | S_IWGRP)) != 0)
		return error_set(err, ERROR_DENIED,
			"the master key %s is open to others (mode %04o); make it 0600", path,
			facts.st_mode & 07777U);
	return 0;
}

static int make_key(struct data_folder *folder, const char *path, struct error *err)
{
	bool has = false;
	if (find_store(folder->path, &has, err) != 0)
		return -1;
	if (has)
		return error_set(err, ERROR_NOT_FOUND,
			"the master key %s is missing, and without it the secrets in this store cannot be read; "
			"restore it (backups leave it out on purpose)",
			path);
	char text[2 * MASTER_KEY_BYTES + 2];
	random_bytes(folder->master_key, sizeof(folder->master_key));
	encode_hex(span_of(folder->master_key, sizeof(folder->master_key)), text);
	text[2 * MASTER_KEY_BYTES] = '\n';
	const int published = file_publish(
		folder->files, path, span_of(text, 2 * MASTER_KEY_BYTES + 1), 0600, err);
	explicit_bzero(text, sizeof(text));
	return published;
}
