/* What failed of several things that a command does one after the other, so that one which is
 * refused does not stop the rest. Each is told as it fails; the command ends with the kind of the
 * first. One thread. */
#ifndef CLIENT_TERMINAL_REFUSALS_H
#define CLIENT_TERMINAL_REFUSALS_H

#include "client/terminal/output.h"

struct refusals {
	const struct output *output;
	size_t total; /* things to do; of one alone nothing is told before the end */
	size_t count; /* of those that failed */
	struct error first;
};

/* Whether the failure is about one thing, so that the next may go well; not so a server that is
 * gone, a full disk or a wrong token. */
bool refusals_is_of_one(const struct error *failure);
/* 0 when the rest can go on; -1 with *err set when it cannot. */
int refusals_add(struct refusals *refusals, const struct error *failure, struct error *err);
/* 0 when nothing failed. */
int refusals_end(const struct refusals *refusals, struct error *err);

#endif
