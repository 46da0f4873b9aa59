/* Where the parts of a derived version end. The parts were chunked one by one before a recipe
 * replaced them, so code that chunks the bytes again must cut there. A single PUT has no such ends.
 * One thread at a time. Internal to storage. */
#ifndef STORAGE_VERSIONS_PART_ENDS_H
#define STORAGE_VERSIONS_PART_ENDS_H

#include "storage/versions/version.h"

struct part_ends {
	uint64_t *ends; /* do not fall */
	size_t count;
	size_t next;
};

/* Reads the ends of a version of kind VERSION_DERIVED. corrupt when its derivation is damaged.
 * Release the ends after success. */
int part_ends_load(
	struct db *db, const struct version *version, struct part_ends *out, struct error *err);
/* Reads the ends from a derived_parts blob that is sound. */
void part_ends_read(struct span parts, struct part_ends *out);
void part_ends_release(struct part_ends *ends);
/* Passes the ends up to byte `at`, which must not fall between calls. Returns the bytes from there
 * to the next end, or UINT64_MAX behind the last one. */
uint64_t part_ends_left(struct part_ends *ends, uint64_t at);

#endif
