/* Changes that a catalog has lost: whether the journal has them, and what an operator can do then.
 * Internal to storage; one thread. */
#ifndef STORAGE_START_LOST_CHANGES_H
#define STORAGE_START_LOST_CHANGES_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct lost_changes {
	const char *folder; /* the data folder, borrowed */
	int64_t kept;       /* the last change of the catalog; -1: unknown */
	int64_t lead; /* the last one of a catalog made from the journal; -1: none can be made */
	/* What can be done, to follow on a sentence that says what is wrong; it begins with a
	 * space. */
	char remedy[ERROR_TEXT_BYTES];
};
/* Reads the journal of the folder: all logs, and a snapshot to its end. */
void lost_changes_look(const char *folder, int64_t kept, struct lost_changes *out);
/* Whether a catalog made from the journal has changes that this one lacks. */
bool lost_changes_come_back(const struct lost_changes *lost);
/* Refuses to go on without changes that come back. `why` says what is wrong. Returns -1. */
int lost_changes_refuse(
	const struct lost_changes *lost, const struct error *why, struct error *err);

#endif
