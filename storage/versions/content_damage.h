/* Tells whether a version leads to chunks that are known to be damaged (damage_row.h), before
 * somebody else is led to them. Internal to storage. */
#ifndef STORAGE_VERSIONS_CONTENT_DAMAGE_H
#define STORAGE_VERSIONS_CONTENT_DAMAGE_H

#include "storage/core/store.h"
#include "storage/versions/version.h"

/* content_damaged when the version leads to a chunk of the table `damaged_chunks`. A derived
 * version leads to the chunks of all its sources. The message calls the version `name`. The cost
 * grows with the rows of that table, not with the chunks of the version. */
int content_damage_check(
	struct db *db, const struct version *source, struct span name, struct error *err);
/* The same before somebody reads all bytes. A chunk that was seen damaged is read once more, since
 * a disk may give right bytes again. Costs nothing while no damage is known. */
int content_damage_check_again(struct store *store, struct db *db, const struct version *source,
	struct span name, struct error *err);
/* Sets the error content_damaged for the bytes of `name`. Returns -1. */
int content_damage_error(struct span name, struct error *err);

#endif
