/* A store on a disk whose power is cut before each operation, and stores on what that leaves.
 * The catalog counts as committed as far as it was: the worst case for what it names. */
#ifndef TESTS_UNIT_STORAGE_POWER_FIXTURE_H
#define TESTS_UNIT_STORAGE_POWER_FIXTURE_H

#include "tests/unit/power_disk.h"
#include "tests/unit/storage/store_fixture.h"

/* Opens the fixture's store, which is closed, on such a disk; all that lies in its folder is
 * durable. */
struct power_disk *power_fixture_begin(struct store_fixture *fixture, enum power_cut cut);
/* Closes the store. Calls `check` with a store on each thing that a cut has left and the mark
 * that was set by then, at last with what is left now; then the disk is gone. A failure of
 * `check` must name `line`. */
typedef void power_check_fn(struct store_fixture *left, unsigned mark, const char *line);
void power_fixture_end(struct store_fixture *fixture, struct power_disk *disk, unsigned mark,
	power_check_fn *check);

#endif
