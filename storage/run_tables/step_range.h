/* A range of steps, both ends included. Internal to storage. */
#ifndef STORAGE_RUN_TABLES_STEP_RANGE_H
#define STORAGE_RUN_TABLES_STEP_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_range {
	uint64_t first;
	uint64_t last;
};

/* Sorts the ranges and joins those that overlap or touch. Returns how many are left. */
size_t step_range_join(struct step_range *ranges, size_t count);
/* In sorted and joined ranges: the index of the range that contains the step, or of the first one
 * above it; `count` when there is neither. */
size_t step_range_at_or_behind(const struct step_range *ranges, size_t count, uint64_t step);

#endif
