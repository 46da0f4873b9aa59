/* A store on a disk whose power is cut before each operation, and stores that are opened on the
 * remains. The catalog keeps every commit: the worst case for the files that it names. */
#ifndef TESTS_UNIT_STORAGE_POWER_FIXTURE_H
#define TESTS_UNIT_STORAGE_POWER_FIXTURE_H

#include "tests/unit/power_disk.h"
#include "tests/unit/storage/store_fixture.h"

/* Opens the fixture's store, which is closed, on such a disk. The present content of its folder is
 * durable. */
struct power_disk *power_fixture_begin(struct store_fixture *fixture, enum power_cut cut);
/* Closes the store. Then calls `check` with a store on the remains of each cut and the mark that
 * was set by then, and last with the final state. Then the disk is freed. A failure of `check` must
 * name `line`. */
typedef void power_check_fn(struct store_fixture *left, unsigned mark, const char *line);
void power_fixture_end(struct store_fixture *fixture, struct power_disk *disk, unsigned mark,
	power_check_fn *check);

#endif
