/* The tensors of a TRL delta are parts of entries: NAME.idx and NAME.val, NAME.indices and
 * NAME.values, or NAME.full. All parts of all files are listed and sorted by entry; then neighbours
 * are joined. An entry that mixes two schemes or lacks a part is refused. */
#include <stdlib.h>
#include <string.h>

#include "weights/delta/delta_reader_internal.h"

enum part_kind { PART_INDEX, PART_VALUES, PART_V1_INDEX, PART_V1_VALUES, PART_WHOLE };

static const struct {
	const char *suffix;
	enum part_kind kind;
} part_suffixes[] = {
	{".idx", PART_INDEX},
	{".val", PART_VALUES},
	{".indices", PART_V1_INDEX},
	{".values", PART_V1_VALUES},
	{".full", PART_WHOLE},
};

struct part {
	struct span name;
	enum part_kind kind;
	const struct safetensors_tensor *tensor;
	struct span data;
};

static int list_parts(
	struct delta_reader *reader, struct delta_reader_file *file, struct error *err);
static int add_part(struct delta_reader *reader, const struct delta_reader_file *file,
	const struct safetensors_tensor *tensor, struct error *err);
static int join_all(struct delta_reader *reader, struct error *err);
static int delta_reader_order_parts(const void *left, const void *right);
static void take_whole(struct delta_reader *reader, const struct part *part);
static int join_parts(struct delta_reader *reader, const struct part *index,
	const struct part *values, struct error *err);
static int read_form(const struct delta_reader *reader, const struct part *part,
	enum index_form *out_form, struct error *err);
static int check_file(
	const struct delta_reader *reader, const struct delta_reader_file *file, struct error *err);
static int check_listed(
	const struct delta_reader *reader, const struct name_list *list, struct error *err);

int delta_reader_list_trl(struct delta_reader *reader, struct error *err)
{
	for (size_t i = 0; i < reader->file_count; i++)
		if (list_parts(reader, &reader->files[i], err) != 0)
			return -1;
	if (join_all(reader, err) != 0 || delta_reader_sort(reader, err) != 0)
		return -1;
	for (size_t i = 0; i < reader->file_count; i++)
		if (check_file(reader, &reader->files[i], err) != 0)
			return -1;
	return 0;
}

static int list_parts(
	struct delta_reader *reader, struct delta_reader_file *file, struct error *err)
{
	const struct span whole = safetensors_metadata_find(file->header, "full_tensors");
	if (name_list_parse(&file->whole, whole, "the delta's full_tensors", err) != 0)
		return -1;
	for (size_t i = 0; i < safetensors_count(file->header); i++)
		if (add_part(reader, file, safetensors_tensor(file->header, i), err) != 0)
			return -1;
	return buffer_check(&reader->parts, "the table of the delta's tensors", err);
}

static int add_part(struct delta_reader *reader, const struct delta_reader_file *file,
	const struct safetensors_tensor *tensor, struct error *err)
{
	for (size_t i = 0; i < sizeof(part_suffixes) / sizeof(part_suffixes[0]); i++) {
		if (!span_ends_text(tensor->name, part_suffixes[i].suffix))
			continue;
		const struct part part = {
			.name = span_slice(tensor->name, 0,
				tensor->name.len - strlen(part_suffixes[i].suffix)),
			.kind = part_suffixes[i].kind,
			.tensor = tensor,
			.data = span_slice(file->data, (size_t)tensor->begin,
				(size_t)(tensor->end - tensor->begin)),
		};
		if (part.kind == PART_WHOLE && !name_list_has(&file->whole, part.name))
			return delta_reader_refuse(
				tensor->name, "is not named in full_tensors", err);
		buffer_add(&reader->parts, &part, sizeof(part));
		return 0;
	}
	return delta_reader_refuse(tensor->name, "is not a part of a delta", err);
}

static int join_all(struct delta_reader *reader, struct error *err)
{
	struct part *const parts = (struct part *)reader->parts.data;
	const size_t count = reader->parts.len / sizeof(parts[0]);
	if (count > 0)
		qsort(parts, count, sizeof(parts[0]), delta_reader_order_parts);
	for (size_t i = 0; i < count;) {
		const bool whole = parts[i].kind == PART_WHOLE;
		const size_t used = whole ? 1 : 2;
		const bool paired = whole ||
			((parts[i].kind == PART_INDEX || parts[i].kind == PART_V1_INDEX) &&
				i + 1 < count && parts[i + 1].kind == parts[i].kind + 1 &&
				span_equal(parts[i].name, parts[i + 1].name));
		if (!paired)
			return delta_reader_refuse(
				parts[i].tensor->name, "lacks its other half", err);
		if (i + used < count && span_equal(parts[i].name, parts[i + used].name))
			return delta_reader_refuse(parts[i].name, "is given twice", err);
		if (whole)
			take_whole(reader, &parts[i]);
		else if (join_parts(reader, &parts[i], &parts[i + 1], err) != 0)
			return -1;
		i += used;
	}
	return buffer_check(&reader->entries, "the table of the delta's entries", err);
}

static int delta_reader_order_parts(const void *left, const void *right)
{
	const struct part *const a = left;
	const struct part *const b = right;
	const int order = span_compare(a->name, b->name);
	return order != 0 ? order : (int)a->kind - (int)b->kind;
}

static void take_whole(struct delta_reader *reader, const struct part *part)
{
	const struct delta_entry entry = {
		.name = part->name,
		.kind = DELTA_ENTRY_WHOLE,
		.dtype = part->tensor->dtype,
		.rank = part->tensor->rank,
		.shape = part->tensor->shape,
		.values = part->data,
		.count = part->tensor->elements,
	};
	buffer_add(&reader->entries, &entry, sizeof(entry));
}

static int join_parts(struct delta_reader *reader, const struct part *index,
	const struct part *values, struct error *err)
{
	struct delta_entry entry = {
		.name = index->name,
		.dtype = values->tensor->dtype,
		.index = index->data,
		.values = values->data,
		.count = values->tensor->elements,
	};
	if (read_form(reader, index, &entry.code.form, err) != 0)
		return -1;
	if (index->tensor->rank != 1 || values->tensor->rank != 1 ||
		index->tensor->elements != values->tensor->elements)
		return delta_reader_refuse(
			index->name, "has other numbers of positions than of values", err);
	if (entry.dtype != DTYPE_BF16)
		return delta_reader_refuse(values->tensor->name, "is not BF16", err);
	reader->is_v1 = reader->is_v1 || index->kind == PART_V1_INDEX;
	buffer_add(&reader->entries, &entry, sizeof(entry));
	return 0;
}

/* The encoding decides the form of the positions; for gaps, the dtype decides it. */
static int read_form(const struct delta_reader *reader, const struct part *part,
	enum index_form *out_form, struct error *err)
{
	const bool gaps =
		part->kind == PART_INDEX && reader->metadata.encoding == DELTA_ENCODING_GAP;
	const enum dtype dtype = part->tensor->dtype;
	if (part->kind == PART_INDEX && reader->metadata.encoding == DELTA_ENCODING_NONE)
		return delta_reader_refuse(
			part->tensor->name, "has no encoding in the delta's metadata", err);
	if (part->kind == PART_V1_INDEX && reader->metadata.encoding == DELTA_ENCODING_GAP)
		return delta_reader_refuse(
			part->tensor->name, "has the first key scheme, which has no gaps", err);
	if (gaps ? dtype != DTYPE_U16 && dtype != DTYPE_U32 : dtype != DTYPE_I32)
		return delta_reader_refuse(
			part->tensor->name, "has a dtype that its encoding does not use", err);
	*out_form = !gaps ? INDEX_ABSOLUTE32 : dtype == DTYPE_U16 ? INDEX_GAP16 : INDEX_GAP32;
	return 0;
}

static int check_file(
	const struct delta_reader *reader, const struct delta_reader_file *file, struct error *err)
{
	struct name_list changed;
	int result =
		name_list_parse(&changed, safetensors_metadata_find(file->header, "changed_params"),
			"the delta's changed_params", err);
	if (result == 0)
		result = check_listed(reader, &changed, err);
	if (result == 0)
		result = check_listed(reader, &file->whole, err);
	name_list_release(&changed);
	return result;
}

/* A listed name without an entry shows that the file lost tensors. */
static int check_listed(
	const struct delta_reader *reader, const struct name_list *list, struct error *err)
{
	for (size_t i = 0; i < name_list_count(list); i++)
		if (delta_reader_find(reader, name_list_at(list, i)) == NULL)
			return delta_reader_refuse(name_list_at(list, i),
				"is listed in the metadata and missing", err);
	return 0;
}
