#include "client/local/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static bool is_of(int fd, const char *folder);

int folder_lock_enter(const char *folder, const char *who, struct error *err)
{
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set_errno(err, "opening %s", folder);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		error_set(err, ERROR_BUSY, "another %s works in %s", who, folder);
	else
		error_set_errno(err, "locking %s", folder);
	close(fd);
	return -1;
}

int folder_lock_keep(int held, const char *folder, const char *who, struct error *err)
{
	return is_of(held, folder) ? held : folder_lock_enter(folder, who, err);
}

void folder_lock_leave(int fd)
{
	file_close_locked(fd);
}

static bool is_of(int fd, const char *folder)
{
	struct stat locked;
	struct stat there;
	return fd >= 0 && fstat(fd, &locked) == 0 && stat(folder, &there) == 0 &&
		locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}
