/* The changed tensors of each shard of the result make one numbered file. If the result has one
 * shard and the format needs no index, all changed tensors make one file instead. The writer of
 * safetensors headers sorts the tensors, so the layout keeps a table of owners, sorted by name, to
 * find the tensor of each part and give it its place. */
#include "weights/delta/delta_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/memory.h"
#include "weights/model/json_scan.h"
#include "weights/model/relative_path.h"

#define TABLE_CAP_BYTES (UINT64_C(8) << 30)
enum { HEADER_CAP_BYTES = 100000000 + 64, INDEX_CAP_BYTES = 1 << 30, FILE_NAME_BYTES = 64 };

enum family { FAMILY_ULP_CLASS, FAMILY_SLIME, FAMILY_TRL };
struct family_row {
	const char *shard_name; /* stands before the number */
	const char *index_name;
	size_t first_number;
	bool always_indexed;
};
static const struct family_row families[] = {
	[FAMILY_ULP_CLASS] = {"model", "model.safetensors.index.json", 1, false},
	[FAMILY_SLIME] = {"model", "model.safetensors.index.json", 0, true},
	[FAMILY_TRL] = {"delta", "delta.safetensors.index.json", 1, false},
};

/* A layout that is being made. */
struct making {
	struct delta_layout *layout;
	const struct schema *schema;
	enum family family;
	bool indexed;
	struct model_place *places;
	struct delta_result_file *own_files;   /* NULL: those of layout->told are used */
	const struct delta_result_file *files; /* NULL: the delta does not list its files */
	size_t file_count;
	bool is_folder;
	struct arena *arena;      /* names */
	struct buffer weight_map; /* JSON members */
	struct buffer owners;     /* struct owner, for the file that is being made */
};

/* The tensor that a part of the file belongs to. */
struct owner {
	struct span name;
	size_t tensor;
	unsigned part;
};

static enum family family_of(enum delta_format format);
static void describe_files(struct making *making);
static int begin_files(struct making *making, struct error *err);
static int begin_file(struct making *making, size_t shard, const char *name, struct error *err);
static bool in_file(const struct making *making, size_t tensor, size_t shard);
static void list_parts(struct making *making, size_t tensor, struct buffer *out);
static struct span join_name(struct making *making, struct span name, const char *suffix);
static void print_metadata(
	const struct making *making, size_t shard, struct delta_metadata_list *list);
static void print_checksums(
	const struct making *making, size_t shard, struct delta_metadata_list *list);
static void print_facts(
	const struct making *making, bool in_shard, struct delta_metadata_list *list);
static void print_names(
	const struct making *making, size_t shard, struct delta_metadata_list *list);
static int write_header(struct making *making, struct safetensors_tensor *table, size_t count,
	const struct delta_metadata_list *list, const char *name, struct error *err);
static void locate(struct making *making, const struct safetensors_tensor *table, size_t count,
	uint64_t data_at, const struct staged_file *file, const char *name);
static int delta_layout_order_owners(const void *left, const void *right);
static void map_weight(struct making *making, struct span name, const char *file_name);
static int write_others(struct making *making, struct error *err);
static int write_index(struct making *making, struct error *err);
static void print_index(
	const struct making *making, const struct delta_metadata_list *list, struct buffer *out);

bool delta_layout_is_folder(enum delta_format format, const struct model_files *next_files)
{
	return family_of(format) != FAMILY_TRL || next_files->is_folder;
}

int delta_layout_make(struct delta_layout *layout, struct error *err)
{
	const struct delta_encode_params *const params = layout->params;
	ASSERT(layout->told != NULL || layout->told_count == 0);
	struct making making = {
		.layout = layout,
		.schema = params->next->schema,
		.family = family_of(params->format),
		.places = memory_new_array(
			schema_count(params->next->schema), sizeof(making.places[0])),
		.arena = arena_new(TABLE_CAP_BYTES),
	};
	making.indexed = families[making.family].always_indexed ||
		model_files_shards(params->next_files) > 1;
	buffer_init(&making.weight_map, INDEX_CAP_BYTES);
	buffer_init(&making.owners, TABLE_CAP_BYTES);
	model_files_place(params->next_files, making.schema, making.places);
	if (!layout->is_told) {
		describe_files(&making);
	} else {
		making.files = layout->told;
		making.file_count = layout->told_count;
		making.is_folder = layout->told_folder;
	}
	int result = begin_files(&making, err);
	if (result == 0)
		result = write_others(&making, err);
	if (result == 0)
		result = write_index(&making, err);
	free(making.places);
	free(making.own_files);
	arena_free(making.arena);
	buffer_release(&making.weight_map);
	buffer_release(&making.owners);
	return result;
}

static enum family family_of(enum delta_format format)
{
	if (format == DELTA_ULP_CLASS)
		return FAMILY_ULP_CLASS;
	return format == DELTA_SLIME_XOR || format == DELTA_SLIME_OVERWRITE ? FAMILY_SLIME
									    : FAMILY_TRL;
}

static void describe_files(struct making *making)
{
	const struct delta_encode_params *const params = making->layout->params;
	const struct model_files *const next = params->next_files;
	making->own_files = memory_new_array(next->count, sizeof(making->own_files[0]));
	making->files = making->own_files;
	making->file_count = next->count;
	making->is_folder = next->is_folder;
	for (size_t i = 0; i < next->count; i++) {
		const struct model_file *const file = &next->files[i];
		const struct model_file *const base = params->base_files != NULL
			? model_files_find(params->base_files, file->path)
			: NULL;
		/* A header that differs only in its padding differs too. */
		const bool same = base != NULL && base->is_shard == file->is_shard &&
			digest128_equal(&base->digest, &file->digest) &&
			(!file->is_shard || base->size == file->size);
		making->own_files[i] = (struct delta_result_file){
			.path = file->path,
			.size = file->size,
			.is_shard = file->is_shard,
			.from_delta = !same,
			.digest = file->digest,
			.header = file->json,
		};
	}
}

static int begin_files(struct making *making, struct error *err)
{
	const struct family_row *const family = &families[making->family];
	const size_t shards = model_files_shards(making->layout->params->next_files);
	bool *const changed = memory_new_array(shards, sizeof(changed[0]));
	size_t count = 0;
	size_t number = family->first_number;
	int result = 0;
	if (!making->indexed) {
		free(changed);
		return begin_file(making, 0, "delta.safetensors", err);
	}
	for (size_t i = 0; i < schema_count(making->schema); i++) {
		const size_t shard = making->places[i].shard;
		ASSERT(shard < shards);
		const bool is_first =
			!changed[shard] && making->layout->payload->tensors[i].changed > 0;
		changed[shard] = changed[shard] || is_first;
		count += is_first;
	}
	for (size_t shard = 0; shard < shards && result == 0; shard++) {
		char name[FILE_NAME_BYTES];
		if (!changed[shard])
			continue;
		snprintf(name, sizeof(name), "%s-%05zu-of-%05zu.safetensors", family->shard_name,
			number++, count);
		result = begin_file(making, shard, name, err);
	}
	free(changed);
	return result;
}

static int begin_file(struct making *making, size_t shard, const char *name, struct error *err)
{
	struct buffer parts;
	struct delta_metadata_list list;
	int result = 0;
	buffer_init(&parts, TABLE_CAP_BYTES);
	buffer_reset(&making->owners);
	delta_metadata_list_init(&list);
	for (size_t i = 0; i < schema_count(making->schema); i++)
		if (in_file(making, i, shard))
			list_parts(making, i, &parts);
	print_metadata(making, shard, &list);
	if (buffer_check(&parts, "the delta's table of tensors", err) != 0 ||
		buffer_check(&making->owners, "the delta's table of tensors", err) != 0 ||
		delta_metadata_list_check(&list, err) != 0)
		result = -1;
	else if (arena_overflowed(making->arena))
		result = error_set(
			err, ERROR_TOO_LARGE, "the delta's tensor names need too much memory");
	else
		result = write_header(making, (struct safetensors_tensor *)parts.data,
			parts.len / sizeof(struct safetensors_tensor), &list, name, err);
	buffer_release(&parts);
	delta_metadata_list_release(&list);
	return result;
}

static bool in_file(const struct making *making, size_t tensor, size_t shard)
{
	const bool is_in = making->layout->payload->tensors[tensor].changed > 0 ||
		making->layout->params->is_part;
	return is_in && (!making->indexed || making->places[tensor].shard == shard);
}

static void list_parts(struct making *making, size_t tensor, struct buffer *out)
{
	struct payload *const payload = making->layout->payload;
	struct payload_part parts[PAYLOAD_PARTS] = {{0}};
	const unsigned count = payload->ops->layout(payload, &payload->tensors[tensor], parts);
	for (unsigned i = 0; i < count; i++) {
		uint64_t *const shape = arena_take_array(making->arena, 1, sizeof(shape[0]));
		if (shape == NULL)
			return;
		*shape = parts[i].count;
		const struct safetensors_tensor part = {
			.name = join_name(
				making, payload->tensors[tensor].facts->name, parts[i].suffix),
			.dtype = parts[i].dtype,
			.rank = 1,
			.shape = shape,
		};
		const struct owner owner = {.name = part.name, .tensor = tensor, .part = i};
		buffer_add(out, &part, sizeof(part));
		buffer_add(&making->owners, &owner, sizeof(owner));
	}
}

static struct span join_name(struct making *making, struct span name, const char *suffix)
{
	const size_t suffix_len = strlen(suffix);
	if (suffix_len == 0)
		return name;
	uint8_t *const joined = arena_take(making->arena, name.len + suffix_len);
	if (joined == NULL)
		return (struct span){0};
	if (name.len > 0)
		memcpy(joined, name.data, name.len);
	memcpy(joined + name.len, suffix, suffix_len);
	return span_of(joined, name.len + suffix_len);
}

static void print_metadata(
	const struct making *making, size_t shard, struct delta_metadata_list *list)
{
	const struct delta_layout *const layout = making->layout;
	if (making->family == FAMILY_SLIME) {
		print_checksums(making, shard, list);
		return;
	}
	print_facts(making, making->indexed, list);
	if (layout->params->format == DELTA_TRL_V1)
		print_names(making, shard, list);
	if (!making->indexed && making->files != NULL)
		delta_metadata_print_files(
			list, making->is_folder, making->files, making->file_count);
}

static void print_checksums(
	const struct making *making, size_t shard, struct delta_metadata_list *list)
{
	for (size_t i = 0; i < schema_count(making->schema); i++) {
		const struct payload_tensor *const tensor = &making->layout->payload->tensors[i];
		char text[TENSOR_CHECKSUM_TEXT_BYTES];
		if (!in_file(making, i, shard))
			continue;
		if (tensor->checksum[0] == 0)
			encode_hex(span_of(making->layout->next_digests[i].bytes,
					   sizeof(making->layout->next_digests[i].bytes)),
				text);
		else
			snprintf(text, sizeof(text), "%s", tensor->checksum);
		delta_metadata_list_add_span(list, tensor->facts->name, span_text(text));
	}
}

static void print_facts(
	const struct making *making, bool in_shard, struct delta_metadata_list *list)
{
	const struct delta_encode_params *const params = making->layout->params;
	const struct delta_facts facts = {
		.format = params->format,
		.checksum = params->checksum,
		.step = params->model_version,
		.has_base_step = params->has_base_step,
		.base_step = params->base_step,
		.stats = making->layout->stats,
		.has_digests = making->layout->has_digests,
		.in_shard = in_shard,
	};
	delta_metadata_print(list, &facts);
}

/* TRL's first key scheme lists the changed tensors of each file. */
static void print_names(const struct making *making, size_t shard, struct delta_metadata_list *list)
{
	struct buffer text;
	size_t count = 0;
	buffer_init(&text, HEADER_CAP_BYTES);
	for (size_t i = 0; i < schema_count(making->schema); i++) {
		if (!in_file(making, i, shard))
			continue;
		buffer_add_text(&text, count++ > 0 ? ", " : "[");
		json_scan_quote(schema_tensor(making->schema, i)->name, &text);
	}
	buffer_add_text(&text, count > 0 ? "]" : "[]");
	delta_metadata_list_add(list, "changed_params", buffer_span(&text));
	buffer_release(&text);
}

static int write_header(struct making *making, struct safetensors_tensor *table, size_t count,
	const struct delta_metadata_list *list, const char *name, struct error *err)
{
	struct delta_layout *const layout = making->layout;
	struct buffer header;
	int result = -1;
	buffer_init(&header, HEADER_CAP_BYTES);
	if (safetensors_write_header(table, count, delta_metadata_list_items(list),
		    delta_metadata_list_count(list), &header, err) != 0)
		goto out;
	const struct staged_file *const file = staging_add(layout->staging, span_text(name), err);
	if (file == NULL ||
		file_write_at(layout->payload->files, file->fd, buffer_span(&header), 0, file->path,
			err) != 0)
		goto out;
	locate(making, table, count, header.len, file, name);
	const uint64_t payload_bytes = count > 0 ? table[count - 1].end : 0;
	layout->stats->payload_bytes += payload_bytes;
	layout->stats->delta_bytes += header.len + payload_bytes;
	result = 0;
out:
	buffer_release(&header);
	return result;
}

/* Gives each part's place to the tensor that it belongs to. */
static void locate(struct making *making, const struct safetensors_tensor *table, size_t count,
	uint64_t data_at, const struct staged_file *file, const char *name)
{
	struct owner *const owners = (struct owner *)making->owners.data;
	if (count > 0)
		qsort(owners, count, sizeof(owners[0]), delta_layout_order_owners);
	for (size_t i = 0; i < count; i++) {
		const struct owner wanted = {.name = table[i].name};
		const struct owner *const owner =
			bsearch(&wanted, owners, count, sizeof(wanted), delta_layout_order_owners);
		ASSERT(owner != NULL);
		ASSERT(owner->part < PAYLOAD_PARTS);
		struct payload_tensor *const tensor =
			&making->layout->payload->tensors[owner->tensor];
		tensor->file = file;
		tensor->at[owner->part] = data_at + table[i].begin;
		if (making->indexed)
			map_weight(making, table[i].name, name);
	}
}

static int delta_layout_order_owners(const void *left, const void *right)
{
	return span_compare(
		((const struct owner *)left)->name, ((const struct owner *)right)->name);
}

static void map_weight(struct making *making, struct span name, const char *file_name)
{
	if (making->weight_map.len > 0)
		buffer_add_byte(&making->weight_map, ',');
	json_scan_quote(name, &making->weight_map);
	buffer_add_byte(&making->weight_map, ':');
	json_scan_quote(span_text(file_name), &making->weight_map);
}

static int write_others(struct making *making, struct error *err)
{
	const struct model_files *const next = making->layout->params->next_files;
	for (size_t i = 0; i < next->count && making->own_files != NULL; i++) {
		if (next->files[i].is_shard || !making->files[i].from_delta)
			continue;
		char *const path = relative_path_join("files", next->files[i].path);
		const int result = staging_put(
			making->layout->staging, span_text(path), next->files[i].bytes, err);
		free(path);
		if (result != 0)
			return -1;
		making->layout->stats->delta_bytes += next->files[i].size;
	}
	return 0;
}

static int write_index(struct making *making, struct error *err)
{
	if (!making->indexed)
		return 0;
	struct buffer text;
	struct delta_metadata_list list;
	buffer_init(&text, INDEX_CAP_BYTES);
	delta_metadata_list_init(&list);
	print_facts(making, false, &list);
	if (making->files != NULL)
		delta_metadata_print_files(
			&list, making->is_folder, making->files, making->file_count);
	print_index(making, &list, &text);
	int result = delta_metadata_list_check(&list, err);
	if (result == 0)
		result = buffer_check(&making->weight_map, "the delta's index", err);
	if (result == 0)
		result = buffer_check(&text, "the delta's index", err);
	if (result == 0)
		result = staging_put(making->layout->staging,
			span_text(families[making->family].index_name), buffer_span(&text), err);
	making->layout->stats->delta_bytes += text.len;
	delta_metadata_list_release(&list);
	buffer_release(&text);
	return result;
}

static void print_index(
	const struct making *making, const struct delta_metadata_list *list, struct buffer *out)
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
	buffer_add_span(out, buffer_span(&making->weight_map));
	buffer_add_text(out, "}}\n");
}
