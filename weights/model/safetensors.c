/* The reader of safetensors headers. Names and shapes go into buffers whose memory is reserved
 * before the first byte is read, so the tables can point into them. The header's size is checked
 * first, and no buffer can outgrow a small multiple of it. The checks are those of the reference
 * reader in its order, and one more: a name given twice is refused even if both entries agree. */
#include "weights/model/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "weights/model/json_scan.h"

struct safetensors {
	struct buffer strings;
	struct buffer shapes;   /* uint64_t */
	struct buffer tensors;  /* struct safetensors_tensor, in order of data */
	struct buffer by_name;  /* const struct safetensors_tensor * */
	struct buffer metadata; /* struct safetensors_metadata */
};

enum { LENGTH_BYTES = 8, SHOWN_NAME_BYTES = 160 };

/* Other formats of weights, by their first bytes. As the size of a header, these bytes would exceed
 * the limit. */
static const struct {
	struct span begins;
	const char *format;
} OTHERS[] = {
	{{(const uint8_t *)"PK\3\4", 4}, "a PyTorch pickle (.pt, .bin)"},
	{{(const uint8_t *)"\x80\2", 2}, "a pickle (.pt, .bin, .pkl)"},
	{{(const uint8_t *)"\x80\3", 2}, "a pickle (.pt, .bin, .pkl)"},
	{{(const uint8_t *)"\x80\4", 2}, "a pickle (.pt, .bin, .pkl)"},
	{{(const uint8_t *)"\x80\5", 2}, "a pickle (.pt, .bin, .pkl)"},
	{{(const uint8_t *)"GGUF", 4}, "a GGUF file"},
	{{(const uint8_t *)"\x89HDF", 4}, "an HDF5 file"},
};

struct entry_field {
	const char *name;
	bool (*scan)(struct json_scan *scan, struct safetensors *header,
		struct safetensors_tensor *tensor);
};

static int refuse_size(struct span first8, uint64_t size, struct error *err);
static int parse(struct safetensors *header, struct span json, uint64_t data_size, const char *path,
	struct error *err);
static int reserve(struct safetensors *header, size_t json_len, struct error *err);
static bool scan_header(struct json_scan *scan, struct safetensors *header);
static bool scan_metadata(struct json_scan *scan, struct safetensors *header, bool *seen);
static bool scan_tensor(struct json_scan *scan, struct safetensors *header, struct span name);
static bool scan_field(struct json_scan *scan, struct safetensors *header,
	struct safetensors_tensor *tensor, unsigned *seen);
static bool scan_dtype(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor);
static bool scan_shape(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor);
static bool scan_offsets(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor);
static struct safetensors_tensor *tensor_table(const struct safetensors *header);
static int safetensors_order_by_data(const void *left, const void *right);
static int check_names(struct safetensors *header, const char *path, struct error *err);
static const struct safetensors_tensor **name_table(const struct safetensors *header);
static int safetensors_order_by_name(const void *left, const void *right);
static int shown_len(struct span name);
static int check_metadata(struct safetensors *header, const char *path, struct error *err);
static int safetensors_order_by_key(const void *left, const void *right);
static int check_layout(const struct safetensors *header, size_t json_len, uint64_t data_size,
	const char *path, struct error *err);
static int check_order(
	const struct safetensors *header, const char *path, uint64_t *out_end, struct error *err);
static int measure(struct safetensors_tensor *tensor, uint64_t *out_bytes, const char *path,
	struct error *err);

static const struct entry_field entry_fields[] = {
	{"dtype", scan_dtype}, {"shape", scan_shape}, {"data_offsets", scan_offsets}};

enum { ENTRY_FIELD_COUNT = sizeof(entry_fields) / sizeof(entry_fields[0]) };

int safetensors_header_size(
	struct span first8, uint64_t file_size, uint64_t *out_size, struct error *err)
{
	if (first8.len < LENGTH_BYTES || file_size < LENGTH_BYTES)
		return error_set(err, ERROR_INVALID,
			"a safetensors file has at least 8 bytes; this one has %llu",
			(unsigned long long)file_size);
	uint64_t size = 0;
	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		size = size << 8 | first8.data[i];
	if (size > SAFETENSORS_HEADER_MAX_BYTES)
		return refuse_size(first8, size, err);
	if (size > file_size - LENGTH_BYTES)
		return error_set(err, ERROR_INVALID,
			"the file has %llu bytes and ends inside its header, which claims %llu:"
			" it is cut off, or it is not a safetensors file",
			(unsigned long long)file_size, (unsigned long long)(LENGTH_BYTES + size));
	*out_size = size;
	return 0;
}

struct safetensors *safetensors_parse(
	struct span json, uint64_t data_size, const char *path, struct error *err)
{
	ASSERT(path != NULL);
	struct safetensors *const header = memory_new(sizeof(*header));
	if (parse(header, json, data_size, path, err) == 0)
		return header;
	safetensors_free(header);
	return NULL;
}

void safetensors_free(struct safetensors *header)
{
	if (header == NULL)
		return;
	buffer_release(&header->strings);
	buffer_release(&header->shapes);
	buffer_release(&header->tensors);
	buffer_release(&header->by_name);
	buffer_release(&header->metadata);
	free(header);
}

size_t safetensors_count(const struct safetensors *header)
{
	return header->tensors.len / sizeof(struct safetensors_tensor);
}

const struct safetensors_tensor *safetensors_tensor(const struct safetensors *header, size_t index)
{
	ASSERT(index < safetensors_count(header));
	return &tensor_table(header)[index];
}

const struct safetensors_tensor *safetensors_find(
	const struct safetensors *header, struct span name)
{
	if (safetensors_count(header) == 0)
		return NULL;
	const struct safetensors_tensor wanted = {.name = name};
	const struct safetensors_tensor *const key = &wanted;
	const struct safetensors_tensor **const found = bsearch(&key, name_table(header),
		safetensors_count(header), sizeof(key), safetensors_order_by_name);
	return found != NULL ? *found : NULL;
}

size_t safetensors_metadata_count(const struct safetensors *header)
{
	return header->metadata.len / sizeof(struct safetensors_metadata);
}

const struct safetensors_metadata *safetensors_metadata(
	const struct safetensors *header, size_t index)
{
	ASSERT(index < safetensors_metadata_count(header));
	return (const struct safetensors_metadata *)header->metadata.data + index;
}

struct span safetensors_metadata_find(const struct safetensors *header, const char *key)
{
	const struct safetensors_metadata wanted = {.key = span_text(key)};
	if (safetensors_metadata_count(header) == 0)
		return (struct span){0};
	const struct safetensors_metadata *const found = bsearch(&wanted, header->metadata.data,
		safetensors_metadata_count(header), sizeof(wanted), safetensors_order_by_key);
	return found != NULL ? found->value : (struct span){0};
}

static int refuse_size(struct span first8, uint64_t size, struct error *err)
{
	for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++)
		if (span_starts(first8, OTHERS[i].begins))
			return error_set(err, ERROR_INVALID,
				"this is %s; only safetensors are read: write the weights with"
				" safetensors' save_file, or"
				" save_pretrained(..., safe_serialization=True)",
				OTHERS[i].format);
	return error_set(err, ERROR_INVALID,
		"it is not a safetensors file, or a damaged one: its header claims %llu bytes, over the limit of %llu",
		(unsigned long long)size, (unsigned long long)SAFETENSORS_HEADER_MAX_BYTES);
}

static int parse(struct safetensors *header, struct span json, uint64_t data_size, const char *path,
	struct error *err)
{
	if (json.len > SAFETENSORS_HEADER_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"%s: the safetensors header has %zu bytes, over the limit", path, json.len);
	if (!span_is_utf8(json))
		return error_set(
			err, ERROR_INVALID, "%s: the safetensors header is not UTF-8", path);
	if (reserve(header, json.len, err) != 0)
		return -1;
	struct json_scan scan;
	json_scan_init(&scan, json);
	if (!scan_header(&scan, header))
		return error_set(err, ERROR_INVALID,
			"%s: the safetensors header is malformed at byte %zu: %s", path,
			json_scan_offset(&scan), scan.fault);
	if (buffer_check(&header->tensors, "the table of tensors", err) != 0 ||
		buffer_check(&header->metadata, "the metadata", err) != 0)
		return -1;
	if (header->tensors.len > 0)
		qsort(tensor_table(header), safetensors_count(header),
			sizeof(struct safetensors_tensor), safetensors_order_by_data);
	if (check_names(header, path, err) != 0 || check_metadata(header, path, err) != 0)
		return -1;
	return check_layout(header, json.len, data_size, path, err);
}

static int reserve(struct safetensors *header, size_t json_len, struct error *err)
{
	/* A dimension takes at least two bytes of JSON, a tensor 40, a metadata item 6. */
	buffer_init(&header->strings, json_len + 1);
	buffer_init(&header->shapes, (json_len / 2 + 1) * sizeof(uint64_t));
	buffer_init(&header->tensors, (json_len / 40 + 1) * sizeof(struct safetensors_tensor));
	buffer_init(&header->by_name, (json_len / 40 + 1) * sizeof(struct safetensors_tensor *));
	buffer_init(&header->metadata, (json_len / 5 + 1) * sizeof(struct safetensors_metadata));
	if (buffer_reserve(&header->strings, json_len) == NULL ||
		buffer_reserve(&header->shapes, json_len / 2 * sizeof(uint64_t)) == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"no memory for a safetensors header of %zu bytes", json_len);
	return 0;
}

static bool scan_header(struct json_scan *scan, struct safetensors *header)
{
	bool metadata_seen = false;
	bool first = true;
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first)) {
		struct span name;
		if (!json_scan_name(scan, &header->strings, &name))
			return false;
		const bool special = span_equal_text(name, "__metadata__");
		if (special ? !scan_metadata(scan, header, &metadata_seen)
			    : !scan_tensor(scan, header, name))
			return false;
	}
	return scan->fault == NULL &&
		(json_scan_done(scan) || json_scan_fail(scan, "text behind the header object"));
}

static bool scan_metadata(struct json_scan *scan, struct safetensors *header, bool *seen)
{
	if (*seen)
		return json_scan_fail(scan, "__metadata__ is given twice");
	*seen = true;
	if (json_scan_accept_null(scan))
		return true;
	struct buffer pairs;
	buffer_init(&pairs, header->metadata.cap);
	const bool scanned = json_scan_pairs(scan, &header->strings, &pairs);
	const struct json_scan_pair *const pair = (const struct json_scan_pair *)pairs.data;
	for (size_t i = 0; scanned && i < pairs.len / sizeof(*pair); i++) {
		const struct safetensors_metadata item = {
			.key = pair[i].key, .value = pair[i].value};
		buffer_add(&header->metadata, &item, sizeof(item));
	}
	header->metadata.failed |= pairs.failed;
	buffer_release(&pairs);
	return scanned;
}

static bool scan_tensor(struct json_scan *scan, struct safetensors *header, struct span name)
{
	struct safetensors_tensor tensor = {.name = name};
	unsigned seen = 0;
	if (!json_scan_accept(scan, '{'))
		return json_scan_fail(scan, "a tensor's entry must be an object");
	bool first = true;
	while (json_scan_next(scan, '}', &first))
		if (!scan_field(scan, header, &tensor, &seen))
			return false;
	if (scan->fault == NULL && seen != (1u << ENTRY_FIELD_COUNT) - 1)
		return json_scan_fail(scan, "a tensor lacks dtype, shape or data_offsets");
	buffer_add(&header->tensors, &tensor, sizeof(tensor));
	return scan->fault == NULL;
}

/* Takes one member of a tensor's entry and sets its bit in *seen. Skips members that the format
 * does not know. */
static bool scan_field(struct json_scan *scan, struct safetensors *header,
	struct safetensors_tensor *tensor, unsigned *seen)
{
	struct span name;
	if (!json_scan_name(scan, &header->strings, &name))
		return false;
	for (unsigned i = 0; i < ENTRY_FIELD_COUNT; i++) {
		if (!span_equal_text(name, entry_fields[i].name))
			continue;
		if ((*seen & 1u << i) != 0)
			return json_scan_fail(scan, "a field of a tensor is given twice");
		*seen |= 1u << i;
		return entry_fields[i].scan(scan, header, tensor);
	}
	return json_scan_skip(scan);
}

static bool scan_dtype(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor)
{
	struct span name;
	if (!json_scan_string(scan, &header->strings, &name))
		return false;
	return dtype_parse(name, &tensor->dtype) || json_scan_fail(scan, "unknown dtype");
}

static bool scan_shape(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor)
{
	if (!json_scan_expect(scan, '['))
		return false;
	tensor->shape = (const uint64_t *)(header->shapes.data + header->shapes.len);
	tensor->rank = 0;
	bool first = true;
	while (json_scan_next(scan, ']', &first)) {
		uint64_t dimension;
		if (!json_scan_u64(scan, &dimension))
			return false;
		buffer_add(&header->shapes, &dimension, sizeof(dimension));
		tensor->rank++;
	}
	return scan->fault == NULL;
}

static bool scan_offsets(
	struct json_scan *scan, struct safetensors *header, struct safetensors_tensor *tensor)
{
	(void)header;
	return json_scan_expect(scan, '[') && json_scan_u64(scan, &tensor->begin) &&
		json_scan_expect(scan, ',') && json_scan_u64(scan, &tensor->end) &&
		json_scan_expect(scan, ']');
}

static struct safetensors_tensor *tensor_table(const struct safetensors *header)
{
	return (struct safetensors_tensor *)header->tensors.data;
}

static int safetensors_order_by_data(const void *left, const void *right)
{
	const struct safetensors_tensor *const a = left;
	const struct safetensors_tensor *const b = right;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return span_compare(a->name, b->name);
}

static int check_names(struct safetensors *header, const char *path, struct error *err)
{
	const size_t count = safetensors_count(header);
	for (size_t i = 0; i < count; i++) {
		const struct safetensors_tensor *const tensor = &tensor_table(header)[i];
		buffer_add(&header->by_name, &tensor, sizeof(tensor));
	}
	if (buffer_check(&header->by_name, "the table of tensor names", err) != 0)
		return -1;
	const struct safetensors_tensor **const names = name_table(header);
	if (count > 0)
		qsort(names, count, sizeof(names[0]), safetensors_order_by_name);
	for (size_t i = 1; i < count; i++)
		if (span_equal(names[i - 1]->name, names[i]->name))
			return error_set(err, ERROR_INVALID, "%s: tensor '%.*s' is given twice",
				path, shown_len(names[i]->name), names[i]->name.data);
	return 0;
}

static const struct safetensors_tensor **name_table(const struct safetensors *header)
{
	return (const struct safetensors_tensor **)header->by_name.data;
}

static int safetensors_order_by_name(const void *left, const void *right)
{
	const struct safetensors_tensor *const *const a = left;
	const struct safetensors_tensor *const *const b = right;
	return span_compare((*a)->name, (*b)->name);
}

static int shown_len(struct span name)
{
	return (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
}

/* Sorts the metadata, so that it can be searched; its order has no meaning. */
static int check_metadata(struct safetensors *header, const char *path, struct error *err)
{
	struct safetensors_metadata *const items =
		(struct safetensors_metadata *)header->metadata.data;
	const size_t count = safetensors_metadata_count(header);
	if (count > 0)
		qsort(items, count, sizeof(items[0]), safetensors_order_by_key);
	for (size_t i = 1; i < count; i++)
		if (span_equal(items[i - 1].key, items[i].key))
			return error_set(err, ERROR_INVALID, "%s: metadata '%.*s' is given twice",
				path, shown_len(items[i].key), items[i].key.data);
	return 0;
}

static int safetensors_order_by_key(const void *left, const void *right)
{
	return span_compare(((const struct safetensors_metadata *)left)->key,
		((const struct safetensors_metadata *)right)->key);
}

/* The tensors must cover the data exactly: no hole, no overlap, nothing behind the last. */
static int check_layout(const struct safetensors *header, size_t json_len, uint64_t data_size,
	const char *path, struct error *err)
{
	uint64_t end = 0;
	if (check_order(header, path, &end, err) != 0)
		return -1;
	const unsigned long long before = LENGTH_BYTES + json_len;
	if (end == data_size)
		return 0;
	return error_set(err, ERROR_INVALID,
		"%s has %llu bytes, and its header and tensors cover %llu: %s", path,
		before + data_size, before + end,
		end > data_size ? "it is cut off" : "other bytes follow the tensors");
}

/* Checks that each tensor begins where the one before it ends. *out_end is the end of the last. */
static int check_order(
	const struct safetensors *header, const char *path, uint64_t *out_end, struct error *err)
{
	uint64_t position = 0;
	for (size_t i = 0; i < safetensors_count(header); i++) {
		struct safetensors_tensor *const tensor = &tensor_table(header)[i];
		uint64_t bytes = 0;
		if (tensor->begin != position || tensor->end < tensor->begin)
			return error_set(err, ERROR_INVALID,
				"%s: tensor '%.*s' does not begin where the one before it ends",
				path, shown_len(tensor->name), tensor->name.data);
		if (measure(tensor, &bytes, path, err) != 0)
			return -1;
		if (tensor->end - tensor->begin != bytes)
			return error_set(err, ERROR_INVALID,
				"%s: tensor '%.*s' has %llu bytes and its shape needs %llu", path,
				shown_len(tensor->name), tensor->name.data,
				(unsigned long long)(tensor->end - tensor->begin),
				(unsigned long long)bytes);
		position = tensor->end;
	}
	*out_end = position;
	return 0;
}

/* Computes elements and bytes from the shape and checks each step for overflow. */
static int measure(
	struct safetensors_tensor *tensor, uint64_t *out_bytes, const char *path, struct error *err)
{
	uint64_t bits;
	uint64_t elements = 1;
	bool overflow = false;
	for (unsigned i = 0; i < tensor->rank; i++)
		overflow =
			overflow || __builtin_mul_overflow(elements, tensor->shape[i], &elements);
	if (overflow || __builtin_mul_overflow(elements, dtype_bits(tensor->dtype), &bits))
		return error_set(err, ERROR_INVALID, "%s: the shape of tensor '%.*s' overflows",
			path, shown_len(tensor->name), tensor->name.data);
	if (bits % 8 != 0)
		return error_set(err, ERROR_INVALID, "%s: tensor '%.*s' does not fill whole bytes",
			path, shown_len(tensor->name), tensor->name.data);
	tensor->elements = elements;
	*out_bytes = bits / 8;
	return 0;
}
