/* The parts that all formats share: the table of formats, pieces and workers, and the ways into and
 * out of the spool. A worker writes only to its own streams, so a walk needs no locks here. */
#include "weights/delta/payload.h"

#include <stdlib.h>

#include "base/memory.h"

enum { COPIED_BYTES = 1 << 20, MADE_CAP_BYTES = 1 << 30 };

static void place_pieces(struct payload *payload);

const struct payload_ops *payload_ops_of(enum delta_format format)
{
	static const struct payload_ops *const all[DELTA_FORMATS] = {
		[DELTA_ULP_CLASS] = &payload_blocks,
		[DELTA_SLIME_XOR] = &payload_xor,
		[DELTA_SLIME_OVERWRITE] = &payload_overwrite,
		[DELTA_TRL_GAP] = &payload_trl,
		[DELTA_TRL_RAW] = &payload_trl,
		[DELTA_TRL_V1] = &payload_trl,
	};
	ASSERT((unsigned)format < DELTA_FORMATS);
	return all[format];
}

void payload_init(struct payload *payload, const struct delta_encode_params *params,
	const struct file_ops *files, struct staging *staging, unsigned workers)
{
	*payload = (struct payload){
		.params = params,
		.ops = payload_ops_of(params->format),
		.files = files,
		.schema = params->next->schema,
		.tensors = memory_new_array(
			schema_count(params->next->schema), sizeof(payload->tensors[0])),
		.spool = spool_new(staging, files, (size_t)workers * PAYLOAD_STREAMS),
		.workers = memory_new_array(workers, sizeof(payload->workers[0])),
		.worker_count = workers,
	};
	ASSERT(payload->ops != NULL);
	for (unsigned i = 0; i < workers; i++)
		buffer_init(&payload->workers[i].made, MADE_CAP_BYTES);
	place_pieces(payload);
}

void payload_release(struct payload *payload)
{
	for (unsigned i = 0; i < payload->worker_count; i++) {
		struct payload_worker *const worker = &payload->workers[i];
		if (worker->code != NULL)
			block_code_context_free(worker->code);
		buffer_release(&worker->made);
		free(worker->positions);
		free(worker->block);
		zstd_writer_free(worker->zstd);
		tensor_checksum_free(worker->checksum);
	}
	spool_free(payload->spool);
	free(payload->workers);
	free(payload->tensors);
	free(payload->pieces);
	*payload = (struct payload){0};
}

void payload_sum(struct payload *payload, struct delta_stats *stats)
{
	for (size_t i = 0; i < schema_count(payload->schema); i++) {
		struct payload_tensor *const tensor = &payload->tensors[i];
		for (uint64_t k = 0; k < tensor->piece_count; k++)
			tensor->changed += tensor->pieces[k].changed;
		stats->elements += tensor->facts->bytes * 8 / dtype_bits(tensor->facts->dtype);
		stats->changed_elements += tensor->changed;
		stats->changed_tensors += tensor->changed > 0;
		stats->tensors++;
	}
	for (unsigned i = 0; i < payload->worker_count; i++)
		for (unsigned k = 0; k < DELTA_STATS_STEPS; k++)
			stats->ulp_steps[k] += payload->workers[i].stats.ulp_steps[k];
}

struct payload_piece *payload_piece(const struct payload *payload, const struct tensor_block *block)
{
	const struct payload_tensor *const tensor = &payload->tensors[block->tensor];
	const uint64_t number = payload->ops->keeps_tensors ? 0 : block->number;
	ASSERT(number < tensor->piece_count);
	return &tensor->pieces[number];
}

int payload_spool(struct payload *payload, unsigned worker, struct payload_piece *piece,
	struct span bytes, struct error *err)
{
	ASSERT(worker < payload->worker_count);
	piece->stream = worker * PAYLOAD_STREAMS;
	piece->at = spool_end(payload->spool, piece->stream);
	piece->bytes = bytes.len;
	return spool_add(payload->spool, piece->stream, bytes, err);
}

int payload_copy(struct payload *payload, unsigned worker, const struct payload_piece *piece,
	const struct staged_file *file, uint64_t at, struct error *err)
{
	ASSERT(worker < payload->worker_count && file != NULL);
	struct buffer *const made = &payload->workers[worker].made;
	buffer_reset(made);
	uint8_t *const room = buffer_reserve(made, COPIED_BYTES);
	if (room == NULL)
		return buffer_check(made, "a piece of the delta", err);
	for (uint64_t done = 0; done < piece->bytes; done += COPIED_BYTES) {
		const size_t len = piece->bytes - done < COPIED_BYTES
			? (size_t)(piece->bytes - done)
			: COPIED_BYTES;
		if (spool_read(payload->spool, piece->stream, piece->at + done, room, len, err) !=
			0)
			return -1;
		if (file_write_at(payload->files, file->fd, span_of(room, len), (off_t)(at + done),
			    file->path, err) != 0)
			return -1;
	}
	return 0;
}

static void place_pieces(struct payload *payload)
{
	const size_t count = schema_count(payload->schema);
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++) {
		payload->tensors[i].facts = schema_tensor(payload->schema, i);
		const uint64_t blocks = tensor_source_blocks(payload->params->next, i);
		payload->tensors[i].piece_count =
			payload->ops->keeps_tensors && blocks > 0 ? 1 : blocks;
		total += payload->tensors[i].piece_count;
	}
	payload->pieces = memory_new_array((size_t)total, sizeof(payload->pieces[0]));
	total = 0;
	for (size_t i = 0; i < count; i++) {
		payload->tensors[i].pieces = payload->pieces + total;
		total += payload->tensors[i].piece_count;
	}
}
