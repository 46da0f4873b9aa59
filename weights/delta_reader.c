/* A delta's tensors are parts of entries: NAME.idx and NAME.val, NAME.indices and NAME.values, or NAME.full. The reader lists all parts
 * of all files, sorts them by entry and joins neighbours. A file that is half one scheme, or lacks a part, is refused. */
#include "weights/delta_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "weights/mapped_file.h"
#include "weights/name_list.h"
#include "weights/relative_path.h"
#include "weights/shard_index.h"

enum { SHOWN_NAME_BYTES = 160, SHARDS_MAX = 100000 };
#define TABLE_CAP_BYTES (UINT64_C(8) << 30)

enum part_kind { PART_INDEX, PART_VALUES, PART_V1_INDEX, PART_V1_VALUES, PART_WHOLE };

static const struct {
	const char *suffix;
	enum part_kind kind;
} part_suffixes[] = {
	{".idx", PART_INDEX}, {".val", PART_VALUES}, {".indices", PART_V1_INDEX}, {".values", PART_V1_VALUES}, {".full", PART_WHOLE},
};

struct part {
	struct span name;
	enum part_kind kind;
	const struct safetensors_tensor *tensor;
	struct span data;
};

struct reader_file {
	struct span bytes;
	struct span data;
	struct safetensors *header;
	struct name_list whole; /* full_tensors */
};

struct delta_reader {
	bool is_folder;
	bool borrowed;
	bool is_v1;
	uint64_t bytes;
	struct reader_file *files;
	size_t file_count;
	struct shard_index *index;
	struct span index_bytes;
	struct delta_metadata metadata;
	struct buffer pairs;   /* struct json_scan_pair: the metadata that `metadata` was read from */
	struct buffer parts;   /* struct part */
	struct buffer entries; /* struct delta_entry */
};

static int shown_len(const struct span name)
{
	return (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
}

static int refuse(const struct span name, const char *const what, struct error *const err)
{
	return error_set(err, ERROR_INVALID, "the delta's tensor '%.*s' %s", shown_len(name), name.data, what);
}

static int add_part(struct delta_reader *const reader, const struct reader_file *const file, const struct safetensors_tensor *const tensor,
	struct error *const err)
{
	for (size_t i = 0; i < sizeof(part_suffixes) / sizeof(part_suffixes[0]); i++) {
		if (!span_ends_text(tensor->name, part_suffixes[i].suffix))
			continue;
		const struct part part = {
			.name = span_slice(tensor->name, 0, tensor->name.len - strlen(part_suffixes[i].suffix)),
			.kind = part_suffixes[i].kind,
			.tensor = tensor,
			.data = span_slice(file->data, (size_t)tensor->begin, (size_t)(tensor->end - tensor->begin)),
		};
		if (part.kind == PART_WHOLE && !name_list_has(&file->whole, part.name))
			return refuse(tensor->name, "is not named in full_tensors", err);
		buffer_add(&reader->parts, &part, sizeof(part));
		return 0;
	}
	return refuse(tensor->name, "is no part of a delta", err);
}

/* Takes `bytes` over: they are unmapped when the reader closes. */
static int parse_file(struct delta_reader *const reader, const struct span bytes, const char *const path, struct error *const err)
{
	struct reader_file *const file = &reader->files[reader->file_count++];
	struct span header;
	file->bytes = bytes;
	reader->bytes += bytes.len;
	file->header = mapped_file_safetensors(bytes, path, &header, &file->data, err);
	return file->header != NULL ? 0 : -1;
}

static int list_parts(struct delta_reader *const reader, struct reader_file *const file, struct error *const err)
{
	const struct span whole = safetensors_metadata_find(file->header, "full_tensors");
	if (name_list_parse(&file->whole, whole, "the delta's full_tensors", err) != 0)
		return -1;
	for (size_t i = 0; i < safetensors_count(file->header); i++)
		if (add_part(reader, file, safetensors_tensor(file->header, i), err) != 0)
			return -1;
	return buffer_check(&reader->parts, "the table of the delta's tensors", err);
}

static int open_file(struct delta_reader *const reader, const char *const path, struct error *const err)
{
	struct span bytes = {0};
	return mapped_file_open(path, &bytes, err) != 0 ? -1 : parse_file(reader, bytes, path, err);
}

static const struct json_scan_pair *pair_table(const struct delta_reader *const reader)
{
	return (const struct json_scan_pair *)reader->pairs.data;
}

static size_t pair_count(const struct delta_reader *const reader)
{
	return reader->pairs.len / sizeof(struct json_scan_pair);
}

static void pairs_from_header(const struct safetensors *const header, struct buffer *const out)
{
	buffer_reset(out);
	for (size_t i = 0; i < safetensors_metadata_count(header); i++) {
		const struct safetensors_metadata *const item = safetensors_metadata(header, i);
		const struct json_scan_pair pair = {.key = item->key, .value = item->value};
		buffer_add(out, &pair, sizeof(pair));
	}
}

static void pairs_from_index(const struct shard_index *const index, struct buffer *const out)
{
	buffer_reset(out);
	for (size_t i = 0; i < shard_index_metadata_count(index); i++)
		buffer_add(out, shard_index_metadata(index, i), sizeof(struct json_scan_pair));
}

/* The shards must be of the delta that the index describes: same kind, encoding, base and result. */
static int check_shard(const struct delta_reader *const reader, const struct reader_file *const file, const char *const path,
	struct error *const err)
{
	static const char *const keys[] = {"format", "version", "encoding", "base_digest", "result_digest"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct span ours = safetensors_metadata_find(file->header, keys[i]);
		const struct span whole = delta_metadata_find(pair_table(reader), pair_count(reader), keys[i]);
		if ((ours.data == NULL) != (whole.data == NULL) || !span_equal(ours, whole))
			return error_set(err, ERROR_INVALID, "%s: the delta's shard and index differ in %s", path, keys[i]);
	}
	return 0;
}

static int open_shards(struct delta_reader *const reader, const char *const folder, struct error *const err)
{
	const size_t count = shard_index_file_count(reader->index);
	if (count > SHARDS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "the delta '%s' has over %d shards", folder, SHARDS_MAX);
	reader->files = memory_new_array(count > 0 ? count : 1, sizeof(reader->files[0]));
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		char *const path = relative_path_join(folder, shard_index_file(reader->index, i));
		result = open_file(reader, path, err);
		if (result == 0)
			result = check_shard(reader, &reader->files[i], path, err);
		if (result == 0)
			result = list_parts(reader, &reader->files[i], err);
		free(path);
	}
	return result;
}

/* Every tensor that the index places must be there: a shard that lost some is not taken for one that changed less. */
static int check_index(const struct delta_reader *const reader, struct error *const err)
{
	for (size_t i = 0; i < shard_index_count(reader->index); i++) {
		const struct json_scan_pair *const pair = shard_index_pair(reader->index, i);
		const struct reader_file *const file = &reader->files[shard_index_find_file(reader->index, pair->value)];
		if (safetensors_find(file->header, pair->key) == NULL)
			return refuse(pair->key, "is placed by the index in a shard that lacks it", err);
	}
	return 0;
}

static int open_index(struct delta_reader *const reader, const char *const folder, const char *const path, struct error *const err)
{
	if (mapped_file_open(path, &reader->index_bytes, err) != 0)
		return -1;
	reader->bytes += reader->index_bytes.len;
	reader->index = shard_index_parse(reader->index_bytes, path, err);
	if (reader->index == NULL)
		return -1;
	pairs_from_index(reader->index, &reader->pairs);
	if (delta_metadata_parse(&reader->metadata, pair_table(reader), pair_count(reader), path, err) != 0)
		return -1;
	return open_shards(reader, folder, err) != 0 ? -1 : check_index(reader, err);
}

/* The kind comes first: a full checkpoint is refused as what it is, not for its first tensor. */
static int read_single(struct delta_reader *const reader, const char *const path, struct error *const err)
{
	struct reader_file *const file = &reader->files[0];
	pairs_from_header(file->header, &reader->pairs);
	if (delta_metadata_parse(&reader->metadata, pair_table(reader), pair_count(reader), path, err) != 0)
		return -1;
	return list_parts(reader, file, err);
}

static int open_single(struct delta_reader *const reader, const char *const path, struct error *const err)
{
	reader->files = memory_new_array(1, sizeof(reader->files[0]));
	return open_file(reader, path, err) != 0 ? -1 : read_single(reader, path, err);
}

static const char single_name[] = "delta.safetensors";
static const char index_name[] = "delta.safetensors.index.json";

static bool has_file(const char *const folder, const char *const name)
{
	char *const path = relative_path_join(folder, span_text(name));
	const bool found = file_exists(path);
	free(path);
	return found;
}

bool delta_reader_is_delta_folder(const char *const folder)
{
	return has_file(folder, single_name) || has_file(folder, index_name);
}

static int open_folder(struct delta_reader *const reader, const char *const folder, struct error *const err)
{
	const bool single = has_file(folder, single_name);
	const bool indexed = has_file(folder, index_name);
	if (single && indexed)
		return error_set(err, ERROR_INVALID, "'%s' has both %s and %s", folder, single_name, index_name);
	if (!single && !indexed)
		return error_set(err, ERROR_INVALID, "'%s' is not a delta: it has neither %s nor %s", folder, single_name, index_name);
	char *const path = relative_path_join(folder, span_text(single ? single_name : index_name));
	const int result = single ? open_single(reader, path, err) : open_index(reader, folder, path, err);
	free(path);
	return result;
}

static int order_parts(const void *const left, const void *const right)
{
	const struct part *const a = left;
	const struct part *const b = right;
	const int order = span_compare(a->name, b->name);
	return order != 0 ? order : (int)a->kind - (int)b->kind;
}

/* Which form the positions have follows from the encoding, and for gaps from the dtype alone. */
static int read_form(const struct delta_reader *const reader, const struct part *const part, enum index_form *const out_form,
	struct error *const err)
{
	const bool gaps = part->kind == PART_INDEX && reader->metadata.encoding == DELTA_ENCODING_GAP;
	const enum dtype dtype = part->tensor->dtype;
	if (part->kind == PART_INDEX && reader->metadata.encoding == DELTA_ENCODING_NONE)
		return refuse(part->tensor->name, "has no encoding named in the metadata", err);
	if (part->kind == PART_V1_INDEX && reader->metadata.encoding == DELTA_ENCODING_GAP)
		return refuse(part->tensor->name, "is of the first key scheme, which has no gaps", err);
	if (gaps ? dtype != DTYPE_U16 && dtype != DTYPE_U32 : dtype != DTYPE_I32)
		return refuse(part->tensor->name, "has a dtype that its encoding does not use", err);
	*out_form = !gaps ? INDEX_ABSOLUTE32 : dtype == DTYPE_U16 ? INDEX_GAP16 : INDEX_GAP32;
	return 0;
}

static int join_parts(struct delta_reader *const reader, const struct part *const index, const struct part *const values,
	struct error *const err)
{
	struct delta_entry entry = {
		.name = index->name, .dtype = values->tensor->dtype, .index = index->data, .values = values->data,
		.count = values->tensor->elements,
	};
	if (read_form(reader, index, &entry.form, err) != 0)
		return -1;
	if (index->tensor->rank != 1 || values->tensor->rank != 1 || index->tensor->elements != values->tensor->elements)
		return refuse(index->name, "has other numbers of positions and values", err);
	if (entry.dtype != DTYPE_BF16)
		return refuse(values->tensor->name, "is not BF16", err);
	reader->is_v1 = reader->is_v1 || index->kind == PART_V1_INDEX;
	buffer_add(&reader->entries, &entry, sizeof(entry));
	return 0;
}

static void take_whole(struct delta_reader *const reader, const struct part *const part)
{
	const struct delta_entry entry = {
		.name = part->name, .is_whole = true, .dtype = part->tensor->dtype, .rank = part->tensor->rank, .shape = part->tensor->shape,
		.values = part->data, .count = part->tensor->elements,
	};
	buffer_add(&reader->entries, &entry, sizeof(entry));
}

static int join_all(struct delta_reader *const reader, struct error *const err)
{
	struct part *const parts = (struct part *)reader->parts.data;
	const size_t count = reader->parts.len / sizeof(parts[0]);
	if (count > 0)
		qsort(parts, count, sizeof(parts[0]), order_parts);
	for (size_t i = 0; i < count;) {
		const bool whole = parts[i].kind == PART_WHOLE;
		const size_t used = whole ? 1 : 2;
		const bool paired = whole || ((parts[i].kind == PART_INDEX || parts[i].kind == PART_V1_INDEX) && i + 1 < count &&
			parts[i + 1].kind == parts[i].kind + 1 && span_equal(parts[i].name, parts[i + 1].name));
		if (!paired)
			return refuse(parts[i].tensor->name, "lacks its other half", err);
		if (i + used < count && span_equal(parts[i].name, parts[i + used].name))
			return refuse(parts[i].name, "is given twice", err);
		if (whole)
			take_whole(reader, &parts[i]);
		else if (join_parts(reader, &parts[i], &parts[i + 1], err) != 0)
			return -1;
		i += used;
	}
	return buffer_check(&reader->entries, "the table of the delta's entries", err);
}

static int order_entries(const void *const left, const void *const right)
{
	return span_compare(((const struct delta_entry *)left)->name, ((const struct delta_entry *)right)->name);
}

static bool has_entry(const struct delta_reader *const reader, const struct span name)
{
	const struct delta_entry wanted = {.name = name};
	return delta_reader_count(reader) > 0 &&
		bsearch(&wanted, reader->entries.data, delta_reader_count(reader), sizeof(wanted), order_entries) != NULL;
}

/* A listed name without an entry is a file that lost some. */
static int check_listed(const struct delta_reader *const reader, const struct name_list *const list, struct error *const err)
{
	for (size_t i = 0; i < name_list_count(list); i++)
		if (!has_entry(reader, name_list_at(list, i)))
			return refuse(name_list_at(list, i), "is listed in the metadata and missing", err);
	return 0;
}

static int check_file(const struct delta_reader *const reader, const struct reader_file *const file, struct error *const err)
{
	struct name_list changed;
	int result = name_list_parse(&changed, safetensors_metadata_find(file->header, "changed_params"), "the delta's changed_params", err);
	if (result == 0)
		result = check_listed(reader, &changed, err);
	if (result == 0)
		result = check_listed(reader, &file->whole, err);
	name_list_release(&changed);
	return result;
}

static int finish(struct delta_reader *const reader, struct error *const err)
{
	if (join_all(reader, err) != 0)
		return -1;
	for (size_t i = 0; i < reader->file_count; i++)
		if (check_file(reader, &reader->files[i], err) != 0)
			return -1;
	return 0;
}

static struct delta_reader *reader_new(void)
{
	struct delta_reader *const reader = memory_new(sizeof(*reader));
	buffer_init(&reader->pairs, TABLE_CAP_BYTES);
	buffer_init(&reader->parts, TABLE_CAP_BYTES);
	buffer_init(&reader->entries, TABLE_CAP_BYTES);
	return reader;
}

struct delta_reader *delta_reader_open(const char *const path, struct error *const err)
{
	struct stat facts;
	if (stat(path, &facts) != 0) {
		error_set_errno(err, "cannot open the delta '%s'", path);
		return NULL;
	}
	struct delta_reader *const reader = reader_new();
	reader->is_folder = S_ISDIR(facts.st_mode);
	const int opened = reader->is_folder ? open_folder(reader, path, err) : open_single(reader, path, err);
	if (opened == 0 && finish(reader, err) == 0)
		return reader;
	delta_reader_close(reader);
	return NULL;
}

struct delta_reader *delta_reader_from_bytes(const struct span bytes, const char *const path, struct error *const err)
{
	struct delta_reader *const reader = reader_new();
	reader->borrowed = true;
	reader->files = memory_new_array(1, sizeof(reader->files[0]));
	if (parse_file(reader, bytes, path, err) == 0 && read_single(reader, path, err) == 0 && finish(reader, err) == 0)
		return reader;
	delta_reader_close(reader);
	return NULL;
}

void delta_reader_close(struct delta_reader *const reader)
{
	if (reader == NULL)
		return;
	for (size_t i = 0; i < reader->file_count; i++) {
		safetensors_free(reader->files[i].header);
		name_list_release(&reader->files[i].whole);
		if (!reader->borrowed)
			mapped_file_close(reader->files[i].bytes);
	}
	delta_metadata_release(&reader->metadata);
	shard_index_free(reader->index);
	mapped_file_close(reader->index_bytes);
	buffer_release(&reader->pairs);
	buffer_release(&reader->parts);
	buffer_release(&reader->entries);
	free(reader->files);
	free(reader);
}

const struct delta_metadata *delta_reader_metadata(const struct delta_reader *const reader)
{
	return &reader->metadata;
}

bool delta_reader_is_folder(const struct delta_reader *const reader)
{
	return reader->is_folder;
}

enum delta_format delta_reader_format(const struct delta_reader *const reader)
{
	if (reader->is_v1 || reader->metadata.encoding == DELTA_ENCODING_NONE)
		return DELTA_TRL_V1;
	return reader->metadata.encoding == DELTA_ENCODING_GAP ? DELTA_TRL_GAP : DELTA_TRL_RAW;
}

uint64_t delta_reader_bytes(const struct delta_reader *const reader)
{
	return reader->bytes;
}

size_t delta_reader_count(const struct delta_reader *const reader)
{
	return reader->entries.len / sizeof(struct delta_entry);
}

const struct delta_entry *delta_reader_entry(const struct delta_reader *const reader, const size_t index)
{
	ASSERT(index < delta_reader_count(reader));
	return (const struct delta_entry *)reader->entries.data + index;
}

static int check_fit(const struct delta_entry *const entry, const struct schema_tensor *const tensor, struct error *const err)
{
	if (entry->dtype != tensor->dtype)
		return refuse(entry->name, "has another dtype in the base", err);
	if (!entry->is_whole)
		return entry->count <= tensor->bytes / 2 ? 0 : refuse(entry->name, "has more values than the base has elements", err);
	const bool same = entry->rank == tensor->rank &&
		(entry->rank == 0 || memcmp(entry->shape, tensor->shape, entry->rank * sizeof(entry->shape[0])) == 0);
	return same ? 0 : refuse(entry->name, "has another shape in the base", err);
}

int delta_reader_bind(const struct delta_reader *const reader, const struct schema *const schema,
	const struct delta_entry ***const out_entries, struct error *const err)
{
	const struct delta_entry **const entries = memory_new_array(schema_count(schema), sizeof(entries[0]));
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		const struct delta_entry *const entry = delta_reader_entry(reader, i);
		const ptrdiff_t at = schema_find(schema, entry->name);
		const int result = at < 0 ? refuse(entry->name, "is unknown to the base", err) :
			check_fit(entry, schema_tensor(schema, (size_t)at), err);
		if (result != 0) {
			free(entries);
			return -1;
		}
		entries[at] = entry;
	}
	*out_entries = entries;
	return 0;
}
