/* Notices, in the very change that commits an object, that it completes a publish in a foreign convention (storage/adopt_layout.h): the publish is
 * noted, and the step worker makes a step of it. Costs a look at an empty index where no run adopts. Internal to storage. */
#ifndef STORAGE_ADOPT_NOTE_H
#define STORAGE_ADOPT_NOTE_H

#include "storage/version.h"

/* The version is the current one of its key. *out_noted: the step worker has something to do once this is committed. */
int adopt_note(struct db *db, const struct version *version, bool *out_noted, struct error *err);

#endif
