/* The two ends of a delta that need no base, and delta_diff: one pass that finds the changes and hashes, then delta_writer. */
#include "weights/delta.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/delta_reader.h"
#include "weights/delta_writer.h"
#include "weights/parallel.h"

/* Positions of changes kept between the two passes: enough for 1 % of a 70-billion-parameter model. */
#define KEPT_BYTES (INT64_C(2) << 30)

static const char *const format_names[] = {
	[DELTA_ULP_CLASS] = "ulp-class", [DELTA_SLIME_XOR] = "slime-xor", [DELTA_SLIME_OVERWRITE] = "slime-overwrite",
	[DELTA_TRL_GAP] = "trl-gap", [DELTA_TRL_RAW] = "trl-raw", [DELTA_TRL_V1] = "trl-v1", [DELTA_FULL] = "full",
};
static const char *const checksum_names[] = {[DELTA_XXH3_128] = "xxh3-128", [DELTA_BLAKE3] = "blake3", [DELTA_ADLER32] = "adler32"};

const char *delta_format_name(const enum delta_format format)
{
	ASSERT((unsigned)format < DELTA_FORMATS);
	return format_names[format];
}

const char *delta_format_list(void)
{
	return "ulp-class, slime-xor, slime-overwrite, trl-gap, trl-raw, trl-v1 or full";
}

bool delta_format_parse(const struct span name, enum delta_format *const out_format)
{
	for (unsigned i = 0; i < DELTA_FORMATS; i++) {
		if (span_equal_text(name, format_names[i])) {
			*out_format = (enum delta_format)i;
			return true;
		}
	}
	return false;
}

const char *delta_checksum_name(const enum delta_checksum checksum)
{
	ASSERT((unsigned)checksum < DELTA_CHECKSUMS);
	return checksum_names[checksum];
}

bool delta_checksum_parse(const struct span name, enum delta_checksum *const out_checksum)
{
	if (span_equal_text(name, "alder32")) {
		*out_checksum = DELTA_ADLER32;
		return true;
	}
	for (unsigned i = 0; i < DELTA_CHECKSUMS; i++) {
		if (span_equal_text(name, checksum_names[i])) {
			*out_checksum = (enum delta_checksum)i;
			return true;
		}
	}
	return false;
}

struct diff {
	const struct delta_diff_params *params;
	const struct schema *schema;
	struct diff_tensor *tensors;
	struct digest128 *base_digests; /* NULL when given */
	struct digest128 *next_digests;
	struct diff_scratch *scratch;
	_Atomic int64_t budget;
};

static int find_tensor(void *const state, const size_t item, const unsigned worker, struct error *const err)
{
	struct diff *const diff = state;
	(void)err;
	diff_tensor_find(&diff->tensors[item], diff->base_digests != NULL ? &diff->base_digests[item] : NULL,
		diff->next_digests != NULL ? &diff->next_digests[item] : NULL, &diff->budget, &diff->scratch[worker]);
	return 0;
}

static void find_all(struct diff *const diff)
{
	const size_t count = schema_count(diff->schema);
	const unsigned workers = parallel_workers(diff->params->threads, count);
	struct error unused;
	for (size_t i = 0; i < count; i++) {
		diff->tensors[i].facts = schema_tensor(diff->schema, i);
		diff->tensors[i].base = checkpoint_tensor(diff->params->base, i);
		diff->tensors[i].next = checkpoint_tensor(diff->params->next, i);
	}
	diff->scratch = memory_new_array(workers, sizeof(diff->scratch[0]));
	for (unsigned i = 0; i < workers; i++)
		diff_scratch_init(&diff->scratch[i]);
	const int result = parallel_run(workers, count, find_tensor, diff, &unused);
	ASSERT(result == 0);
	for (unsigned i = 0; i < workers; i++)
		diff_scratch_release(&diff->scratch[i]);
	free(diff->scratch);
}

static struct delta_stats sum_up(const struct diff *const diff)
{
	const struct delta_diff_params *const params = diff->params;
	struct delta_stats stats = {
		.tensors = schema_count(diff->schema),
		.full_bytes = checkpoint_bytes(params->next),
		.base_digest =
			schema_checkpoint_digest(diff->schema, diff->base_digests != NULL ? diff->base_digests : params->base_tensor_digests),
		.result_digest =
			schema_checkpoint_digest(diff->schema, diff->next_digests != NULL ? diff->next_digests : params->next_tensor_digests),
	};
	for (size_t i = 0; i < stats.tensors; i++) {
		stats.elements += diff->tensors[i].elements;
		stats.changed_elements += diff->tensors[i].changed;
		stats.changed_tensors += diff->tensors[i].kind != DIFF_SAME;
	}
	return stats;
}

static int check_schemas(const struct delta_diff_params *const params, struct error *const err)
{
	if (schema_check(checkpoint_schema(params->base), checkpoint_schema(params->next), err) == 0)
		return 0;
	err->kind = ERROR_SCHEMA_MISMATCH;
	return error_wrap(err, "the new checkpoint does not have the base's tensors");
}

int delta_diff(const struct delta_diff_params *const params, struct delta_stats *const out_stats, struct error *const err)
{
	if (check_schemas(params, err) != 0)
		return -1;
	if (params->format < DELTA_TRL_GAP || params->format > DELTA_TRL_V1)
		return error_set(err, ERROR_UNSUPPORTED, "the format %s cannot be written yet", delta_format_name(params->format));
	if (file_exists(params->out))
		return error_set(err, ERROR_EXISTS, "'%s' exists already", params->out);
	const struct schema *const schema = checkpoint_schema(params->base);
	const size_t count = schema_count(schema);
	struct diff diff = {
		.params = params,
		.schema = schema,
		.tensors = memory_new_array(count, sizeof(struct diff_tensor)),
		.base_digests = params->base_tensor_digests == NULL ? memory_new_array(count, sizeof(struct digest128)) : NULL,
		.next_digests = params->next_tensor_digests == NULL ? memory_new_array(count, sizeof(struct digest128)) : NULL,
		.budget = KEPT_BYTES,
	};
	find_all(&diff);
	struct delta_stats stats = sum_up(&diff);
	const int result = delta_writer_run(params, diff.tensors, &stats, err);
	if (result == 0)
		*out_stats = stats;
	for (size_t i = 0; i < count; i++)
		diff_tensor_release(&diff.tensors[i]);
	free(diff.tensors);
	free(diff.base_digests);
	free(diff.next_digests);
	return result;
}

static struct delta_summary summarise(const struct delta_reader *const reader)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	struct delta_summary summary = {
		.is_delta = true,
		.format = delta_reader_format(reader),
		.has_digests = metadata->has_base_digest && metadata->has_result_digest,
		.has_step = metadata->has_step && metadata->step > 0,
		.step = metadata->step,
		.has_base_step = metadata->has_base_step,
		.base_step = metadata->base_step,
		.bytes = delta_reader_bytes(reader),
		.changed_tensors = delta_reader_changed_tensors(reader),
	};
	summary.has_changed_elements = delta_reader_changed(reader, &summary.changed_elements);
	if (summary.has_digests) {
		summary.base_digest = metadata->base_digest;
		summary.result_digest = metadata->result_digest;
	}
	return summary;
}

int delta_inspect(const char *const path, struct delta_summary *const out_summary, struct error *const err)
{
	struct delta_reader *const reader = delta_reader_open(path, err);
	if (reader == NULL)
		return -1;
	*out_summary = delta_reader_checkpoint(reader) == NULL ? summarise(reader) : (struct delta_summary){0};
	delta_reader_close(reader);
	return 0;
}
