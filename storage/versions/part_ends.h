/* Where the parts of a derived version end: its parts were chunked one by one before they were
 * replaced by a recipe, so whoever chunks its bytes anew cuts there. A single PUT has no such ends.
 * One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_ENDS_H
#define STORAGE_VERSIONS_PART_ENDS_H

#include "storage/versions/version.h"

struct part_ends {
	uint64_t *ends; /* do not fall */
	size_t count;
	size_t next;
};

/* Of a version of kind VERSION_DERIVED. corrupt when its derivation is damaged. Release it after
 * success. */
int part_ends_load(
	struct db *db, const struct version *version, struct part_ends *out, struct error *err);
/* Of a derived_parts blob that is sound. */
void part_ends_read(struct span parts, struct part_ends *out);
void part_ends_release(struct part_ends *ends);
/* Passes the ends up to byte `at`, which never falls; gives the bytes from there to the next one,
 * UINT64_MAX behind the last. */
uint64_t part_ends_left(struct part_ends *ends, uint64_t at);

#endif
