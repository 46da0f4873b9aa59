/* A device made of this machine: runs the kernels of weights/device/block_kernels.cu, compiled for
 * the host, on memory of the host. What a sanitizer says of them holds for the device too. */
#ifndef TESTS_UNIT_WEIGHTS_DEVICE_DEVICE_MACHINE_H
#define TESTS_UNIT_WEIGHTS_DEVICE_DEVICE_MACHINE_H

#include "weights/device/device_block.h"

/* Arguments of the kernels; all memory is the caller's. */
struct device_work {
	struct device_block *blocks;
	uint32_t count;
	uint8_t *upload;
	uint32_t *places; /* for all changes, like `steps` */
	uint16_t *steps;
	/* one for each block: */
	uint32_t *failures; /* enum device_failure */
	uint64_t *hashes;
};

/* Each runs one kernel, with `threads` in each thread block; they run side by side. */
void device_machine_read(const struct device_work *work, unsigned threads);
void device_machine_apply(const struct device_work *work, unsigned threads);
void device_machine_undo(const struct device_work *work, unsigned threads);
/* The first two, one after the other. */
void device_machine_change(const struct device_work *work, unsigned threads);

#endif
