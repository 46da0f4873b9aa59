#include "tests/unit/storage/log_sync_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int seen;
static atomic_int failing;
static void (*before_failure)(void);

static bool is_log(int fd)
{
	static const char LOG[] = "catalog.db-wal";
	char link[64];
	char path[4096];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t len = readlink(link, path, sizeof path);
	const size_t suffix = sizeof LOG - 1;
	return len >= (ssize_t)suffix && memcmp(path + len - suffix, LOG, suffix) == 0;
}

/* The checkpointer syncs the log, too, once a second. */
static bool is_committer(void)
{
	char name[16] = "";
	pthread_getname_np(pthread_self(), name, sizeof name);
	return strcmp(name, "committer") == 0;
}

static int sync_by(long call, int fd)
{
	const bool counts = is_log(fd);
	seen += counts;
	if (counts && failing > 0 && is_committer() && failing-- > 0) {
		if (before_failure != NULL)
			before_failure();
		errno = EIO;
		return -1;
	}
	return (int)syscall(call, fd);
}

/* The two take the place of libc's for libsqlite3 too, so their names may not be hidden. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
	return sync_by(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	return sync_by(SYS_fsync, fd);
}

int log_syncs_count(void)
{
	return seen;
}

void log_syncs_fail(int count, void (*before)(void))
{
	before_failure = before;
	failing = count;
}
