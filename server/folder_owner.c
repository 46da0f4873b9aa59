/* Folders are opened by name below the folder around them, without following links, and files are
 * changed through the descriptor that was looked at. So whoever may write to the data folder cannot
 * put another file in the way. */
#include "server/folder_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/data_folder.h"
#include "server/folder_entry.h"

enum { DEPTH_MAX = 4 };

static void give_all(int folder, const struct stat *to, int depth);
static void give_one(int folder, const char *name, const struct stat *to, int depth);
static bool is_barred(const char *path, uid_t *out_owner);
static void advise(const char *folder, const char *path, uid_t owner, struct error *err);

void folder_owner_give(const char *folder)
{
	struct stat facts;
	if (geteuid() != 0)
		return;
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &facts) == 0 && facts.st_uid != 0)
		give_all(fd, &facts, 0);
	else
		close(fd);
}

int folder_owner_advise(const char *folder, struct error *err)
{
	char **names = NULL;
	size_t count = 0;
	struct error ignored = {0};
	uid_t owner = geteuid();
	if (geteuid() == 0 || file_list(folder, &names, &count, &ignored) != 0)
		return -1;
	for (size_t i = 0; i < count && owner == geteuid(); i++) {
		char *const path = data_folder_path(folder, names[i]);
		if (folder_entry_is_known(names[i]) && is_barred(path, &owner))
			advise(folder, path, owner, err);
		free(path);
	}
	file_names_free(names, count);
	return -1;
}

void folder_owner_name(uid_t user, char out[FOLDER_OWNER_BYTES])
{
	struct passwd entry;
	struct passwd *found = NULL;
	char room[4096];
	snprintf(out, FOLDER_OWNER_BYTES, "%lu", (unsigned long)user);
	if (getpwuid_r(user, &entry, room, sizeof(room), &found) == 0 && found != NULL)
		snprintf(out, FOLDER_OWNER_BYTES, "%s", entry.pw_name);
}

/* Closes the folder. */
static void give_all(int folder, const struct stat *to, int depth)
{
	DIR *const listing = fdopendir(folder);
	const struct dirent *entry;
	if (listing == NULL) {
		close(folder);
		return;
	}
	while ((entry = readdir(listing)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			(depth > 0 || folder_entry_is_known(entry->d_name)))
			give_one(folder, entry->d_name, to, depth);
	closedir(listing);
}

static void give_one(int folder, const char *name, const struct stat *to, int depth)
{
	struct stat facts;
	const int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	const bool is_there = fstat(fd, &facts) == 0;
	const bool is_folder = is_there && S_ISDIR(facts.st_mode);
	if (is_there && facts.st_uid == 0 && (is_folder || facts.st_nlink == 1))
		(void)!fchownat(fd, "", to->st_uid, to->st_gid, AT_EMPTY_PATH);
	const int inside = is_folder && depth < DEPTH_MAX
		? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		: -1;
	close(fd);
	if (inside >= 0)
		give_all(inside, to, depth + 1);
}

static bool is_barred(const char *path, uid_t *out_owner)
{
	struct stat facts;
	if (lstat(path, &facts) != 0 || facts.st_uid == geteuid() || S_ISLNK(facts.st_mode))
		return false;
	const int wanted = R_OK | W_OK | (S_ISDIR(facts.st_mode) ? X_OK : 0);
	if (access(path, wanted) == 0 || errno != EACCES)
		return false;
	*out_owner = facts.st_uid;
	return true;
}

static void advise(const char *folder, const char *path, uid_t owner, struct error *err)
{
	char one[FOLDER_OWNER_BYTES];
	char other[FOLDER_OWNER_BYTES];
	folder_owner_name(owner, one);
	folder_owner_name(geteuid(), other);
	error_advise(err, "%s belongs to the user %s, and this is the user %s: chown -R %s: %s",
		path, one, other, other, folder);
}
