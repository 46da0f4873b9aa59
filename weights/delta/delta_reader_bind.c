/* The reader's table of entries: sort it, search it, and compare it with a base's schema. All that
 * the delta says of a tensor must fit the base before a byte is decoded. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/delta/delta_reader_internal.h"

static int delta_reader_order_entries(const void *left, const void *right);
static int check_whole(
	const struct delta_reader *reader, const struct schema *schema, struct error *err);
static int check_fit(
	const struct delta_entry *entry, const struct schema_tensor *tensor, struct error *err);
static bool same_shape(const struct delta_entry *entry, const struct schema_tensor *tensor);

int delta_reader_sort(struct delta_reader *reader, struct error *err)
{
	struct delta_entry *const entries = (struct delta_entry *)reader->entries.data;
	const size_t count = delta_reader_count(reader);
	if (buffer_check(&reader->entries, "the table of the delta's entries", err) != 0)
		return -1;
	if (count > 0)
		qsort(entries, count, sizeof(entries[0]), delta_reader_order_entries);
	for (size_t i = 1; i < count; i++)
		if (span_equal(entries[i - 1].name, entries[i].name))
			return delta_reader_refuse(entries[i].name, "is given twice", err);
	return 0;
}

const struct delta_entry *delta_reader_find(const struct delta_reader *reader, struct span name)
{
	const struct delta_entry wanted = {.name = name};
	const size_t count = delta_reader_count(reader);
	return count > 0 ? bsearch(&wanted, reader->entries.data, count, sizeof(wanted),
				   delta_reader_order_entries)
			 : NULL;
}

bool delta_reader_changed(const struct delta_reader *reader, uint64_t *out_elements)
{
	const struct delta_metadata *const metadata = delta_reader_metadata(reader);
	*out_elements = metadata->changed_elements;
	if (metadata->encoding > DELTA_ENCODING_GAP && metadata->encoding < DELTA_ENCODING_PULSE)
		return metadata->has_changed_elements;
	/* The count in TRL's own files is not reliable, and a count of the entries is easy. */
	*out_elements = 0;
	for (size_t i = 0; i < delta_reader_count(reader); i++)
		*out_elements += delta_reader_entry(reader, i)->count;
	return true;
}

size_t delta_reader_changed_tensors(const struct delta_reader *reader)
{
	size_t changed = 0;
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		const struct delta_entry *const entry = delta_reader_entry(reader, i);
		changed += entry->kind != DELTA_ENTRY_SPARSE || entry->count > 0;
	}
	return changed;
}

int delta_reader_bind(const struct delta_reader *reader, const struct schema *schema,
	const struct delta_entry ***out_entries, struct error *err)
{
	if (check_whole(reader, schema, err) != 0)
		return -1;
	const struct delta_entry **const entries =
		memory_new_array(schema_count(schema), sizeof(entries[0]));
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		const struct delta_entry *const entry = delta_reader_entry(reader, i);
		const ptrdiff_t at = schema_find(schema, entry->name);
		const int result = at < 0
			? delta_reader_refuse(entry->name, "is unknown to the base", err)
			: check_fit(entry, schema_tensor(schema, (size_t)at), err);
		if (result != 0) {
			free(entries);
			return -1;
		}
		entries[at] = entry;
	}
	if (reader->pulse != NULL && delta_reader_unpack_pulse(reader, err) != 0) {
		free(entries);
		return -1;
	}
	*out_entries = entries;
	return 0;
}

static int delta_reader_order_entries(const void *left, const void *right)
{
	return span_compare(((const struct delta_entry *)left)->name,
		((const struct delta_entry *)right)->name);
}

/* A full checkpoint in the place of a delta must have every tensor. A tensor that it lacks would
 * keep the base's bytes. */
static int check_whole(
	const struct delta_reader *reader, const struct schema *schema, struct error *err)
{
	if (reader->checkpoint == NULL ||
		schema_check(schema, checkpoint_schema(reader->checkpoint), err) == 0)
		return 0;
	err->kind = ERROR_SCHEMA_MISMATCH;
	return error_wrap(err, "the full checkpoint does not have the base's tensors");
}

static int check_fit(
	const struct delta_entry *entry, const struct schema_tensor *tensor, struct error *err)
{
	const bool typed = entry->kind == DELTA_ENTRY_SPARSE || entry->kind == DELTA_ENTRY_WHOLE;
	if (typed && entry->dtype != tensor->dtype)
		return delta_reader_refuse(entry->name, "has another dtype in the base", err);
	const bool is_sparse = entry->kind == DELTA_ENTRY_SPARSE;
	if (is_sparse && entry->count > tensor->bytes / (dtype_bits(tensor->dtype) / 8))
		return delta_reader_refuse(
			entry->name, "has more values than the base has elements", err);
	const bool has_shape =
		entry->kind == DELTA_ENTRY_WHOLE || (is_sparse && entry->shape != NULL);
	if (has_shape && !same_shape(entry, tensor))
		return delta_reader_refuse(entry->name, "has another shape in the base", err);
	if (entry->kind == DELTA_ENTRY_OVERWRITE && tensor->bytes > UINT32_MAX)
		return delta_reader_refuse(
			entry->name, "is over 4 GiB, which this encoding cannot address", err);
	return 0;
}

static bool same_shape(const struct delta_entry *entry, const struct schema_tensor *tensor)
{
	return entry->rank == tensor->rank &&
		(entry->rank == 0 ||
			memcmp(entry->shape, tensor->shape,
				entry->rank * sizeof(entry->shape[0])) == 0);
}
