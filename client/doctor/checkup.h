/* The findings of `deltabucket doctor`, printed as they are made: a line for each check, with what
 * to do about it. With --json an event `check` each. One thread. */
#ifndef CLIENT_DOCTOR_CHECKUP_H
#define CLIENT_DOCTOR_CHECKUP_H

#include "client/work/output.h"

struct checkup {
	struct output *output;
	bool colours;
	size_t well, warnings, problems;
	struct error first; /* the first problem */
};

void checkup_ok(struct checkup *checkup, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* `advice` says what helps; NULL: the text says it. */
void checkup_warn(struct checkup *checkup, const char *name, const char *advice, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* A problem. `why` has its kind, which decides how doctor ends, and its text. */
void checkup_fail(
	struct checkup *checkup, const char *name, const char *advice, const struct error *why);

/* Prints how many of each there were. 0, or -1 with the first problem when there were any. */
int checkup_end(struct checkup *checkup, struct error *err);

#endif
