/* A follower's folder without its note, .deltabucket: what lies there is taken over only where it
 * is, for certain, what a follower of this run made. Nothing is changed. */
#ifndef CLIENT_FOLLOW_FOLLOW_LEFTOVERS_H
#define CLIENT_FOLLOW_FOLLOW_LEFTOVERS_H

#include "base/error.h"

/* 0: the folder is empty, or holds nothing but that. Else exists, naming what stands in the way. */
int follow_leftovers_check(
	const char *folder, const char *endpoint, const char *run, struct error *err);

#endif
