/* The two ends of a delta that need no base, and delta_diff: one pass that finds the changes and hashes, then delta_writer. */
#include "weights/delta.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "weights/delta_reader.h"
#include "weights/delta_writer.h"
#include "weights/mapped_file.h"
#include "weights/parallel.h"

/* Positions of changes kept between the two passes: enough for 1 % of a 70-billion-parameter model. */
#define KEPT_BYTES (INT64_C(2) << 30)

static const char *const format_names[] = {[DELTA_TRL_GAP] = "trl-gap", [DELTA_TRL_RAW] = "trl-raw", [DELTA_TRL_V1] = "trl-v1"};
enum { FORMAT_COUNT = sizeof(format_names) / sizeof(format_names[0]) };

const char *delta_format_name(const enum delta_format format)
{
	ASSERT((unsigned)format < FORMAT_COUNT);
	return format_names[format];
}

bool delta_format_parse(const struct span name, enum delta_format *const out_format)
{
	for (unsigned i = 0; i < FORMAT_COUNT; i++) {
		if (span_equal_text(name, format_names[i])) {
			*out_format = (enum delta_format)i;
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
	};
	if (summary.has_digests) {
		summary.base_digest = metadata->base_digest;
		summary.result_digest = metadata->result_digest;
	}
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		const struct delta_entry *const entry = delta_reader_entry(reader, i);
		summary.changed_elements += entry->count;
		summary.changed_tensors += entry->count > 0;
	}
	return summary;
}

/* Whether a file's metadata, or a folder's file names, say that it is a delta. */
static int looks_like_delta(const char *const path, bool *const out_is_delta, struct error *const err)
{
	struct stat facts;
	if (stat(path, &facts) != 0)
		return error_set_errno(err, "cannot open '%s'", path);
	if (S_ISDIR(facts.st_mode)) {
		*out_is_delta = delta_reader_is_delta_folder(path);
		return 0;
	}
	struct span bytes = {0};
	struct span header;
	struct span data;
	if (mapped_file_open(path, &bytes, err) != 0)
		return -1;
	struct safetensors *const shard = mapped_file_safetensors(bytes, path, &header, &data, err);
	if (shard != NULL)
		*out_is_delta = span_equal_text(safetensors_metadata_find(shard, "format"), "sparse_weight_patch");
	const int result = shard != NULL ? 0 : -1;
	safetensors_free(shard);
	mapped_file_close(bytes);
	return result;
}

int delta_inspect(const char *const path, struct delta_summary *const out_summary, struct error *const err)
{
	bool is_delta = false;
	if (looks_like_delta(path, &is_delta, err) != 0)
		return -1;
	if (is_delta) {
		struct delta_reader *const reader = delta_reader_open(path, err);
		if (reader == NULL)
			return -1;
		*out_summary = summarise(reader);
		delta_reader_close(reader);
		return 0;
	}
	struct checkpoint *const checkpoint = checkpoint_open(path, err);
	if (checkpoint == NULL)
		return -1;
	*out_summary = (struct delta_summary){0};
	checkpoint_close(checkpoint);
	return 0;
}
