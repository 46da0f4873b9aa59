/* The blocks of tensors in the memory of a device: all tensors of a schema, in its order, cut every
 * 2^20 words, are numbered from 0. A table of their hashes says what each must hold; it outlives
 * the deltas that change some of them. */
#ifndef WEIGHTS_DEVICE_DEVICE_LAYOUT_H
#define WEIGHTS_DEVICE_DEVICE_LAYOUT_H

#include "weights/device/device_block.h"
#include "weights/model/schema.h"

struct device_layout;

/* `schema` is borrowed. Never fails. */
struct device_layout *device_layout_new(const struct schema *schema);
void device_layout_free(struct device_layout *layout); /* NULL is fine */

size_t device_layout_blocks(const struct device_layout *layout);
/* The number of the tensor's first block, or of the one after the last tensor. */
size_t device_layout_first(const struct device_layout *layout, size_t tensor);

/* Fills `hashes`, one for each block, from tensors in memory of the host, each as many bytes as the
 * schema says. `threads` 0: one per core. */
void device_layout_hash(const struct device_layout *layout, const uint8_t *const *tensors,
	unsigned threads, uint64_t *hashes);
/* Fills `blocks`, one for each block, of the kind DEVICE_KEEP: applied, they prove that the device
 * holds what `hashes` say. `tensors` has the address on the device of each. */
void device_layout_keep(const struct device_layout *layout, const uint64_t *tensors,
	const uint64_t *hashes, struct device_block *blocks);

#endif
