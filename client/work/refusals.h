/* Collects the failures of a command that does several things one after the other, so that one
 * refused thing does not stop the rest. Each failure is printed when it occurs, with --json as an
 * event `failed` too; the command ends with the kind of the first. One thread. */
#ifndef CLIENT_TERMINAL_REFUSALS_H
#define CLIENT_TERMINAL_REFUSALS_H

#include "client/work/output.h"

struct refusals {
	struct output *output;
	size_t total; /* things to do; the failure of a single one is not printed before the end */
	size_t count; /* things that failed */
	struct error first;
};

/* Whether the failure is about one thing, so that the next one may succeed. Not so when the server
 * is gone, the disk is full or the token is wrong. */
bool refusals_is_of_one(const struct error *failure);
/* 0 when the command can go on with the rest; -1 with *err set when it cannot. */
int refusals_add(struct refusals *refusals, const struct error *failure, struct error *err);
/* 0 when nothing failed; otherwise -1 with the first failure, which says how many failed. */
int refusals_end(const struct refusals *refusals, struct error *err);

#endif
