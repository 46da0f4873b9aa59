#include "client/publish/rank_delta.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/publish/rank_share.h"
#include "client/transfer/transfer.h"
#include "weights/delta/delta_encode.h"
#include "weights/model/checkpoint_source.h"
#include "weights/model/shard_index.h"

enum { INDEX_MAX_BYTES = 256 * 1024 * 1024 };
static const char DELTA_FILE[] = "delta.safetensors";

/* What is made on the way. */
struct making {
	const struct rank_delta_params *params;
	struct digest128 *base_digests; /* of all tensors, in the schema's order */
	struct delta_stats *sum;
};

static int check_files(
	const struct folder_files *base, const struct folder_files *next, struct error *err);
static int refuse(const char *name, struct error *err);
static bool is_shard(const char *name);
static int same_file(const char *left, const char *right, bool *out_same, struct error *err);
static int make_shard(const struct making *making, const struct folder_file *base,
	const struct folder_file *next, struct error *err);
static bool same_header(const struct checkpoint *base, const struct checkpoint *next);
static int encode(const struct rank_delta_params *params, const struct checkpoint *base,
	const struct checkpoint *next, const char *out, struct digest128 *base_digests,
	struct delta_stats *stats, struct error *err);
static void add_stats(struct delta_stats *sum, const struct delta_stats *one);
static void take_digests(
	const struct making *making, const struct schema *shard, const struct digest128 *digests);
static int check_base(const struct making *making, struct error *err);
static int make_index(const struct rank_delta_params *params, struct error *err);
static void print_index(const struct shard_index *index, struct buffer *out);

int rank_delta_make(
	const struct rank_delta_params *params, struct delta_stats *out_stats, struct error *err)
{
	struct folder_files base = {0};
	struct folder_files next = {0};
	const size_t tensors = schema_count(params->schema);
	struct making making = {.params = params,
		.base_digests = memory_new_array(tensors + 1, sizeof *making.base_digests),
		.sum = out_stats};
	/* Files other than the shards are the same on both sides, and so are their tensors. */
	memcpy(making.base_digests, params->next_digests, tensors * sizeof *making.base_digests);
	*out_stats = (struct delta_stats){0};
	int result = file_remove_tree(params->files, params->out, err);
	if (result == 0)
		result = file_make_folder(params->files, params->out, 0700, err);
	if (result == 0)
		result = folder_files_read(params->base, &base, err);
	if (result == 0)
		result = folder_files_read(params->next, &next, err);
	if (result == 0)
		result = check_files(&base, &next, err);
	for (size_t i = 0; i < next.count && result == 0; i++)
		if (is_shard(next.files[i].name))
			result = make_shard(&making, &base.files[i], &next.files[i], err);
	if (result == 0)
		result = check_base(&making, err);
	if (result == 0)
		result = make_index(params, err);
	free(making.base_digests);
	folder_files_release(&next);
	folder_files_release(&base);
	return result;
}

/* The same files, and those without tensors unchanged. */
static int check_files(
	const struct folder_files *base, const struct folder_files *next, struct error *err)
{
	for (size_t i = 0; i < base->count || i < next->count; i++) {
		if (i >= base->count || i >= next->count ||
			strcmp(base->files[i].name, next->files[i].name) != 0)
			return refuse(
				i < next->count ? next->files[i].name : base->files[i].name, err);
		bool same = true;
		if (!is_shard(next->files[i].name) &&
			same_file(base->files[i].path, next->files[i].path, &same, err) != 0)
			return -1;
		if (!same)
			return refuse(next->files[i].name, err);
	}
	return 0;
}

static int refuse(const char *name, struct error *err)
{
	return error_set(err, ERROR_UNSUPPORTED,
		"%s is not as in the step before: many ranks publish that as an anchor (--anchor always, on every rank)",
		name);
}

static bool is_shard(const char *name)
{
	return span_ends_text(span_text(name), ".safetensors") && strchr(name, '/') == NULL;
}

static int same_file(const char *left, const char *right, bool *out_same, struct error *err)
{
	struct digest128 a;
	struct digest128 b;
	if (transfer_file_digest(left, &a, err) != 0 || transfer_file_digest(right, &b, err) != 0)
		return -1;
	*out_same = digest128_equal(&a, &b);
	return 0;
}

/* One shard's delta, moved to the shard's name. */
static int make_shard(const struct making *making, const struct folder_file *base,
	const struct folder_file *next, struct error *err)
{
	const struct rank_delta_params *const params = making->params;
	struct checkpoint *const from = checkpoint_open(base->path, err);
	struct checkpoint *const to = from == NULL ? NULL : checkpoint_open(next->path, err);
	char *const work = folder_files_join(params->out, ".making");
	char *const made = folder_files_join(work, DELTA_FILE);
	char *const out = folder_files_join(params->out, next->name);
	struct delta_stats stats;
	int result = to == NULL ? -1 : 0;
	if (result == 0 && !same_header(from, to))
		result = refuse(next->name, err);
	struct digest128 *const digests = memory_new_array(
		to == NULL ? 1 : schema_count(checkpoint_schema(to)) + 1, sizeof *digests);
	if (result == 0)
		result = encode(params, from, to, work, digests, &stats, err);
	if (result == 0 && params->files->rename(params->files, made, out) != 0)
		result = error_set_errno(err, "renaming %s to %s", made, out);
	if (result == 0)
		result = file_remove_tree(params->files, work, err);
	if (result == 0) {
		add_stats(making->sum, &stats);
		take_digests(making, checkpoint_schema(to), digests);
	}
	free(digests);
	free(out);
	free(made);
	free(work);
	checkpoint_close(to);
	checkpoint_close(from);
	return result;
}

static bool same_header(const struct checkpoint *base, const struct checkpoint *next)
{
	return span_equal(checkpoint_file(base, 0)->header, checkpoint_file(next, 0)->header);
}

static int encode(const struct rank_delta_params *params, const struct checkpoint *base,
	const struct checkpoint *next, const char *out, struct digest128 *base_digests,
	struct delta_stats *stats, struct error *err)
{
	struct model_files base_files = {0};
	struct model_files next_files = {0};
	struct tensor_source *const base_source = checkpoint_source_new(base);
	struct tensor_source *const next_source = checkpoint_source_new(next);
	int result = model_files_of(&base_files, base, err);
	if (result == 0)
		result = model_files_of(&next_files, next, err);
	const struct delta_encode_params encode = {
		.base = base_source,
		.next = next_source,
		.base_files = &base_files,
		.next_files = &next_files,
		.out_base_digests = base_digests,
		.format = DELTA_ULP_CLASS,
		.model_version = params->step,
		.is_part = true,
		.threads = params->threads,
		.out = out,
		.files = params->files,
	};
	if (result == 0)
		result = delta_encode(&encode, stats, err);
	model_files_release(&base_files);
	model_files_release(&next_files);
	tensor_source_free(base_source);
	tensor_source_free(next_source);
	return result;
}

static void add_stats(struct delta_stats *sum, const struct delta_stats *one)
{
	sum->elements += one->elements;
	sum->changed_elements += one->changed_elements;
	sum->tensors += one->tensors;
	sum->changed_tensors += one->changed_tensors;
	sum->delta_bytes += one->delta_bytes;
	sum->full_bytes += one->full_bytes;
}

static void take_digests(
	const struct making *making, const struct schema *shard, const struct digest128 *digests)
{
	for (size_t i = 0; i < schema_count(shard); i++) {
		const ptrdiff_t index =
			schema_find(making->params->schema, schema_tensor(shard, i)->name);
		ASSERT(index >= 0);
		making->base_digests[index] = digests[i];
	}
}

static int check_base(const struct making *making, struct error *err)
{
	const struct rank_delta_params *const params = making->params;
	const struct digest128 found =
		schema_checkpoint_digest(params->schema, making->base_digests);
	if (params->base_digest == NULL || digest128_equal(&found, params->base_digest))
		return 0;
	return error_set(err, ERROR_WRONG_BASE,
		"the baseline in %s is damaged: its digest is not that of the committed step",
		params->base);
}

static int make_index(const struct rank_delta_params *params, struct error *err)
{
	struct buffer text;
	struct buffer made;
	struct shard_index *index = NULL;
	char *const from = folder_files_join(params->next, RANK_SHARE_INDEX);
	char *const to = folder_files_join(params->out, RANK_SHARE_INDEX_NAME);
	int result = 0;
	buffer_init(&text, INDEX_MAX_BYTES);
	buffer_init(&made, INDEX_MAX_BYTES);
	if (file_exists(from)) {
		result = file_read_all(from, &text, err);
		index = result == 0 ? shard_index_parse(buffer_span(&text), from, err) : NULL;
		result = index == NULL ? -1 : 0;
		if (result == 0) {
			print_index(index, &made);
			result = buffer_check(&made, to, err);
		}
		if (result == 0)
			result = file_publish(params->files, to, buffer_span(&made), 0644, err);
	}
	shard_index_free(index);
	buffer_release(&made);
	buffer_release(&text);
	free(to);
	free(from);
	return result;
}

static void print_index(const struct shard_index *index, struct buffer *out)
{
	struct json_writer writer;
	json_writer_init(&writer, out);
	json_writer_object(&writer, NULL);
	json_writer_object(&writer, "metadata");
	json_writer_text(&writer, "delta_encoding", span_text("ulp-class"));
	json_writer_text(&writer, "compression_format", span_text("none"));
	json_writer_end(&writer, '}');
	json_writer_object(&writer, "weight_map");
	for (size_t i = 0; i < shard_index_count(index); i++) {
		const struct json_scan_pair *const pair = shard_index_pair(index, i);
		char *const name = memory_new(pair->key.len + 1);
		memcpy(name, pair->key.data, pair->key.len);
		json_writer_text(&writer, name, pair->value);
		free(name);
	}
	json_writer_end(&writer, '}');
	json_writer_end(&writer, '}');
}
