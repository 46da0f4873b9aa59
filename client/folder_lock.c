#include "client/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

int folder_lock_enter(const char *folder, const char *file, const char *who, struct error *err)
{
	char path[4096];
	if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
		return error_set(err, ERROR_INVALID, "the path %s is too long", folder);
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set_errno(err, "opening %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		error_set(err, ERROR_BUSY, "another %s works in %s", who, folder);
	else
		error_set_errno(err, "locking %s", path);
	close(fd);
	return -1;
}

void folder_lock_leave(int fd)
{
	if (fd >= 0)
		close(fd);
}
