/* Checks a follower's folder that lacks its state, .deltabucket. A follower takes it over only if
 * everything in it is certain to come from a follower of this run. Nothing is changed. */
#ifndef CLIENT_FOLLOW_FOLLOW_LEFTOVERS_H
#define CLIENT_FOLLOW_FOLLOW_LEFTOVERS_H

#include "base/error.h"

/* 0 when the folder is empty or holds only such files. Otherwise exists, naming the first file that
 * prevents it. */
int follow_leftovers_check(
	const char *folder, const char *endpoint, const char *run, struct error *err);

#endif
