/* Lists entries under the tensors' own names: U8 vectors with ulp-class blocks or a zstd frame, and
 * the tensors of a full checkpoint. Checksums stand apart from the tensors, in metadata or in a
 * manifest, so they are first sorted by name and then found for each tensor. */
#include <stdlib.h>

#include "weights/delta/delta_reader_internal.h"

static const enum delta_entry_kind kinds[] = {
	[DELTA_ENCODING_ULP_CLASS] = DELTA_ENTRY_BLOCKS,
	[DELTA_ENCODING_XOR] = DELTA_ENTRY_XOR,
	[DELTA_ENCODING_OVERWRITE] = DELTA_ENTRY_OVERWRITE,
};

static int list_manifest(
	const struct delta_manifest *manifest, struct buffer *out, struct error *err);
static int delta_reader_order_checksums(const void *left, const void *right);
static int list_file(
	struct delta_reader *reader, size_t number, struct buffer *checksums, struct error *err);
static int list_checksums(const struct safetensors *header, struct buffer *out, struct error *err);
static int add_entry(struct delta_reader *reader, size_t number,
	const struct safetensors_tensor *tensor, const struct buffer *checksums, struct error *err);
static struct span find_checksum(const struct buffer *checksums, struct span name);

int delta_reader_list_named(struct delta_reader *reader, struct error *err)
{
	struct buffer checksums;
	int result = 0;
	ASSERT(reader->metadata.encoding >= DELTA_ENCODING_ULP_CLASS &&
		reader->metadata.encoding <= DELTA_ENCODING_OVERWRITE);
	buffer_init(&checksums, DELTA_READER_TABLE_BYTES);
	if (reader->manifest != NULL)
		result = list_manifest(reader->manifest, &checksums, err);
	for (size_t i = 0; i < reader->file_count && result == 0; i++)
		result = list_file(reader, i, &checksums, err);
	buffer_release(&checksums);
	return result != 0 ? -1 : delta_reader_sort(reader, err);
}

void delta_reader_list_full(struct delta_reader *reader)
{
	ASSERT(reader->checkpoint != NULL);
	const struct schema *const schema = checkpoint_schema(reader->checkpoint);
	for (size_t i = 0; i < schema_count(schema); i++) {
		const struct schema_tensor *const tensor = schema_tensor(schema, i);
		const struct delta_entry entry = {
			.name = tensor->name,
			.kind = DELTA_ENTRY_WHOLE,
			.dtype = tensor->dtype,
			.rank = tensor->rank,
			.shape = tensor->shape,
			.values = checkpoint_tensor(reader->checkpoint, i),
			.count = tensor->bytes * 8 / dtype_bits(tensor->dtype),
		};
		buffer_add(&reader->entries, &entry, sizeof(entry));
	}
}

/* The same for SkyRL's manifest, which has the checksums of all files. */
static int list_manifest(
	const struct delta_manifest *manifest, struct buffer *out, struct error *err)
{
	const struct json_scan_pair *const pairs = delta_manifest_checksums(manifest);
	const size_t count = delta_manifest_count(manifest);
	for (size_t i = 0; i < count; i++) {
		const struct safetensors_metadata item = {
			.key = pairs[i].key, .value = pairs[i].value};
		buffer_add(out, &item, sizeof(item));
	}
	if (count > 0 && !buffer_failed(out))
		qsort(out->data, count, sizeof(struct safetensors_metadata),
			delta_reader_order_checksums);
	return buffer_check(out, "the table of the delta's checksums", err);
}

static int delta_reader_order_checksums(const void *left, const void *right)
{
	return span_compare(((const struct safetensors_metadata *)left)->key,
		((const struct safetensors_metadata *)right)->key);
}

static int list_file(
	struct delta_reader *reader, size_t number, struct buffer *checksums, struct error *err)
{
	const struct safetensors *const header = reader->files[number].header;
	if (reader->manifest == NULL && list_checksums(header, checksums, err) != 0)
		return -1;
	for (size_t i = 0; i < safetensors_count(header); i++)
		if (add_entry(reader, number, safetensors_tensor(header, i), checksums, err) != 0)
			return -1;
	return 0;
}

/* Lists and sorts the checksums of a slime shard, whose metadata has them under the tensors'
 * names. */
static int list_checksums(const struct safetensors *header, struct buffer *out, struct error *err)
{
	buffer_reset(out);
	for (size_t i = 0; i < safetensors_metadata_count(header); i++)
		buffer_add(
			out, safetensors_metadata(header, i), sizeof(struct safetensors_metadata));
	if (out->len > 0)
		qsort(out->data, out->len / sizeof(struct safetensors_metadata),
			sizeof(struct safetensors_metadata), delta_reader_order_checksums);
	return buffer_check(out, "the table of the delta's checksums", err);
}

static int add_entry(struct delta_reader *reader, size_t number,
	const struct safetensors_tensor *tensor, const struct buffer *checksums, struct error *err)
{
	const struct delta_reader_file *const file = &reader->files[number];
	struct delta_entry entry = {
		.name = tensor->name,
		.kind = kinds[reader->metadata.encoding],
		.data = span_slice(
			file->data, (size_t)tensor->begin, (size_t)(tensor->end - tensor->begin)),
		.file = number,
		.at = (uint64_t)(file->data.data - file->bytes.data) + tensor->begin,
	};
	if (tensor->dtype != DTYPE_U8 || tensor->rank != 1)
		return delta_reader_refuse(
			tensor->name, "is not a vector of bytes, as this format needs it", err);
	if (entry.kind != DELTA_ENTRY_BLOCKS) {
		entry.checksum = find_checksum(checksums, tensor->name);
		if (entry.checksum.data == NULL)
			return delta_reader_refuse(tensor->name, "has no checksum", err);
	}
	buffer_add(&reader->entries, &entry, sizeof(entry));
	return 0;
}

static struct span find_checksum(const struct buffer *checksums, struct span name)
{
	const struct safetensors_metadata wanted = {.key = name};
	const struct safetensors_metadata *const found = checksums->len == 0
		? NULL
		: bsearch(&wanted, checksums->data, checksums->len / sizeof(wanted), sizeof(wanted),
			  delta_reader_order_checksums);
	return found != NULL ? found->value : (struct span){0};
}
