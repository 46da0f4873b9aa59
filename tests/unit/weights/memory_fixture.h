/* The tensors of a checkpoint in memory, at odd addresses and with guards around them. */
#ifndef TESTS_UNIT_WEIGHTS_MEMORY_FIXTURE_H
#define TESTS_UNIT_WEIGHTS_MEMORY_FIXTURE_H

#include "weights/model/checkpoint.h"

struct memory_fixture {
	struct checkpoint *origin;
	const struct schema *schema; /* of the checkpoint */
	uint8_t **tensors;           /* in schema order; NULL where one is empty */
	uint8_t **blocks;            /* tensors with their guards */
};
void memory_fixture_load(struct memory_fixture *memory, const char *path);
void memory_fixture_release(struct memory_fixture *memory);
/* Makes the tensors those of the checkpoint again. */
void memory_fixture_refill(struct memory_fixture *memory);
/* Whether the tensors are those of a checkpoint with the same schema. Checks the guards. */
bool memory_fixture_equals(
	const struct memory_fixture *memory, const struct checkpoint *checkpoint);

#endif
