/* A run of real, small checkpoints, each slightly changed from the one before, published as anchors
 * or ulp-class deltas. */
#ifndef TESTS_UNIT_STORAGE_STEP_FIXTURE_H
#define TESTS_UNIT_STORAGE_STEP_FIXTURE_H

#include "tests/unit/storage/derived_fixture.h"

enum { STEP_FIXTURE_MAX = 64 };

struct step_fixture {
	struct store_fixture store;
	char *folder; /* for temporary files */
	struct derived_checkpoint steps[STEP_FIXTURE_MAX];
	struct digest128 digests[STEP_FIXTURE_MAX];
	unsigned made; /* the number of checkpoints */
	/* Set it before the first step: a config.json that no step changes lies beside the
	 * weights. */
	bool are_folders;
};
/* A store with the bucket "bucket" and the run "run"; nothing is proven until
 * step_fixture_settle. */
void step_fixture_open(struct step_fixture *fixture);
void step_fixture_close(struct step_fixture *fixture);

enum {
	STEP_WITH_ANCHOR = 1,
	STEP_WITH_DELTA = 2,
	STEP_WRONG_DELTA = 4 /* it makes the step before last */
};
/* Publishes the next step of the run. */
void step_fixture_publish(struct step_fixture *fixture, unsigned step, int what);
/* Runs all jobs of the worker. Returns the number of failed jobs. */
size_t step_fixture_settle(struct step_fixture *fixture);
/* Whether the step can be read whole, byte for byte. Makes it if that is needed. */
bool step_fixture_is_whole(struct step_fixture *fixture, unsigned step);
enum step_proof step_fixture_verified(struct step_fixture *fixture, unsigned step);

#endif
