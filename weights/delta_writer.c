/* A delta of a file, or of a folder with one shard, is one safetensors file. Otherwise the tensors of each shard that changed make one
 * file, numbered from 1, and the index carries what concerns the whole. The layout of all files is known before the first value is
 * written, so threads write tensors where they belong in any order. */
#include "weights/delta_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "weights/delta_metadata.h"
#include "weights/parallel.h"
#include "weights/relative_path.h"

#define TABLE_CAP_BYTES (UINT64_C(8) << 30)
enum { HEADER_CAP_BYTES = 100000000 + 64, INDEX_CAP_BYTES = 1 << 30, FILE_NAME_BYTES = 64 };

struct suffixes {
	const char *index;
	const char *values;
};
static const struct suffixes format_suffixes[] = {
	[DELTA_TRL_GAP] = {".idx", ".val"},
	[DELTA_TRL_RAW] = {".idx", ".val"},
	[DELTA_TRL_V1] = {".indices", ".values"},
};
static const char whole_suffix[] = ".full";

struct delta_writer {
	const struct delta_diff_params *params;
	const struct file_ops *ops;
	const struct schema *schema;
	struct diff_tensor *tensors;
	struct delta_stats *stats;
	struct staging *staging;
	struct arena *arena;       /* names of the delta's tensors */
	size_t *shards;            /* of `next`, per tensor */
	size_t shard_count;
	bool is_sharded;           /* the delta is */
	struct delta_result_file *files;
	size_t file_count;
	struct buffer weight_map;  /* JSON members, of a sharded delta */
	struct diff_scratch *scratch;
};

static size_t count_shards(const struct checkpoint *const checkpoint)
{
	size_t shards = 0;
	for (size_t i = 0; i < checkpoint_file_count(checkpoint); i++)
		shards += checkpoint_file(checkpoint, i)->shard != NULL;
	return shards;
}

static void place_tensors(struct delta_writer *const writer)
{
	size_t number = 0;
	writer->shards = memory_new_array(schema_count(writer->schema), sizeof(size_t));
	for (size_t i = 0; i < checkpoint_file_count(writer->params->next); i++) {
		const struct safetensors *const shard = checkpoint_file(writer->params->next, i)->shard;
		for (size_t k = 0; shard != NULL && k < safetensors_count(shard); k++)
			writer->shards[schema_find(writer->schema, safetensors_tensor(shard, k)->name)] = number;
		number += shard != NULL;
	}
}

/* What the result's file takes from the base, and what must come with the delta. */
static struct delta_result_file describe_file(const struct delta_writer *const writer, const struct checkpoint_file *const next)
{
	const struct checkpoint_file *const base = checkpoint_file_find(writer->params->base, span_text(next->path));
	const bool is_shard = next->shard != NULL;
	const bool same_kind = base != NULL && (base->shard != NULL) == is_shard;
	const struct span part = is_shard ? next->header : next->bytes;
	return (struct delta_result_file){
		.path = span_text(next->path),
		.size = next->size,
		.is_shard = is_shard,
		.from_delta = !same_kind || !span_equal(is_shard ? base->header : base->bytes, part),
		.digest = xxh3_128(part),
		.header = is_shard ? span_slice(next->header, 8, next->header.len) : (struct span){0},
	};
}

static void describe_files(struct delta_writer *const writer)
{
	writer->file_count = checkpoint_file_count(writer->params->next);
	writer->files = memory_new_array(writer->file_count, sizeof(writer->files[0]));
	for (size_t i = 0; i < writer->file_count; i++)
		writer->files[i] = describe_file(writer, checkpoint_file(writer->params->next, i));
}

static bool in_shard(const struct delta_writer *const writer, const size_t tensor, const size_t shard)
{
	return writer->tensors[tensor].kind != DIFF_SAME && (!writer->is_sharded || writer->shards[tensor] == shard);
}

static bool shard_changed(const struct delta_writer *const writer, const size_t shard)
{
	bool changed = false;
	for (size_t i = 0; i < schema_count(writer->schema) && !changed; i++)
		changed = in_shard(writer, i, shard);
	return changed;
}

static struct span join_name(struct delta_writer *const writer, const struct span name, const char *const suffix)
{
	const size_t suffix_len = strlen(suffix);
	uint8_t *const joined = arena_take(writer->arena, name.len + suffix_len);
	if (joined == NULL)
		return (struct span){0};
	if (name.len > 0)
		memcpy(joined, name.data, name.len);
	memcpy(joined + name.len, suffix, suffix_len);
	return span_of(joined, name.len + suffix_len);
}

static enum index_form choose_form(const struct delta_writer *const writer, const struct diff_tensor *const tensor)
{
	if (writer->params->format != DELTA_TRL_GAP)
		return INDEX_ABSOLUTE32;
	return tensor->changes.largest_gap <= UINT16_MAX ? INDEX_GAP16 : INDEX_GAP32;
}

static void add_sparse(struct delta_writer *const writer, struct diff_tensor *const tensor, struct buffer *const out)
{
	static const enum dtype dtypes[] = {[INDEX_GAP16] = DTYPE_U16, [INDEX_GAP32] = DTYPE_U32, [INDEX_ABSOLUTE32] = DTYPE_I32};
	const struct suffixes *const suffixes = &format_suffixes[writer->params->format];
	tensor->form = choose_form(writer, tensor);
	const struct safetensors_tensor index = {
		.name = join_name(writer, tensor->facts->name, suffixes->index), .dtype = dtypes[tensor->form], .rank = 1,
		.shape = &tensor->changed,
	};
	const struct safetensors_tensor values = {
		.name = join_name(writer, tensor->facts->name, suffixes->values), .dtype = DTYPE_BF16, .rank = 1, .shape = &tensor->changed,
	};
	buffer_add(out, &index, sizeof(index));
	buffer_add(out, &values, sizeof(values));
}

static void add_whole(struct delta_writer *const writer, const struct diff_tensor *const tensor, struct buffer *const out)
{
	const struct safetensors_tensor whole = {
		.name = join_name(writer, tensor->facts->name, whole_suffix), .dtype = tensor->facts->dtype, .rank = tensor->facts->rank,
		.shape = tensor->facts->shape,
	};
	buffer_add(out, &whole, sizeof(whole));
}

/* changed_params (of the first key scheme) and full_tensors: JSON lists of names. */
static void print_names(const struct delta_writer *const writer, const size_t shard, struct delta_metadata_list *const list)
{
	const bool want[] = {writer->params->format == DELTA_TRL_V1, true};
	static const char *const keys[] = {"changed_params", "full_tensors"};
	static const enum diff_kind kinds[] = {DIFF_SPARSE, DIFF_WHOLE};
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		struct buffer text;
		size_t count = 0;
		buffer_init(&text, HEADER_CAP_BYTES);
		for (size_t i = 0; i < schema_count(writer->schema); i++) {
			if (!in_shard(writer, i, shard) || writer->tensors[i].kind != kinds[k])
				continue;
			buffer_add_text(&text, count++ > 0 ? ", " : "[");
			json_scan_quote(writer->tensors[i].facts->name, &text);
		}
		buffer_add_text(&text, count > 0 ? "]" : "[]");
		if (want[k] && (count > 0 || kinds[k] == DIFF_SPARSE))
			delta_metadata_list_add(list, keys[k], buffer_span(&text));
		buffer_release(&text);
	}
}

/* Tells a laid-out tensor of the delta's file to the tensor it belongs to. */
static void locate(struct delta_writer *const writer, const struct safetensors_tensor *const part, const uint64_t data_at,
	const struct staged_file *const file)
{
	const struct suffixes *const suffixes = &format_suffixes[writer->params->format];
	const bool is_index = span_ends_text(part->name, suffixes->index);
	const char *const suffix = is_index ? suffixes->index : span_ends_text(part->name, suffixes->values) ? suffixes->values : whole_suffix;
	const ptrdiff_t at = schema_find(writer->schema, span_slice(part->name, 0, part->name.len - strlen(suffix)));
	ASSERT(at >= 0);
	struct diff_tensor *const tensor = &writer->tensors[at];
	tensor->file = file;
	*(is_index ? &tensor->index_at : &tensor->values_at) = data_at + part->begin;
}

static void map_weight(struct delta_writer *const writer, const struct span name, const char *const file_name)
{
	if (writer->weight_map.len > 0)
		buffer_add_byte(&writer->weight_map, ',');
	json_scan_quote(name, &writer->weight_map);
	buffer_add_byte(&writer->weight_map, ':');
	json_scan_quote(span_text(file_name), &writer->weight_map);
}

static int print_metadata(const struct delta_writer *const writer, const size_t shard, struct delta_metadata_list *const list,
	struct error *const err)
{
	const struct delta_facts facts = {
		.format = writer->params->format, .step = writer->params->model_version, .stats = writer->stats, .has_digests = true,
	};
	delta_metadata_print(list, &facts);
	print_names(writer, shard, list);
	if (!writer->is_sharded)
		delta_metadata_print_files(list, checkpoint_is_folder(writer->params->next), writer->files, writer->file_count);
	return delta_metadata_list_check(list, err);
}

/* Makes one file with its header and tells the tensors where they belong in it. */
static int begin_file(struct delta_writer *const writer, const size_t shard, const char *const name, struct error *const err)
{
	struct buffer parts;
	struct buffer header;
	struct delta_metadata_list list;
	int result = -1;
	buffer_init(&parts, TABLE_CAP_BYTES);
	buffer_init(&header, HEADER_CAP_BYTES);
	delta_metadata_list_init(&list);
	for (size_t i = 0; i < schema_count(writer->schema); i++) {
		if (!in_shard(writer, i, shard))
			continue;
		if (writer->tensors[i].kind == DIFF_SPARSE)
			add_sparse(writer, &writer->tensors[i], &parts);
		else
			add_whole(writer, &writer->tensors[i], &parts);
	}
	struct safetensors_tensor *const table = (struct safetensors_tensor *)parts.data;
	const size_t count = parts.len / sizeof(table[0]);
	if (buffer_check(&parts, "the delta's table of tensors", err) != 0 || print_metadata(writer, shard, &list, err) != 0)
		goto out;
	if (arena_overflowed(writer->arena)) {
		error_set(err, ERROR_TOO_LARGE, "the delta's tensor names do not fit into memory");
		goto out;
	}
	if (safetensors_write_header(table, count, delta_metadata_list_items(&list), delta_metadata_list_count(&list), &header, err) != 0)
		goto out;
	const struct staged_file *const file = staging_add(writer->staging, span_text(name), err);
	if (file == NULL || file_write_at(writer->ops, file->fd, buffer_span(&header), 0, file->path, err) != 0)
		goto out;
	for (size_t i = 0; i < count; i++) {
		locate(writer, &table[i], header.len, file);
		if (writer->is_sharded)
			map_weight(writer, table[i].name, name);
	}
	writer->stats->delta_bytes += header.len + (count > 0 ? table[count - 1].end : 0);
	result = 0;
out:
	buffer_release(&parts);
	buffer_release(&header);
	delta_metadata_list_release(&list);
	return result;
}

static int begin_files(struct delta_writer *const writer, struct error *const err)
{
	char name[FILE_NAME_BYTES];
	size_t changed = 0;
	size_t number = 0;
	if (!writer->is_sharded)
		return begin_file(writer, 0, "delta.safetensors", err);
	for (size_t shard = 0; shard < writer->shard_count; shard++)
		changed += shard_changed(writer, shard);
	for (size_t shard = 0; shard < writer->shard_count; shard++) {
		if (!shard_changed(writer, shard))
			continue;
		snprintf(name, sizeof(name), "delta-%05zu-of-%05zu.safetensors", ++number, changed);
		if (begin_file(writer, shard, name, err) != 0)
			return -1;
	}
	return 0;
}

static int write_tensor(void *const state, const size_t item, const unsigned worker, struct error *const err)
{
	const struct delta_writer *const writer = state;
	return diff_tensor_write(&writer->tensors[item], writer->ops, &writer->scratch[worker], err);
}

static int write_tensors(struct delta_writer *const writer, struct error *const err)
{
	const size_t count = schema_count(writer->schema);
	const unsigned workers = parallel_workers(writer->params->threads, count);
	writer->scratch = memory_new_array(workers, sizeof(writer->scratch[0]));
	for (unsigned i = 0; i < workers; i++)
		diff_scratch_init(&writer->scratch[i]);
	const int result = parallel_run(workers, count, write_tensor, writer, err);
	for (unsigned i = 0; i < workers; i++)
		diff_scratch_release(&writer->scratch[i]);
	free(writer->scratch);
	return result;
}

static int write_others(struct delta_writer *const writer, struct error *const err)
{
	for (size_t i = 0; i < writer->file_count; i++) {
		if (writer->files[i].is_shard || !writer->files[i].from_delta)
			continue;
		const struct span bytes = checkpoint_file(writer->params->next, i)->bytes;
		char *const path = relative_path_join("files", writer->files[i].path);
		const int result = staging_put(writer->staging, span_text(path), bytes, err);
		free(path);
		if (result != 0)
			return -1;
		writer->stats->delta_bytes += bytes.len;
	}
	return 0;
}

static void print_index(const struct delta_writer *const writer, const struct delta_metadata_list *const list, struct buffer *const out)
{
	const struct safetensors_metadata *const items = delta_metadata_list_items(list);
	buffer_add_text(out, "{\"metadata\":{");
	for (size_t i = 0; i < delta_metadata_list_count(list); i++) {
		if (i > 0)
			buffer_add_byte(out, ',');
		json_scan_quote(items[i].key, out);
		buffer_add_byte(out, ':');
		json_scan_quote(items[i].value, out);
	}
	buffer_add_text(out, "},\"weight_map\":{");
	buffer_add_span(out, buffer_span(&writer->weight_map));
	buffer_add_text(out, "}}\n");
}

static int write_index(struct delta_writer *const writer, struct error *const err)
{
	if (!writer->is_sharded)
		return 0;
	struct buffer text;
	struct delta_metadata_list list;
	buffer_init(&text, INDEX_CAP_BYTES);
	delta_metadata_list_init(&list);
	const struct delta_facts facts = {
		.format = writer->params->format, .step = writer->params->model_version, .stats = writer->stats, .has_digests = true,
	};
	delta_metadata_print(&list, &facts);
	delta_metadata_print_files(&list, true, writer->files, writer->file_count);
	print_index(writer, &list, &text);
	int result = delta_metadata_list_check(&list, err);
	if (result == 0)
		result = buffer_check(&writer->weight_map, "the delta's index", err);
	if (result == 0)
		result = buffer_check(&text, "the delta's index", err);
	if (result == 0)
		result = staging_put(writer->staging, span_text("delta.safetensors.index.json"), buffer_span(&text), err);
	writer->stats->delta_bytes += text.len;
	delta_metadata_list_release(&list);
	buffer_release(&text);
	return result;
}

static int write_all(struct delta_writer *const writer, struct error *const err)
{
	writer->staging = staging_begin(writer->ops, writer->params->out, checkpoint_is_folder(writer->params->next), err);
	if (writer->staging == NULL)
		return -1;
	if (begin_files(writer, err) != 0 || write_tensors(writer, err) != 0)
		return -1;
	if (write_others(writer, err) != 0 || write_index(writer, err) != 0)
		return -1;
	return staging_commit(writer->staging, err);
}

int delta_writer_run(const struct delta_diff_params *const params, struct diff_tensor *const tensors, struct delta_stats *const stats,
	struct error *const err)
{
	struct delta_writer writer = {
		.params = params,
		.ops = params->files != NULL ? params->files : file_system(),
		.schema = checkpoint_schema(params->next),
		.tensors = tensors,
		.stats = stats,
		.arena = arena_new(TABLE_CAP_BYTES),
		.shard_count = count_shards(params->next),
	};
	writer.is_sharded = writer.shard_count > 1;
	buffer_init(&writer.weight_map, INDEX_CAP_BYTES);
	place_tensors(&writer);
	describe_files(&writer);
	const int result = write_all(&writer, err);
	staging_free(writer.staging);
	arena_free(writer.arena);
	buffer_release(&writer.weight_map);
	free(writer.shards);
	free(writer.files);
	return result;
}
