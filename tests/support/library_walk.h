/* The parts of the program library_walk, which uses libdeltabucket as a program in C would. Each
 * ends the program with a sentence when something is not as the contract says. */
#ifndef TESTS_SUPPORT_LIBRARY_WALK_H
#define TESTS_SUPPORT_LIBRARY_WALK_H

#include "library/deltabucket.h"

enum { WALK_PATH_BYTES = 4096, WALK_OWN_BYTES = 64 };

/* Where the walk goes: borrowed by all threads, changed by none. */
struct walk {
	struct deltabucket_client *client;
	const char *folder; /* for files; empty at first */
	const char *base;   /* two checkpoints of one model */
	const char *next;
};

/* Ends the program unless `is_so`. */
void walk_expect(int is_so, const char *what, const struct deltabucket_error *err);
/* Ends the program unless the call has failed with this kind. */
void walk_expect_kind(
	int result, const char *kind, const char *what, const struct deltabucket_error *err);
void walk_path(const struct walk *walk, const char *name, char out[WALK_PATH_BYTES]);

/* One publisher and two followers, in memory and into a folder, at the same time; then what they
 * refuse, and calls that are cancelled at any time. Leaves a run with steps. */
void walk_run(const struct walk *walk);
/* A folder goes up into a bucket, and comes down again. */
void walk_sync(const struct walk *walk);
/* Two ranks in this process, and a follower of a part of what they publish. */
void walk_ranks(const struct walk *walk);
/* A worker in memory whose weights lie on a device, too, and whose steps many threads read. */
void walk_device(const struct walk *walk);
/* Calls that get no answer end when another thread cancels them; calls without a server fail. */
void walk_silence(const struct walk *walk);

#endif
