/* A far place of packs for tests: what is stored lies in a folder and outlives the store; staged
 * files lie in memory and are gone with it, as after a power cut. It can be away. */
#ifndef TESTS_UNIT_STORAGE_FAR_FIXTURE_H
#define TESTS_UNIT_STORAGE_FAR_FIXTURE_H

#include <stdatomic.h>

#include "storage/packs/backend.h"

struct far_fixture {
	const char *folder;   /* borrowed; made when it is absent */
	_Atomic bool is_away; /* whatever needs the place fails with upstream */
	_Atomic int stored;   /* staged files that were stored */
};
/* For store_options: opens the place; `fixture` must outlive the backend. */
struct backend *far_fixture_open(void *fixture, struct error *err);

#endif
