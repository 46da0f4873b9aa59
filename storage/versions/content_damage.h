/* Tells whether a version leads to chunks that are known to be damaged (damage_row.h), before
 * somebody else is led to them. Internal to storage. */
#ifndef STORAGE_VERSIONS_CONTENT_DAMAGE_H
#define STORAGE_VERSIONS_CONTENT_DAMAGE_H

#include "storage/db/db.h"
#include "storage/versions/version.h"

/* content_damaged when the version leads to a chunk of the table `damaged_chunks`. A derived
 * version leads to the chunks of all its sources. The message calls the version `name`. The cost
 * grows with the rows of that table, not with the chunks of the version. */
int content_damage_check(
	struct db *db, const struct version *source, struct span name, struct error *err);
/* Sets the error content_damaged for the bytes of `name`. Returns -1. */
int content_damage_error(struct span name, struct error *err);

#endif
