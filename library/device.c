/* deltabucket_device: the schema and the addresses of tensors in a device's memory, and what the
 * device is given to change and to prove them. */
#include <stdlib.h>

#include "base/memory.h"
#include "library/call.h"
#include "library/sized.h"
#include "library/tensors.h"
#include "weights/device/device_plan.h"
#include "weights/device/kernel_source.h"

struct deltabucket_device {
	struct schema *schema;
	size_t *order; /* for each tensor of the schema its number among the caller's */
	struct device_layout *layout;
};

struct deltabucket_device_delta {
	struct device_plan *plan;
};

_Static_assert(sizeof(struct device_block) == DELTABUCKET_DEVICE_BLOCK_BYTES, "of the contract");

static int give_facts(const struct device_plan *plan, struct deltabucket_device_delta_facts *out,
	struct error *err);

const char *deltabucket_device_source(void)
{
	return device_kernel_source;
}

struct deltabucket_device *deltabucket_device_new(
	const struct deltabucket_tensor *tensors, size_t count, struct deltabucket_error *err)
{
	struct error failure = {0};
	size_t *order = NULL;
	struct schema *const schema = library_schema(tensors, count, &order, &failure);
	if (schema == NULL) {
		library_error_give(&failure, err);
		return NULL;
	}
	struct deltabucket_device *const device = memory_new(sizeof(*device));
	uint64_t *const addresses = memory_new_array(count + 1, sizeof(*addresses));
	for (size_t i = 0; i < count; i++)
		addresses[i] = (uint64_t)(uintptr_t)tensors[order[i]].data;
	device->schema = schema;
	device->order = order;
	device->layout = device_layout_new(schema, addresses);
	free(addresses);
	return device;
}

void deltabucket_device_free(struct deltabucket_device *device)
{
	if (device == NULL)
		return;
	device_layout_free(device->layout);
	free(device->order);
	schema_free(device->schema);
	free(device);
}

size_t deltabucket_device_blocks(const struct deltabucket_device *device)
{
	return device_layout_blocks(device->layout);
}

void deltabucket_device_hash(const struct deltabucket_device *device, const void *const *tensors,
	unsigned threads, uint64_t *hashes)
{
	const size_t count = schema_count(device->schema);
	const uint8_t **const places = memory_new_array(count + 1, sizeof(*places));
	for (size_t i = 0; i < count; i++)
		places[i] = tensors[device->order[i]];
	device_layout_hash(device->layout, places, threads, hashes);
	free(places);
}

size_t deltabucket_device_keep(
	const struct deltabucket_device *device, const uint64_t *hashes, void *blocks)
{
	return device_layout_keep(device->layout, hashes, blocks);
}

struct deltabucket_device_delta *deltabucket_device_delta_open(
	const struct deltabucket_device *device, const char *path,
	struct deltabucket_device_delta_facts *out, struct deltabucket_error *err)
{
	struct error failure = {0};
	struct device_plan *plan = NULL;
	if (library_check(device, "device", &failure) == 0 &&
		library_check(path, "path", &failure) == 0 &&
		library_check(out, "out", &failure) == 0)
		plan = device_plan_open(path, device->layout, &failure);
	if (plan == NULL || give_facts(plan, out, &failure) != 0) {
		device_plan_free(plan);
		library_error_give(&failure, err);
		return NULL;
	}
	struct deltabucket_device_delta *const delta = memory_new(sizeof(*delta));
	delta->plan = plan;
	return delta;
}

int deltabucket_device_delta_fill(const struct deltabucket_device_delta *delta, void *upload,
	void *blocks, unsigned threads, struct deltabucket_error *err)
{
	struct error failure = {0};
	int result = library_check(delta, "delta", &failure);
	if (result == 0 && device_plan_facts(delta->plan).upload_bytes > 0)
		result = library_check(upload, "upload", &failure);
	if (result == 0 && device_plan_facts(delta->plan).blocks > 0)
		result = library_check(blocks, "blocks", &failure);
	if (result == 0)
		result = device_plan_fill(delta->plan, upload, blocks, threads, &failure);
	return result == 0 ? 0 : library_error_give(&failure, err);
}

void deltabucket_device_delta_close(struct deltabucket_device_delta *delta)
{
	if (delta == NULL)
		return;
	device_plan_free(delta->plan);
	free(delta);
}

static int give_facts(const struct device_plan *plan, struct deltabucket_device_delta_facts *out,
	struct error *err)
{
	const struct device_plan_facts facts = device_plan_facts(plan);
	const struct delta_metadata *const metadata = device_plan_metadata(plan);
	struct deltabucket_device_delta_facts made = {.size = sizeof(made),
		.blocks = facts.blocks,
		.tensors = facts.tensors,
		.upload_bytes = facts.upload_bytes,
		.decoded_bytes = facts.decoded_bytes,
		.changes = facts.changes,
		.result_bytes = facts.result_bytes};
	_Static_assert((int)DELTABUCKET_DIGEST_BYTES == (int)DIGEST128_TEXT_BYTES,
		"a digest's text fits exactly");
	if (metadata->has_base_digest)
		digest128_format(&metadata->base_digest, made.base_digest);
	if (metadata->has_result_digest)
		digest128_format(&metadata->result_digest, made.result_digest);
	return sized_give(out, &made, sizeof(made), "deltabucket_device_delta_facts", err);
}
