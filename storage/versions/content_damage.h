/* Whether what a version leads to is known to be damaged (damage_row.h), before somebody is led
 * there. Internal to storage. */
#ifndef STORAGE_VERSIONS_CONTENT_DAMAGE_H
#define STORAGE_VERSIONS_CONTENT_DAMAGE_H

#include "storage/versions/version.h"

/* Refuses what leads to a chunk of the table `damaged_chunks`: content_damaged. Of a derived
 * version all that it is made of is looked at. `name` is what the message calls the source. Costs a
 * look for each row of the table, not for each chunk. */
int content_damage_check(
	struct db *db, const struct version *source, struct span name, struct error *err);
/* The message for bytes that are known to be damaged. -1. */
int content_damage_error(struct span name, struct error *err);

#endif
