/* The blocks of tensors in the memory of a device: all tensors of a schema, in its order, cut every
 * 2^20 words, are numbered from 0. A table of their hashes says what each must hold; it outlives
 * the deltas that change some of them. */
#ifndef WEIGHTS_DEVICE_DEVICE_LAYOUT_H
#define WEIGHTS_DEVICE_DEVICE_LAYOUT_H

#include "weights/device/device_block.h"
#include "weights/model/schema.h"

struct device_layout;

/* `schema` is borrowed. `addresses` has the place of each tensor on the device and is copied; 0:
 * the tensor is not there, and its blocks are counted but not used. Never fails. */
struct device_layout *device_layout_new(const struct schema *schema, const uint64_t *addresses);
void device_layout_free(struct device_layout *layout); /* NULL is fine */

const struct schema *device_layout_schema(const struct device_layout *layout);
uint64_t device_layout_address(const struct device_layout *layout, size_t tensor);
size_t device_layout_blocks(const struct device_layout *layout);
/* The number of the tensor's first block. */
size_t device_layout_first(const struct device_layout *layout, size_t tensor);

/* Fills `hashes`, one for each block, from tensors in memory of the host, in the order of the
 * schema; 0 for those that are not on the device, whose `tensors` are not looked at. `threads` 0:
 * one per core. */
void device_layout_hash(const struct device_layout *layout, const uint8_t *const *tensors,
	unsigned threads, uint64_t *hashes);
/* Fills `blocks`, which has room for all, with those on the device, of the kind DEVICE_KEEP, and
 * returns their count. Applied, they prove that the device holds what `hashes` say. */
size_t device_layout_keep(
	const struct device_layout *layout, const uint64_t *hashes, struct device_block *blocks);

#endif
