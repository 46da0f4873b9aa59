/* Applying: open and check the delta, check the base, plan the result, and only then write. Each tensor is built block by block in a buffer
 * (base copied, changed elements put in, hashed while in cache) and written where the plan puts it, so a result never exists half-built at
 * its final path, and is proven before it gets there. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta.h"
#include "weights/delta_reader.h"
#include "weights/parallel.h"
#include "weights/result_plan.h"
#include "weights/staging.h"

enum { BLOCK_ELEMENTS = 65536, ELEMENT_BYTES = 2, BLOCK_BYTES = BLOCK_ELEMENTS * ELEMENT_BYTES, PIECE_BYTES = 1 << 20 };

struct apply_scratch {
	uint8_t *block;
	uint16_t *positions;
	struct xxh3_stream *hash;
};

struct apply {
	const struct delta_apply_params *params;
	const struct file_ops *ops;
	const struct schema *schema;
	struct delta_reader *reader;
	const struct delta_entry **entries;    /* per tensor of the schema; NULL: unchanged */
	const struct digest128 *base_digests;  /* given, or own_base_digests, or NULL when there is nothing to check */
	struct digest128 *own_base_digests;
	struct digest128 *digests;             /* of the result */
	struct result_plan plan;
	struct staging *staging;
	const struct staged_file **files;      /* per file of the plan; NULL for those without tensors */
	struct apply_scratch *scratch;
	struct delta_stats stats;
};

/* One tensor being written. */
struct target {
	const struct file_ops *ops;
	const struct staged_file *file;
	uint64_t at;
	struct xxh3_stream *hash; /* NULL: not needed */
};

static int put(const struct target *const target, const uint64_t from, const struct span bytes, struct error *const err)
{
	if (target->hash != NULL)
		xxh3_stream_add(target->hash, bytes);
	return file_write_at(target->ops, target->file->fd, bytes, (off_t)(target->at + from), target->file->path, err);
}

static int write_plain(const struct target *const target, const struct span bytes, struct error *const err)
{
	for (size_t from = 0; from < bytes.len; from += PIECE_BYTES)
		if (put(target, from, span_slice(bytes, from, PIECE_BYTES), err) != 0)
			return -1;
	return 0;
}

static int write_changed(const struct target *const target, const struct span base, const struct delta_entry *const entry,
	const struct apply_scratch *const scratch, struct error *const err)
{
	struct index_decoder decoder;
	const uint8_t *values = entry->values.data;
	index_decoder_init(&decoder, entry->form, entry->index, base.len / ELEMENT_BYTES);
	for (size_t from = 0; from < base.len; from += BLOCK_BYTES) {
		const struct span block = span_slice(base, from, BLOCK_BYTES);
		size_t count = 0;
		if (index_decoder_take(&decoder, from / ELEMENT_BYTES, block.len / ELEMENT_BYTES, scratch->positions, &count, err) != 0)
			return -1;
		memcpy(scratch->block, block.data, block.len);
		for (size_t i = 0; i < count; i++)
			memcpy(scratch->block + ELEMENT_BYTES * (size_t)scratch->positions[i], values + ELEMENT_BYTES * i, ELEMENT_BYTES);
		values += ELEMENT_BYTES * count;
		if (put(target, from, span_of(scratch->block, block.len), err) != 0)
			return -1;
	}
	ASSERT(values == entry->values.data + entry->values.len);
	return 0;
}

static int build_tensor(void *const state, const size_t item, const unsigned worker, struct error *const err)
{
	struct apply *const apply = state;
	const struct delta_entry *const entry = apply->entries[item];
	const struct apply_scratch *const scratch = &apply->scratch[worker];
	const struct span base = checkpoint_tensor(apply->params->base, item);
	/* What is copied unchanged has the digest that the base was proven to have. */
	const bool known = entry == NULL && apply->base_digests != NULL;
	const struct target target = {
		.ops = apply->ops,
		.file = apply->files[apply->plan.places[item].file],
		.at = apply->plan.places[item].at,
		.hash = known ? NULL : scratch->hash,
	};
	xxh3_stream_reset(scratch->hash);
	int result;
	if (entry == NULL)
		result = write_plain(&target, base, err);
	else if (entry->is_whole)
		result = write_plain(&target, entry->values, err);
	else
		result = write_changed(&target, base, entry, scratch, err);
	apply->digests[item] = known ? apply->base_digests[item] : xxh3_stream_result(scratch->hash);
	if (result != 0) {
		const struct span name = schema_tensor(apply->schema, item)->name;
		error_wrap(err, "tensor '%.*s'", (int)(name.len < 120 ? name.len : 120), name.data);
	}
	return result;
}

static int build_tensors(struct apply *const apply, struct error *const err)
{
	const size_t count = schema_count(apply->schema);
	const unsigned workers = parallel_workers(apply->params->threads, count);
	apply->scratch = memory_new_array(workers, sizeof(apply->scratch[0]));
	for (unsigned i = 0; i < workers; i++) {
		apply->scratch[i].block = memory_new(BLOCK_BYTES);
		apply->scratch[i].positions = memory_new_array(BLOCK_ELEMENTS, sizeof(uint16_t));
		apply->scratch[i].hash = xxh3_stream_new();
	}
	const int result = parallel_run(workers, count, build_tensor, apply, err);
	for (unsigned i = 0; i < workers; i++) {
		free(apply->scratch[i].block);
		free(apply->scratch[i].positions);
		xxh3_stream_free(apply->scratch[i].hash);
	}
	free(apply->scratch);
	return result;
}

/* The base's digest: checked when the delta names one, filled in when the caller gave the tensors' digests, else left zero. */
static int check_base(struct apply *const apply, struct error *const err)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(apply->reader);
	apply->base_digests = apply->params->base_tensor_digests;
	if (apply->base_digests == NULL && metadata->has_base_digest) {
		apply->own_base_digests = memory_new_array(schema_count(apply->schema), sizeof(struct digest128));
		checkpoint_tensor_digests(apply->params->base, apply->params->threads, apply->own_base_digests);
		apply->base_digests = apply->own_base_digests;
	}
	if (apply->base_digests == NULL)
		return 0;
	apply->stats.base_digest = schema_checkpoint_digest(apply->schema, apply->base_digests);
	if (!metadata->has_base_digest || digest128_equal(&apply->stats.base_digest, &metadata->base_digest))
		return 0;
	char wanted[DIGEST128_TEXT_BYTES];
	char actual[DIGEST128_TEXT_BYTES];
	digest128_format(&metadata->base_digest, wanted);
	digest128_format(&apply->stats.base_digest, actual);
	return error_set(err, ERROR_WRONG_BASE, "the delta was made from the base %s, this one is %s", wanted, actual);
}

static int prepare(struct apply *const apply, struct error *const err)
{
	const struct delta_apply_params *const params = apply->params;
	if (file_exists(params->out))
		return error_set(err, ERROR_EXISTS, "'%s' exists already", params->out);
	apply->reader = delta_reader_open(params->delta, err);
	if (apply->reader == NULL)
		return -1;
	/* The base first: on another one, any further complaint would only mislead. */
	if (check_base(apply, err) != 0 || delta_reader_bind(apply->reader, apply->schema, &apply->entries, err) != 0)
		return -1;
	return result_plan_make(&apply->plan, params->base, apply->reader, params->delta, err);
}

static int begin_shard(struct apply *const apply, const size_t index, struct error *const err)
{
	const struct result_file *const file = &apply->plan.files[index];
	const struct staged_file *const staged = staging_add(apply->staging, file->path, err);
	apply->files[index] = staged;
	if (staged == NULL)
		return -1;
	if (file_write_at(apply->ops, staged->fd, span_of(file->length, sizeof(file->length)), 0, staged->path, err) != 0)
		return -1;
	return file_write_at(apply->ops, staged->fd, file->json, sizeof(file->length), staged->path, err);
}

static int begin_files(struct apply *const apply, struct error *const err)
{
	apply->files = memory_new_array(apply->plan.file_count, sizeof(apply->files[0]));
	for (size_t i = 0; i < apply->plan.file_count; i++) {
		const struct result_file *const file = &apply->plan.files[i];
		const int result = file->is_shard ? begin_shard(apply, i, err) : staging_put(apply->staging, file->path, file->bytes, err);
		if (result != 0)
			return -1;
	}
	return 0;
}

static int check_digest(const struct digest128 *const actual, const struct digest128 *const wanted, const char *const who,
	struct error *const err)
{
	if (digest128_equal(actual, wanted))
		return 0;
	char wanted_text[DIGEST128_TEXT_BYTES];
	char actual_text[DIGEST128_TEXT_BYTES];
	digest128_format(wanted, wanted_text);
	digest128_format(actual, actual_text);
	return error_set(err, ERROR_DIGEST_MISMATCH, "the result is %s, %s says %s", actual_text, who, wanted_text);
}

static int check_result(struct apply *const apply, struct error *const err)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(apply->reader);
	apply->stats.result_digest = schema_checkpoint_digest(apply->schema, apply->digests);
	if (metadata->has_result_digest && check_digest(&apply->stats.result_digest, &metadata->result_digest, "the delta", err) != 0)
		return -1;
	const struct digest128 *const expected = apply->params->expected_result;
	return expected == NULL ? 0 : check_digest(&apply->stats.result_digest, expected, "the caller", err);
}

static int build(struct apply *const apply, struct error *const err)
{
	apply->staging = staging_begin(apply->ops, apply->params->out, apply->plan.is_folder, err);
	if (apply->staging == NULL || begin_files(apply, err) != 0)
		return -1;
	apply->digests = memory_new_array(schema_count(apply->schema), sizeof(struct digest128));
	if (build_tensors(apply, err) != 0 || check_result(apply, err) != 0)
		return -1;
	return staging_commit(apply->staging, err);
}

static void sum_up(struct apply *const apply)
{
	struct delta_stats *const stats = &apply->stats;
	stats->tensors = schema_count(apply->schema);
	stats->delta_bytes = delta_reader_bytes(apply->reader);
	stats->full_bytes = result_plan_bytes(&apply->plan);
	for (size_t i = 0; i < stats->tensors; i++) {
		const struct schema_tensor *const tensor = schema_tensor(apply->schema, i);
		const struct delta_entry *const entry = apply->entries[i];
		stats->elements += tensor->bytes * 8 / dtype_bits(tensor->dtype);
		stats->changed_elements += entry != NULL ? entry->count : 0;
		stats->changed_tensors += entry != NULL && entry->count > 0;
	}
	for (size_t i = 0; i < apply->plan.file_count; i++)
		stats->delta_bytes += apply->plan.files[i].is_mapped ? apply->plan.files[i].size : 0;
}

int delta_apply(const struct delta_apply_params *const params, struct delta_stats *const out_stats, struct error *const err)
{
	struct apply apply = {
		.params = params,
		.ops = params->files != NULL ? params->files : file_system(),
		.schema = checkpoint_schema(params->base),
	};
	int result = prepare(&apply, err);
	if (result == 0)
		result = build(&apply, err);
	if (result == 0) {
		sum_up(&apply);
		*out_stats = apply.stats;
	}
	staging_free(apply.staging);
	result_plan_release(&apply.plan);
	delta_reader_close(apply.reader);
	free(apply.entries);
	free(apply.own_base_digests);
	free(apply.digests);
	free(apply.files);
	return result;
}
