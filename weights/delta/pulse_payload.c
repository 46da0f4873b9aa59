/* The states are: opened, when the header is parsed and `reader` is at the first byte behind it;
 * and unpacked, when all bytes behind it are mapped. The header's records are checked when all
 * members are known: sizes and offsets must add up section by section, so the length of the
 * unpacked bytes is known before a byte is unpacked. */
#include "weights/delta/pulse_payload.h"

#include <stdlib.h>

#include "base/format/compress_stream.h"
#include "base/memory.h"
#include "weights/model/mapped_file.h"
#include "weights/model/unnamed_file.h"

enum {
	LENGTH_BYTES = 4,
	PIECE_BYTES = 256 * 1024,
	HEADER_MAX_BYTES = PULSE_METADATA_MAX_BYTES,
	RECORD_LEAST_BYTES = 100, /* JSON bytes of the names of a tensor's members */
	DIMENSION_LEAST_BYTES = 2,
	RANK_MAX = 8,
	SHOWN_BYTES = 120
};
/* More than any base has, and small enough that sums of a few of them do not overflow. */
#define ELEMENTS_MAX (UINT64_C(1) << 56)

struct pulse_payload {
	struct zstd_reader *reader; /* is behind the header until all is unpacked */
	enum pulse_codec codec;
	struct buffer strings;
	struct buffer shapes;  /* uint64_t */
	struct buffer records; /* struct record; only during opening */
	struct buffer tensors; /* struct pulse_tensor */
	uint64_t bytes;        /* count of bytes behind the header */
	struct span data;      /* these bytes, mapped, once unpacked */
	bool is_unpacked;
};

/* The members of a tensor in the header. */
struct record {
	struct span name;
	struct span value_dtype;
	struct span row_dtype;
	struct span col_dtype;
	uint64_t num_nonzero;
	uint64_t indices_offset;
	uint64_t indices_size;
	uint64_t rows_size;
	uint64_t cols_size;
	uint64_t values_offset;
	uint64_t values_size;
	size_t shape_at; /* in `shapes` */
	unsigned rank;
};

enum member_kind { MEMBER_TEXT, MEMBER_NUMBER, MEMBER_SHAPE };
/* The codecs that have a member; IN_3 is also for 3.1. */
enum { IN_ALL = 1, IN_3 = 2, IN_3_1 = 4 };

static const struct member {
	const char *name;
	enum member_kind kind;
	unsigned in;
	size_t offset;
} members[] = {
	{"name", MEMBER_TEXT, IN_ALL, offsetof(struct record, name)},
	{"shape", MEMBER_SHAPE, IN_ALL, 0},
	{"num_nonzero", MEMBER_NUMBER, IN_ALL, offsetof(struct record, num_nonzero)},
	{"value_dtype", MEMBER_TEXT, IN_ALL, offsetof(struct record, value_dtype)},
	{"row_dtype", MEMBER_TEXT, IN_3_1, offsetof(struct record, row_dtype)},
	{"col_dtype", MEMBER_TEXT, IN_3_1, offsetof(struct record, col_dtype)},
	{"indices_offset", MEMBER_NUMBER, IN_ALL, offsetof(struct record, indices_offset)},
	{"indices_size", MEMBER_NUMBER, IN_ALL, offsetof(struct record, indices_size)},
	{"rows_size", MEMBER_NUMBER, IN_3, offsetof(struct record, rows_size)},
	{"cols_size", MEMBER_NUMBER, IN_3, offsetof(struct record, cols_size)},
	{"values_offset", MEMBER_NUMBER, IN_ALL, offsetof(struct record, values_offset)},
	{"values_size", MEMBER_NUMBER, IN_ALL, offsetof(struct record, values_size)},
};
enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

static int read_header(struct pulse_payload *payload, struct buffer *out, struct error *err);
static int parse_header(struct pulse_payload *payload, struct span json, struct error *err);
static bool scan_header(struct json_scan *scan, struct pulse_payload *payload);
static bool scan_version(struct json_scan *scan, void *payload);
static bool scan_tensors(struct json_scan *scan, void *payload);
static bool scan_record(struct json_scan *scan, struct pulse_payload *payload);
static bool scan_member(struct json_scan *scan, struct pulse_payload *payload,
	struct record *record, unsigned *seen);
static bool scan_value(struct json_scan *scan, struct pulse_payload *payload,
	const struct member *member, struct record *record);
static bool scan_shape(
	struct json_scan *scan, struct pulse_payload *payload, struct record *record);
static bool has_members(enum pulse_codec codec, unsigned seen);
static int take_records(struct pulse_payload *payload, struct error *err);
static int add_tensor(
	struct pulse_payload *payload, const struct record *record, struct error *err);
static bool take_dtype(struct span name, enum dtype *out);
static int refuse(struct span name, const char *what, struct error *err);
static bool take_shape(const struct pulse_payload *payload, const struct record *record,
	uint64_t *out_elements, uint64_t *out_columns);
static int take_index(const struct record *record, enum pulse_codec codec, uint64_t columns,
	struct index_code *out, struct error *err);
static bool take_width(struct span name, unsigned *out);
static bool sizes_fit(const struct pulse_payload *payload, const struct record *record,
	const struct pulse_tensor *tensor);
static int blame(const char *path, struct error *err);
static int unpack_into(struct pulse_payload *payload, struct unnamed_file *file, struct error *err);
static struct span section(const struct pulse_payload *payload, uint64_t at, uint64_t bytes);

struct pulse_payload *pulse_payload_open(
	struct span frame, enum pulse_codec codec, const char *path, struct error *err)
{
	struct pulse_payload *const payload = memory_new(sizeof(*payload));
	struct buffer header;
	buffer_init(&header, HEADER_MAX_BYTES + 1);
	payload->codec = codec;
	payload->reader = zstd_reader_new();
	int result = zstd_reader_begin(payload->reader, frame, err);
	if (result == 0)
		result = read_header(payload, &header, err);
	if (result == 0)
		result = parse_header(payload, buffer_span(&header), err);
	buffer_release(&header);
	if (result == 0)
		return payload;
	blame(path, err);
	pulse_payload_free(payload);
	return NULL;
}

void pulse_payload_free(struct pulse_payload *payload)
{
	if (payload == NULL)
		return;
	zstd_reader_free(payload->reader);
	mapped_file_close(payload->data);
	buffer_release(&payload->strings);
	buffer_release(&payload->shapes);
	buffer_release(&payload->records);
	buffer_release(&payload->tensors);
	free(payload);
}

size_t pulse_payload_count(const struct pulse_payload *payload)
{
	return payload->tensors.len / sizeof(struct pulse_tensor);
}

const struct pulse_tensor *pulse_payload_tensor(const struct pulse_payload *payload, size_t index)
{
	ASSERT(index < pulse_payload_count(payload));
	return (const struct pulse_tensor *)payload->tensors.data + index;
}

int pulse_payload_unpack(struct pulse_payload *payload, const char *folder, struct error *err)
{
	struct unnamed_file file;
	if (payload->is_unpacked)
		return 0;
	if (unnamed_file_open(&file, folder, err) != 0)
		return -1;
	const int result = unpack_into(payload, &file, err);
	unnamed_file_close(&file);
	payload->is_unpacked = result == 0;
	return result == 0 ? 0 : blame(folder, err);
}

struct span pulse_payload_index(const struct pulse_payload *payload, size_t index)
{
	const struct pulse_tensor *const tensor = pulse_payload_tensor(payload, index);
	return section(payload, tensor->at, tensor->index_bytes);
}

struct span pulse_payload_values(const struct pulse_payload *payload, size_t index)
{
	const struct pulse_tensor *const tensor = pulse_payload_tensor(payload, index);
	return section(payload, tensor->at + tensor->index_bytes, tensor->value_bytes);
}

/* Reads in pieces, so that memory grows with the bytes that are there, not with the claimed
 * length. */
static int read_header(struct pulse_payload *payload, struct buffer *out, struct error *err)
{
	uint8_t length[LENGTH_BYTES];
	if (zstd_reader_take(payload->reader, length, sizeof(length), err) != 0)
		return -1;
	uint64_t left = (uint64_t)length[0] | (uint64_t)length[1] << 8 | (uint64_t)length[2] << 16 |
		(uint64_t)length[3] << 24;
	if (left > HEADER_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE,
			"its header has %llu bytes, over the limit of %d", (unsigned long long)left,
			HEADER_MAX_BYTES);
	while (left > 0) {
		const size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		uint8_t *const room = buffer_reserve(out, len);
		if (room == NULL)
			return error_set(err, ERROR_NO_MEMORY, "no memory for its header");
		if (zstd_reader_take(payload->reader, room, len, err) != 0)
			return -1;
		buffer_commit(out, len);
		left -= len;
	}
	return 0;
}

static int parse_header(struct pulse_payload *payload, struct span json, struct error *err)
{
	const size_t most = json.len / RECORD_LEAST_BYTES + 1;
	if (!span_is_utf8(json))
		return error_set(err, ERROR_INVALID, "its header is not UTF-8");
	buffer_init(&payload->strings, json.len + 1);
	buffer_init(&payload->shapes, (json.len / DIMENSION_LEAST_BYTES + 1) * sizeof(uint64_t));
	buffer_init(&payload->records, most * sizeof(struct record));
	buffer_init(&payload->tensors, most * sizeof(struct pulse_tensor));
	if (buffer_reserve(&payload->strings, json.len) == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "no memory for a header of %zu bytes", json.len);
	struct json_scan scan;
	json_scan_init(&scan, json);
	if (!scan_header(&scan, payload))
		return error_set(err, ERROR_INVALID, "its header is malformed at byte %zu: %s",
			json_scan_offset(&scan), scan.fault);
	if (buffer_check(&payload->shapes, "the table of shapes", err) != 0 ||
		buffer_check(&payload->records, "the table of the delta's tensors", err) != 0)
		return -1;
	return take_records(payload, err);
}

static bool scan_header(struct json_scan *scan, struct pulse_payload *payload)
{
	static const struct json_scan_member parts[] = {
		{"version", scan_version, true}, {"tensors", scan_tensors, true}};
	const struct json_scan_object object = {
		parts, sizeof(parts) / sizeof(parts[0]), "version or tensors is missing"};
	return json_scan_members(scan, &object, &payload->strings, payload) &&
		(json_scan_done(scan) || json_scan_fail(scan, "text behind the object"));
}

static bool scan_version(struct json_scan *scan, void *payload)
{
	uint64_t version;
	if (!json_scan_u64(scan, &version))
		return false;
	return version == ((const struct pulse_payload *)payload)->codec ||
		json_scan_fail(
			scan, "the version is not that of the format in delta_metadata.json");
}

static bool scan_tensors(struct json_scan *scan, void *payload)
{
	bool first = true;
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first))
		if (!scan_record(scan, payload))
			return false;
	return scan->fault == NULL;
}

static bool scan_record(struct json_scan *scan, struct pulse_payload *payload)
{
	struct record record = {0};
	unsigned seen = 0;
	bool first = true;
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first))
		if (!scan_member(scan, payload, &record, &seen))
			return false;
	if (scan->fault == NULL && !has_members(payload->codec, seen))
		return json_scan_fail(scan, "a tensor lacks a member");
	buffer_add(&payload->records, &record, sizeof(record));
	return scan->fault == NULL;
}

static bool scan_member(struct json_scan *scan, struct pulse_payload *payload,
	struct record *record, unsigned *seen)
{
	struct span name;
	if (!json_scan_name(scan, &payload->strings, &name))
		return false;
	for (unsigned i = 0; i < MEMBER_COUNT; i++) {
		if (!span_equal_text(name, members[i].name))
			continue;
		if ((*seen & 1u << i) != 0)
			return json_scan_fail(scan, "a member is given twice");
		*seen |= 1u << i;
		return scan_value(scan, payload, &members[i], record);
	}
	return json_scan_skip(scan);
}

static bool scan_value(struct json_scan *scan, struct pulse_payload *payload,
	const struct member *member, struct record *record)
{
	char *const at = (char *)record + member->offset;
	if (member->kind == MEMBER_SHAPE)
		return scan_shape(scan, payload, record);
	if (member->kind == MEMBER_NUMBER)
		return json_scan_u64(scan, (uint64_t *)at);
	return json_scan_string(scan, &payload->strings, (struct span *)at);
}

static bool scan_shape(struct json_scan *scan, struct pulse_payload *payload, struct record *record)
{
	bool first = true;
	record->shape_at = payload->shapes.len / sizeof(uint64_t);
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first)) {
		uint64_t dimension;
		if (record->rank == RANK_MAX)
			return json_scan_fail(scan, "a shape has more than 8 dimensions");
		if (!json_scan_u64(scan, &dimension))
			return false;
		buffer_add(&payload->shapes, &dimension, sizeof(dimension));
		record->rank++;
	}
	return scan->fault == NULL;
}

static bool has_members(enum pulse_codec codec, unsigned seen)
{
	const unsigned in = IN_ALL | (codec != PULSE_CODEC_2 ? IN_3 : 0) |
		(codec == PULSE_CODEC_3_1 ? IN_3_1 : 0);
	for (unsigned i = 0; i < MEMBER_COUNT; i++)
		if ((members[i].in & in) != 0 && (seen & 1u << i) == 0)
			return false;
	return true;
}

static int take_records(struct pulse_payload *payload, struct error *err)
{
	const struct record *const records = (const struct record *)payload->records.data;
	const size_t count = payload->records.len / sizeof(records[0]);
	for (size_t i = 0; i < count; i++)
		if (add_tensor(payload, &records[i], err) != 0)
			return -1;
	buffer_release(&payload->records);
	return buffer_check(&payload->tensors, "the table of the delta's tensors", err);
}

static int add_tensor(struct pulse_payload *payload, const struct record *record, struct error *err)
{
	struct pulse_tensor tensor = {
		.name = record->name,
		.rank = record->rank,
		.count = record->num_nonzero,
		.at = payload->bytes,
		.shape = (const uint64_t *)payload->shapes.data + record->shape_at,
	};
	uint64_t elements;
	uint64_t columns;
	if (!take_dtype(record->value_dtype, &tensor.dtype))
		return refuse(record->name,
			"has a value_dtype other than bfloat16, float16 and float32", err);
	if (!take_shape(payload, record, &elements, &columns))
		return refuse(record->name, "has a shape of too many elements", err);
	if (tensor.count > elements)
		return refuse(
			record->name, "has more changed elements than its shape has elements", err);
	if (take_index(record, payload->codec, columns, &tensor.index, err) != 0)
		return -1;
	tensor.index_bytes = tensor.count * index_code_bytes(&tensor.index);
	tensor.value_bytes = tensor.count * (dtype_bits(tensor.dtype) / 8);
	if (!sizes_fit(payload, record, &tensor))
		return refuse(record->name, "has sizes or offsets that do not add up", err);
	ASSERT(tensor.index.form != INDEX_GRID || tensor.index.columns > 0);
	payload->bytes += tensor.index_bytes + tensor.value_bytes;
	if (payload->bytes > ELEMENTS_MAX)
		return refuse(record->name, "comes after more bytes than any model has", err);
	buffer_add(&payload->tensors, &tensor, sizeof(tensor));
	return 0;
}

static bool take_dtype(struct span name, enum dtype *out)
{
	static const struct {
		const char *name;
		enum dtype dtype;
	} dtypes[] = {{"bfloat16", DTYPE_BF16}, {"float16", DTYPE_F16}, {"float32", DTYPE_F32}};
	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		if (span_equal_text(name, dtypes[i].name)) {
			*out = dtypes[i].dtype;
			return true;
		}
	}
	return false;
}

static int refuse(struct span name, const char *what, struct error *err)
{
	return error_set(err, ERROR_INVALID, "tensor '%.*s' %s",
		(int)(name.len < SHOWN_BYTES ? name.len : SHOWN_BYTES), (const char *)name.data,
		what);
}

/* The first dimension is the count of rows; the product of the others is the count of columns, at
 * least 1. False when the shape has over ELEMENTS_MAX elements. */
static bool take_shape(const struct pulse_payload *payload, const struct record *record,
	uint64_t *out_elements, uint64_t *out_columns)
{
	const uint64_t *const shape = (const uint64_t *)payload->shapes.data + record->shape_at;
	*out_elements = 1;
	*out_columns = 1;
	for (unsigned i = record->rank; i-- > 0;) {
		if (shape[i] > 0 && *out_elements > ELEMENTS_MAX / shape[i])
			return false;
		*out_elements *= shape[i];
		if (i > 0)
			*out_columns = *out_elements > 0 ? *out_elements : 1;
	}
	return true;
}

static int take_index(const struct record *record, enum pulse_codec codec, uint64_t columns,
	struct index_code *out, struct error *err)
{
	*out = (struct index_code){.form = INDEX_STEP32};
	if (codec == PULSE_CODEC_2)
		return 0;
	*out = (struct index_code){
		.form = INDEX_GRID, .columns = columns, .row_bytes = 4, .col_bytes = 4};
	if (codec == PULSE_CODEC_3_1 &&
		(!take_width(record->row_dtype, &out->row_bytes) ||
			!take_width(record->col_dtype, &out->col_bytes)))
		return refuse(record->name,
			"has a row_dtype or col_dtype other than uint8, uint16 and int32", err);
	return 0;
}

static bool take_width(struct span name, unsigned *out)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} widths[] = {{"uint8", 1}, {"uint16", 2}, {"int32", 4}};
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (span_equal_text(name, widths[i].name)) {
			*out = widths[i].bytes;
			return true;
		}
	}
	return false;
}

/* The sections must follow one another without a gap, as every encoder writes them. Then the
 * unpacked bytes are as long as the sizes say. */
static bool sizes_fit(const struct pulse_payload *payload, const struct record *record,
	const struct pulse_tensor *tensor)
{
	const bool is_grid = tensor->index.form == INDEX_GRID;
	return record->indices_offset == payload->bytes &&
		record->indices_size == tensor->index_bytes &&
		record->values_offset == payload->bytes + tensor->index_bytes &&
		record->values_size == tensor->value_bytes &&
		(!is_grid ||
			(record->rows_size == tensor->count * tensor->index.row_bytes &&
				record->cols_size == tensor->count * tensor->index.col_bytes));
}

/* "corrupt" is for our own stored bytes. A frame that does not decode is the publisher's fault. */
static int blame(const char *path, struct error *err)
{
	if (err->kind == ERROR_CORRUPT)
		err->kind = ERROR_INVALID;
	return error_wrap(err, "'%s'", path);
}

static int unpack_into(struct pulse_payload *payload, struct unnamed_file *file, struct error *err)
{
	ASSERT(!payload->is_unpacked);
	uint8_t *const piece = memory_new(PIECE_BYTES);
	int result = 0;
	for (uint64_t left = payload->bytes; left > 0 && result == 0;) {
		const size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		result = zstd_reader_take(payload->reader, piece, len, err);
		if (result == 0)
			result = unnamed_file_add(file, span_of(piece, len), err);
		left -= len;
	}
	free(piece);
	if (result == 0)
		result = zstd_reader_end(payload->reader, err);
	return result == 0 ? unnamed_file_map(file, &payload->data, err) : -1;
}

static struct span section(const struct pulse_payload *payload, uint64_t at, uint64_t bytes)
{
	ASSERT(payload->is_unpacked);
	ASSERT(at + bytes <= payload->data.len);
	return span_slice(payload->data, (size_t)at, (size_t)bytes);
}
