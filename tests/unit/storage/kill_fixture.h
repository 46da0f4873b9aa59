/* A child process that is killed at its n-th write, sync, rename, unlink or open, for tests that
 * look at the files it leaves. */
#ifndef TESTS_UNIT_STORAGE_KILL_FIXTURE_H
#define TESTS_UNIT_STORAGE_KILL_FIXTURE_H

#include <stdbool.h>

#include "base/file.h"

enum {
	KILL_ANYWHERE = FILE_FAULT_WRITE | FILE_FAULT_SYNC | FILE_FAULT_RENAME | FILE_FAULT_UNLINK |
		FILE_FAULT_OPEN
};

struct kill_child {
	int kinds;     /* of enum file_fault */
	int countdown; /* this number of them succeeds */
	/* runs in the child; returns 0 when it was not killed */
	int (*work)(const struct kill_child *child, const struct file_ops *files);
	void *owner; /* for work */
	int pipe;    /* for kill_child_tell */
};
/* Runs it. True when it ended, false when it was killed; anything else fails the test. *out_told
 * (may be NULL) counts its calls of kill_child_tell. */
bool kill_child_run(struct kill_child *child, int *out_told);
/* Called in the child: one more operation was acknowledged. */
void kill_child_tell(const struct kill_child *child);

#endif
