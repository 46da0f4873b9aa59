#include "client/local/folder_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

void folder_lock_leave(int fd)
{
	if (fd >= 0)
		close(fd);
}
