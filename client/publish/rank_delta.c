/* The delta of a rank is made shard by shard: each shard of `next` (from memory there is one) is
 * encoded against the shard of that name in `base`, in a work folder, and the one file that comes
 * out is moved to the shard's name. Encoding also gives the digests of the base's tensors. Together
 * they must give the digest that the base was published with; so a copy that a power cut damaged is
 * found without another pass over it. */
#include "client/publish/rank_delta.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json_node.h"
#include "base/memory.h"
#include "client/local/folder_files.h"
#include "client/publish/publish_source.h"
#include "client/publish/rank_share.h"
#include "client/transfer/transfer.h"
#include "weights/delta/delta_encode.h"
#include "weights/model/checkpoint_source.h"
#include "weights/model/shard_rule.h"

enum { INDEX_MAX_BYTES = 256 * 1024 * 1024 };
static const char DELTA_FILE[] = "delta.safetensors";

/* One shard on its way into the delta. */
struct shard_delta {
	const struct checkpoint *base;
	const struct checkpoint *next;
	const char *next_path;          /* for messages */
	const char *out;                /* folder to make */
	struct digest128 *base_digests; /* filled in; of base's tensors, in its schema's order */
	struct delta_stats stats;       /* filled in */
};

/* The delta while it is being made. */
struct making {
	const struct rank_delta_params *params;
	struct digest128 *base_digests; /* of all tensors, in the schema's order */
	struct delta_stats *sum;        /* over all shards */
};

static int make_from_folder(
	const struct making *making, const struct folder_files *base, struct error *err);
static int make_from_memory(
	const struct making *making, const struct folder_files *base, struct error *err);
static int check_memory(
	const struct rank_memory *memory, const struct folder_files *base, struct error *err);
static int check_files(
	const struct folder_files *base, const struct folder_files *next, struct error *err);
static int refuse(const char *name, struct error *err);
static bool is_shard(const char *name);
static int same_file(const char *left, const char *right, bool *out_same, struct error *err);
static int make_shard(const struct making *making, const struct folder_file *base,
	const char *next_path, const struct checkpoint *to, struct error *err);
static bool same_header(const struct checkpoint *base, const struct checkpoint *next);
static int encode(
	const struct rank_delta_params *params, struct shard_delta *shard, struct error *err);
static void add_stats(struct delta_stats *sum, const struct delta_stats *one);
static int take_digests(
	const struct making *making, const struct shard_delta *shard, struct error *err);
static int check_base(const struct making *making, struct error *err);
static int make_index(const struct rank_delta_params *params, struct error *err);
static int read_index(
	const struct rank_delta_params *params, struct buffer *out, struct error *err);
static void print_index(const struct shard_index *index, struct buffer *out);

int rank_delta_make(
	const struct rank_delta_params *params, struct delta_stats *out_stats, struct error *err)
{
	struct folder_files base = {0};
	ASSERT((params->next != NULL) != (params->memory != NULL));
	ASSERT(params->schema != NULL && params->next_digests != NULL);
	const size_t tensors = schema_count(params->schema);
	struct making making = {.params = params,
		.base_digests = memory_new_array(tensors + 1, sizeof(*making.base_digests)),
		.sum = out_stats};
	/* The tensors of files other than shards are equal on both sides: check_files proves it. */
	memcpy(making.base_digests, params->next_digests, tensors * sizeof(*making.base_digests));
	*out_stats = (struct delta_stats){0};
	int result = file_remove_tree(params->files, params->out, err);
	if (result == 0)
		result = file_make_folder(params->files, params->out, 0700, err);
	if (result == 0)
		result = folder_files_read(params->base, &base, err);
	if (result == 0)
		result = params->memory != NULL ? make_from_memory(&making, &base, err)
						: make_from_folder(&making, &base, err);
	if (result == 0)
		result = check_base(&making, err);
	if (result == 0)
		result = make_index(params, err);
	if (result == 0 && params->out_base_digests != NULL)
		memcpy(params->out_base_digests, making.base_digests,
			tensors * sizeof(*making.base_digests));
	free(making.base_digests);
	folder_files_release(&base);
	return result;
}

static int make_from_folder(
	const struct making *making, const struct folder_files *base, struct error *err)
{
	struct folder_files next = {0};
	int result = folder_files_read(making->params->next, &next, err);
	if (result == 0)
		result = check_files(base, &next, err);
	for (size_t i = 0; i < next.count && result == 0; i++) {
		if (!is_shard(next.files[i].name))
			continue;
		struct checkpoint *const to = checkpoint_open(next.files[i].path, err);
		result = to == NULL
			? -1
			: make_shard(making, &base->files[i], next.files[i].path, to, err);
		checkpoint_close(to);
	}
	folder_files_release(&next);
	return result;
}

static int make_from_memory(
	const struct making *making, const struct folder_files *base, struct error *err)
{
	const struct rank_memory *const memory = making->params->memory;
	struct checkpoint *const to = rank_memory_open_shard(memory, err);
	int result = to == NULL ? -1 : check_memory(memory, base, err);
	for (size_t i = 0; i < base->count && result == 0; i++)
		if (strcmp(base->files[i].name, memory->shard) == 0)
			result = make_shard(making, &base->files[i], memory->shard, to, err);
	checkpoint_close(to);
	return result;
}

/* As check_files. */
static int check_memory(
	const struct rank_memory *memory, const struct folder_files *base, struct error *err)
{
	size_t shards = 0;
	for (size_t i = 0; i < base->count; i++) {
		const struct folder_file *const file = &base->files[i];
		const struct span *const bytes = rank_memory_file(memory, file->name);
		struct digest128 held;
		if (strcmp(file->name, memory->shard) == 0) {
			shards++;
			continue;
		}
		if (bytes == NULL)
			return refuse(file->name, err);
		if (transfer_file_digest(file->path, &held, err) != 0)
			return -1;
		const struct digest128 given = xxh3_128(*bytes);
		if (!digest128_equal(&held, &given))
			return refuse(file->name, err);
	}
	if (shards != 1)
		return refuse(memory->shard, err);
	return base->count == 1 + rank_memory_file_count(memory) ? 0
								 : refuse("the list of files", err);
}

/* Checks that both sides have files of the same names, and that those without tensors are equal. */
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
		"%s is not as in the step before, and only an anchor can carry that change: give "
		"--anchor always, on every rank",
		name);
}

static bool is_shard(const char *name)
{
	return shard_rule_is_top(span_text(name));
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

/* Makes the delta of one shard and moves it to the shard's name. */
static int make_shard(const struct making *making, const struct folder_file *base,
	const char *next_path, const struct checkpoint *to, struct error *err)
{
	const struct rank_delta_params *const params = making->params;
	struct checkpoint *const from = checkpoint_open(base->path, err);
	char *const work = folder_files_join(params->out, ".making");
	char *const made = folder_files_join(work, DELTA_FILE);
	char *const out = folder_files_join(params->out, base->name);
	struct shard_delta shard = {.base = from, .next = to, .next_path = next_path, .out = work};
	int result = from == NULL ? -1 : 0;
	if (result == 0 && !same_header(from, to))
		result = refuse(base->name, err);
	shard.base_digests = memory_new_array(
		schema_count(checkpoint_schema(to)) + 1, sizeof(*shard.base_digests));
	if (result == 0)
		result = encode(params, &shard, err);
	if (result == 0 && params->files->rename(params->files, made, out) != 0)
		result = error_set_errno(err, "renaming %s to %s", made, out);
	if (result == 0)
		result = file_remove_tree(params->files, work, err);
	if (result == 0) {
		add_stats(making->sum, &shard.stats);
		result = take_digests(making, &shard, err);
	}
	free(shard.base_digests);
	free(out);
	free(made);
	free(work);
	checkpoint_close(from);
	return result;
}

static bool same_header(const struct checkpoint *base, const struct checkpoint *next)
{
	return span_equal(checkpoint_file(base, 0)->header, checkpoint_file(next, 0)->header);
}

static int encode(
	const struct rank_delta_params *params, struct shard_delta *shard, struct error *err)
{
	struct model_files base_files = {0};
	struct model_files next_files = {0};
	struct tensor_source *const base_source = checkpoint_source_new(shard->base);
	struct tensor_source *const next_source = checkpoint_source_new(shard->next);
	int result = model_files_of(&base_files, shard->base, err);
	if (result == 0)
		result = model_files_of(&next_files, shard->next, err);
	next_files.is_folder = false; /* one from memory always is */
	const struct delta_encode_params encode = {
		.base = base_source,
		.next = next_source,
		.base_files = &base_files,
		.next_files = &next_files,
		.out_base_digests = shard->base_digests,
		.format = DELTA_ULP_CLASS,
		.model_version = params->step,
		.is_part = true,
		.threads = params->threads,
		.watch = params->watch,
		.out = shard->out,
		.files = params->files,
	};
	if (result == 0)
		result = delta_encode(&encode, &shard->stats, err);
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

/* The shard was opened again after the schema was read, so it may have changed. */
static int take_digests(
	const struct making *making, const struct shard_delta *shard, struct error *err)
{
	const struct schema *const schema = checkpoint_schema(shard->next);
	for (size_t i = 0; i < schema_count(schema); i++) {
		const ptrdiff_t index =
			schema_find(making->params->schema, schema_tensor(schema, i)->name);
		if (index < 0)
			return publish_source_refuse(shard->next_path, err);
		making->base_digests[index] = shard->base_digests[i];
	}
	return 0;
}

static int check_base(const struct making *making, struct error *err)
{
	const struct rank_delta_params *const params = making->params;
	ASSERT(making->base_digests != NULL);
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
	char *const to = folder_files_join(params->out, RANK_SHARE_INDEX_NAME);
	buffer_init(&text, INDEX_MAX_BYTES);
	buffer_init(&made, INDEX_MAX_BYTES);
	int result = read_index(params, &text, err);
	if (result == 0 && text.len > 0) {
		index = shard_index_parse(buffer_span(&text), RANK_SHARE_INDEX_NAME, err);
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
	return result;
}

/* Empty when this rank has none. */
static int read_index(const struct rank_delta_params *params, struct buffer *out, struct error *err)
{
	if (params->memory != NULL) {
		buffer_add_span(out, params->memory->index);
		return buffer_check(out, RANK_SHARE_INDEX_NAME, err);
	}
	char *const path = folder_files_join(params->next, RANK_SHARE_INDEX);
	const int result = file_exists(path) ? file_read_all(path, out, err) : 0;
	free(path);
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
