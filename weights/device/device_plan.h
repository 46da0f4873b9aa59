/* A delta laid out for a device: which blocks it has, how much memory they take there, and that
 * memory filled. The base stays where it is, in the device; only its schema is needed here. After
 * device_plan_open any thread; the delta's files must stay. */
#ifndef WEIGHTS_DEVICE_DEVICE_PLAN_H
#define WEIGHTS_DEVICE_DEVICE_PLAN_H

#include "weights/delta/delta_reader.h"
#include "weights/device/device_layout.h"

struct device_plan;

struct device_plan_facts {
	size_t blocks;
	size_t tensors;         /* that have blocks */
	uint64_t upload_bytes;  /* a multiple of DEVICE_ALIGN */
	uint64_t decoded_bytes; /* bytes among them that the host decodes */
	uint64_t changes;       /* places in the lists of the device */
	uint64_t result_bytes;  /* of all blocks */
};

/* `layout` has the tensors of the base; it is borrowed until the plan is freed. Tensors that are
 * not on the device are left out. Fails with unsupported when the delta is not ulp-class, otherwise
 * as delta_reader_bind does, and with invalid when a block's header is malformed, or when an
 * address is not a multiple of the tensor's words. */
struct device_plan *device_plan_open(
	const char *delta, const struct device_layout *layout, struct error *err);
void device_plan_free(struct device_plan *plan); /* NULL is fine */

const struct delta_metadata *device_plan_metadata(const struct device_plan *plan);
struct device_plan_facts device_plan_facts(const struct device_plan *plan);

/* Fills all of `upload` and `blocks`, which have the sizes that the facts say; `upload` begins at a
 * multiple of DEVICE_ALIGN on the device. `threads` 0: one per core. Fails with invalid, and the
 * tensor's name, when a block is malformed. */
int device_plan_fill(const struct device_plan *plan, uint8_t *upload, struct device_block *blocks,
	unsigned threads, struct error *err);

#endif
