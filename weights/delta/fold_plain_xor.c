/* slime-xor: a walk over the deltas on a base of zeros gives their payloads combined by XOR. The
 * checksum of a tensor is that of the last delta that has the tensor, because it is the checksum of
 * the new tensor and not of the payload. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta/delta_source.h"
#include "weights/delta/fold_plain.h"

static int fold_plain_xor_size(
	const struct delta_entry *entry, uint64_t *out_elements, struct error *err)
{
	if (zstd_content_size(entry->data, out_elements))
		return 0;
	return error_set(err, ERROR_INVALID,
		"its zstd frame does not give the size of its content, or gives more than it can"
		" hold");
}

static int fold_plain_xor_take_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	struct payload *const payload = state;
	return payload->ops->block(payload, worker, block, err);
}

static int take_checksums(struct fold_plain *plain, struct error *err)
{
	for (size_t i = 0; i < schema_count(plain->schema); i++) {
		struct payload_tensor *const tensor = &plain->payload.tensors[i];
		const struct delta_entry *entry = NULL;
		for (size_t k = plain->params->count; k-- > 0 && entry == NULL;)
			entry = delta_reader_find(plain->readers[k], tensor->facts->name);
		ASSERT(entry != NULL);
		if (entry->checksum.len >= sizeof(tensor->checksum))
			return error_set(err, ERROR_INVALID,
				"tensor '%.*s': its checksum is malformed",
				(int)(entry->name.len < 120 ? entry->name.len : 120),
				entry->name.data);
		snprintf(tensor->checksum, sizeof(tensor->checksum), "%.*s",
			(int)entry->checksum.len, entry->checksum.data);
	}
	return 0;
}

static int walk(struct fold_plain *plain, struct tensor_source *top, struct error *err)
{
	const struct tensor_pass pass = {
		.base = plain->zeros,
		.next = top,
		.threads = plain->payload.worker_count,
		.keeps_tensors = true,
		.block = fold_plain_xor_take_block,
		.state = &plain->payload,
	};
	return tensor_pass_run(&pass, err) != 0 ? -1 : take_checksums(plain, err);
}

static int fold_plain_xor_fill(struct fold_plain *plain, struct error *err)
{
	const size_t count = plain->params->count;
	struct tensor_source **const sources = memory_new_array(count + 1, sizeof(sources[0]));
	int result = 0;
	sources[0] = plain->zeros;
	for (size_t i = 0; i < count && result == 0; i++) {
		sources[i + 1] = delta_source_new_unproven(plain->readers[i], sources[i], err);
		result = sources[i + 1] != NULL ? 0 : -1;
	}
	if (result == 0)
		result = walk(plain, sources[count], err);
	for (size_t i = count; i > 0; i--)
		tensor_source_free(sources[i]);
	free(sources);
	return result;
}

const struct fold_family fold_family_xor = {
	.size = fold_plain_xor_size, .dtype = DTYPE_U8, .exact = true, .fill = fold_plain_xor_fill};
