/* Two ways: a full checkpoint is written by checkpoint_writer during the pass. Any other delta has
 * three phases: the pass fills the payload, the layout makes files and headers once all sizes are
 * known, and then the payload of each tensor is copied to its place. Digests are compared before
 * the layout, so a wrong base costs no writing. */
#include "weights/delta/delta_encode.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/codec/element_scan.h"
#include "weights/delta/checkpoint_writer.h"
#include "weights/delta/delta_layout.h"
#include "weights/model/parallel.h"

struct encode {
	const struct delta_encode_params *params;
	const struct file_ops *files;
	const struct schema *schema;
	struct digest128 *base_digests; /* NULL: the caller gave them */
	struct digest128 *next_digests; /* the same */
	struct delta_stats stats;
	struct payload payload;         /* unless the format is DELTA_FULL */
	struct checkpoint_writer *full; /* DELTA_FULL only */
	_Atomic uint64_t full_changed;  /* DELTA_FULL only: changed elements */
};

static int check_schemas(const struct delta_encode_params *params, struct error *err);
static int encode_full(struct encode *encode, struct error *err);
static struct tensor_pass make_pass(struct encode *encode);
static int delta_encode_take_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);
static int delta_encode_take_full(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err);
static int check_digests(struct encode *encode, struct error *err);
static int check_digest(const struct digest128 *actual, const struct digest128 *expected,
	enum error_kind kind, const char *what, struct error *err);
static void sum_full(struct encode *encode);
static int encode_delta(struct encode *encode, struct error *err);
static int finish(struct encode *encode, struct staging *staging, struct error *err);
static int delta_encode_write_tensor(void *state, size_t item, unsigned worker, struct error *err);
static void give_digests(const struct digest128 *made, const struct digest128 *given,
	struct digest128 *out, size_t count);

int delta_encode(
	const struct delta_encode_params *params, struct delta_stats *out_stats, struct error *err)
{
	ASSERT((unsigned)params->format < DELTA_FORMATS);
	ASSERT(params->base != NULL && params->next != NULL && params->next_files != NULL);
	ASSERT(!params->is_part || params->format == DELTA_ULP_CLASS);
	if (check_schemas(params, err) != 0 ||
		model_files_check(params->next_files, params->next->schema, err) != 0)
		return -1;
	if (file_exists(params->out))
		return error_set(err, ERROR_EXISTS, "'%s' exists already", params->out);
	const size_t count = schema_count(params->next->schema);
	struct encode encode = {
		.params = params,
		.files = params->files != NULL ? params->files : file_system(),
		.schema = params->next->schema,
		.base_digests = params->base_digests == NULL
			? memory_new_array(count, sizeof(struct digest128))
			: NULL,
		.next_digests = params->next_digests == NULL
			? memory_new_array(count, sizeof(struct digest128))
			: NULL,
	};
	encode.stats.full_bytes = model_files_bytes(params->next_files);
	const int result = params->format == DELTA_FULL ? encode_full(&encode, err)
							: encode_delta(&encode, err);
	if (result == 0) {
		*out_stats = encode.stats;
		give_digests(
			encode.base_digests, params->base_digests, params->out_base_digests, count);
		give_digests(
			encode.next_digests, params->next_digests, params->out_next_digests, count);
	}
	free(encode.base_digests);
	free(encode.next_digests);
	return result;
}

static int check_schemas(const struct delta_encode_params *params, struct error *err)
{
	if (schema_check(params->base->schema, params->next->schema, err) == 0)
		return 0;
	err->kind = ERROR_SCHEMA_MISMATCH;
	return error_wrap(err, "the new checkpoint does not have the base's tensors");
}

static int encode_full(struct encode *encode, struct error *err)
{
	const struct delta_encode_params *const params = encode->params;
	const struct tensor_pass pass = make_pass(encode);
	encode->full = checkpoint_writer_begin(
		encode->files, params->out, params->next_files, encode->schema, NULL, err);
	int result = encode->full != NULL ? tensor_pass_run(&pass, err) : -1;
	if (result == 0)
		result = check_digests(encode, err);
	if (result == 0) {
		sum_full(encode);
		result = checkpoint_writer_commit(encode->full, err);
	}
	checkpoint_writer_free(encode->full);
	return result;
}

static struct tensor_pass make_pass(struct encode *encode)
{
	const struct payload_ops *const ops = payload_ops_of(encode->params->format);
	return (struct tensor_pass){
		.base = encode->params->base,
		.next = encode->params->next,
		.threads = encode->params->threads,
		.watch = encode->params->watch,
		.keeps_tensors = ops != NULL && ops->keeps_tensors,
		.block = ops != NULL ? delta_encode_take_block : delta_encode_take_full,
		.state = encode,
		.known_base = encode->params->base_digests,
		.base_digests = encode->base_digests,
		.next_digests = encode->next_digests,
	};
}

static int delta_encode_take_block(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	struct encode *const encode = state;
	return encode->payload.ops->block(&encode->payload, worker, block, err);
}

static int delta_encode_take_full(
	void *state, unsigned worker, const struct tensor_block *block, struct error *err)
{
	struct encode *const encode = state;
	const unsigned bits = dtype_bits(schema_tensor(encode->schema, block->tensor)->dtype);
	(void)worker;
	encode->full_changed += element_scan_count(
		block->base.data, block->next.data, block->next.len, bits < 8 ? 1 : bits / 8);
	return checkpoint_writer_put(encode->full, block->tensor, block->at, block->next, err);
}

static int check_digests(struct encode *encode, struct error *err)
{
	const struct delta_encode_params *const params = encode->params;
	encode->stats.base_digest = schema_checkpoint_digest(encode->schema,
		encode->base_digests != NULL ? encode->base_digests : params->base_digests);
	encode->stats.result_digest = schema_checkpoint_digest(encode->schema,
		encode->next_digests != NULL ? encode->next_digests : params->next_digests);
	return check_digest(&encode->stats.base_digest, params->expected_base, ERROR_WRONG_BASE,
		       "base", err) != 0
		? -1
		: check_digest(&encode->stats.result_digest, params->expected_next,
			  ERROR_DIGEST_MISMATCH, "result", err);
}

static int check_digest(const struct digest128 *actual, const struct digest128 *expected,
	enum error_kind kind, const char *what, struct error *err)
{
	if (expected == NULL || digest128_equal(actual, expected))
		return 0;
	char wanted_text[DIGEST128_TEXT_BYTES];
	char actual_text[DIGEST128_TEXT_BYTES];
	digest128_format(expected, wanted_text);
	digest128_format(actual, actual_text);
	return error_set(
		err, kind, "the %s is %s and should be %s", what, actual_text, wanted_text);
}

static void sum_full(struct encode *encode)
{
	struct delta_stats *const stats = &encode->stats;
	const struct digest128 *const base =
		encode->base_digests != NULL ? encode->base_digests : encode->params->base_digests;
	const struct digest128 *const next =
		encode->next_digests != NULL ? encode->next_digests : encode->params->next_digests;
	stats->tensors = schema_count(encode->schema);
	for (size_t i = 0; i < stats->tensors; i++) {
		const struct schema_tensor *const tensor = schema_tensor(encode->schema, i);
		const uint64_t elements = tensor->bytes * 8 / dtype_bits(tensor->dtype);
		stats->elements += elements;
		stats->changed_tensors += !digest128_equal(&base[i], &next[i]);
	}
	stats->changed_elements = encode->full_changed;
	stats->payload_bytes = schema_bytes(encode->schema);
	stats->delta_bytes = model_files_bytes(encode->params->next_files);
}

static int encode_delta(struct encode *encode, struct error *err)
{
	const struct delta_encode_params *const params = encode->params;
	const struct tensor_pass pass = make_pass(encode);
	struct staging *const staging = staging_begin(encode->files, params->out,
		delta_layout_is_folder(params->format, params->next_files), err);
	if (staging == NULL)
		return -1;
	payload_init(&encode->payload, params, encode->files, staging, tensor_pass_workers(&pass));
	int result = tensor_pass_run(&pass, err);
	if (result == 0)
		result = finish(encode, staging, err);
	payload_release(&encode->payload);
	staging_free(staging);
	return result;
}

static int finish(struct encode *encode, struct staging *staging, struct error *err)
{
	payload_sum(&encode->payload, &encode->stats);
	if (check_digests(encode, err) != 0)
		return -1;
	struct delta_layout layout = {
		.payload = &encode->payload,
		.staging = staging,
		.params = encode->params,
		.next_digests = encode->next_digests != NULL ? encode->next_digests
							     : encode->params->next_digests,
		.stats = &encode->stats,
		.has_digests = !encode->params->is_part,
	};
	if (delta_layout_make(&layout, err) != 0)
		return -1;
	const size_t count = schema_count(encode->schema);
	const unsigned workers = parallel_workers(encode->payload.worker_count, count);
	return parallel_run(workers, count, delta_encode_write_tensor, &encode->payload, err) != 0
		? -1
		: staging_commit(staging, err);
}

static int delta_encode_write_tensor(void *state, size_t item, unsigned worker, struct error *err)
{
	struct payload *const payload = state;
	struct payload_tensor *const tensor = &payload->tensors[item];
	return tensor->changed > 0 || payload->params->is_part
		? payload->ops->write(payload, worker, tensor, err)
		: 0;
}

static void give_digests(const struct digest128 *made, const struct digest128 *given,
	struct digest128 *out, size_t count)
{
	for (size_t i = 0; out != NULL && i < count; i++)
		out[i] = made != NULL ? made[i] : given[i];
}
