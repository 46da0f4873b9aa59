/* The keys decide the kind: delta_encoding is slime's and ours, TRL's files have a format instead.
 * Each kind has its own parser for its keys; digests and result_files are ours and the same in all
 * kinds. result_files is JSON within a value. Its rows are sorted by path, so repeated paths are
 * found and each header finds its shard. */
#include "weights/delta/delta_metadata.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "weights/model/relative_path.h"

struct encoding_row {
	const char *name;
	enum delta_encoding encoding;
	const char *compression; /* NULL: the kind has no such key */
};

enum { VERSION_MAX_BYTES = 256 };

/* One row of result_files while it is scanned. */
struct file_row {
	struct buffer *strings;
	struct delta_result_file file;
};

static int parse_kind(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
static int parse_trl(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
static int find_encoding(const struct encoding_row *rows, size_t count, struct span name,
	const struct encoding_row **out_row, const char *path, struct error *err);
static int parse_number(
	struct span text, bool *out_has, uint64_t *out, const char *path, struct error *err);
static int parse_ulp_class(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
static int parse_slime(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
static int parse_version(
	struct span text, bool *out_has, uint64_t *out, const char *path, struct error *err);
static int parse_digest(struct span text, bool *out_has, struct digest128 *out_digest,
	const char *path, struct error *err);
static int parse_result(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);
static int parse_files(
	struct delta_metadata *metadata, struct span text, const char *path, struct error *err);
static bool scan_files(struct json_scan *scan, struct delta_metadata *metadata);
static bool scan_file(struct json_scan *scan, struct delta_metadata *metadata);
static bool scan_path(struct json_scan *scan, void *state);
static bool scan_size(struct json_scan *scan, void *state);
static bool scan_kind(struct json_scan *scan, void *state);
static bool scan_choice(
	struct json_scan *scan, struct buffer *strings, const char *no, const char *yes, bool *out);
static bool scan_from(struct json_scan *scan, void *state);
static bool scan_digest(struct json_scan *scan, void *state);
static int check_files(struct delta_metadata *metadata, const char *path, struct error *err);
static int delta_metadata_order_files(const void *left, const void *right);
static int bind_headers(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err);

struct span delta_metadata_find(const struct json_scan_pair *pairs, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (span_equal_text(pairs[i].key, key))
			return pairs[i].value;
	return (struct span){0};
}

bool delta_metadata_is_delta(const struct json_scan_pair *pairs, size_t count)
{
	return delta_metadata_find(pairs, count, "delta_encoding").data != NULL ||
		span_equal_text(delta_metadata_find(pairs, count, "format"), "sparse_weight_patch");
}

int delta_metadata_parse(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	bool has_total;
	ASSERT(path != NULL && (pairs != NULL || count == 0));
	*metadata = (struct delta_metadata){0};
	if (parse_kind(metadata, pairs, count, path, err) != 0)
		return -1;
	if (parse_number(delta_metadata_find(pairs, count, "total_elements"), &has_total,
		    &metadata->total_elements, path, err) != 0)
		return -1;
	if (parse_number(delta_metadata_find(pairs, count, "total_changed_elements"),
		    &metadata->has_changed_elements, &metadata->changed_elements, path, err) != 0)
		return -1;
	if (parse_digest(delta_metadata_find(pairs, count, "base_digest"),
		    &metadata->has_base_digest, &metadata->base_digest, path, err) != 0 ||
		parse_digest(delta_metadata_find(pairs, count, "result_digest"),
			&metadata->has_result_digest, &metadata->result_digest, path, err) != 0)
		return -1;
	return parse_result(metadata, pairs, count, path, err);
}

bool delta_metadata_ids_differ(
	const struct delta_metadata *first, const struct delta_metadata *second)
{
	const bool are_numbers = first->has_step && second->has_base_step;
	return first->version.len > 0 && second->base_version.len > 0 && !are_numbers &&
		!span_equal(first->version, second->base_version);
}

void delta_metadata_release(struct delta_metadata *metadata)
{
	buffer_release(&metadata->strings);
	buffer_release(&metadata->table);
	*metadata = (struct delta_metadata){0};
}

static int parse_kind(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	static const struct encoding_row rows[] = {
		{"ulp-class", DELTA_ENCODING_ULP_CLASS, "none"},
		{"xor", DELTA_ENCODING_XOR, "zstd"},
		{"overwrite", DELTA_ENCODING_OVERWRITE, "zstd"},
	};
	const struct span encoding = delta_metadata_find(pairs, count, "delta_encoding");
	const struct span compression = delta_metadata_find(pairs, count, "compression_format");
	const struct encoding_row *row = NULL;
	if (encoding.data == NULL)
		return parse_trl(metadata, pairs, count, path, err);
	if (find_encoding(rows, sizeof(rows) / sizeof(rows[0]), encoding, &row, path, err) != 0)
		return -1;
	if (!span_equal_text(compression, row->compression))
		return error_set(err, ERROR_UNSUPPORTED,
			"%s: the delta's compression_format '%.*s' is not '%s'", path,
			(int)(compression.len < 60 ? compression.len : 60),
			compression.data != NULL ? (const char *)compression.data : "",
			row->compression);
	metadata->encoding = row->encoding;
	return row->encoding == DELTA_ENCODING_ULP_CLASS
		? parse_ulp_class(metadata, pairs, count, path, err)
		: parse_slime(metadata, pairs, count, path, err);
}

/* TRL writes the format and its version into every file, and the encoding since its second key
 * scheme. */
static int parse_trl(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	static const struct encoding_row rows[] = {
		{"raw", DELTA_ENCODING_RAW, NULL}, {"gap_delta", DELTA_ENCODING_GAP, NULL}};
	const struct span sparse = delta_metadata_find(pairs, count, "sparse");
	const struct span encoding = delta_metadata_find(pairs, count, "encoding");
	if (!span_equal_text(delta_metadata_find(pairs, count, "format"), "sparse_weight_patch"))
		return error_set(err, ERROR_INVALID,
			"%s is not a delta: its metadata has neither delta_encoding nor the format"
			" sparse_weight_patch",
			path);
	if (!span_equal_text(delta_metadata_find(pairs, count, "version"), "1"))
		return error_set(err, ERROR_UNSUPPORTED,
			"%s: the delta's version is missing or not 1", path);
	if (sparse.data != NULL && !span_equal_text(sparse, "True") &&
		!span_equal_text(sparse, "False"))
		return error_set(err, ERROR_INVALID,
			"%s: the delta's \"sparse\" must be True or False", path);
	const struct encoding_row *row = NULL;
	if (encoding.data != NULL &&
		find_encoding(rows, sizeof(rows) / sizeof(rows[0]), encoding, &row, path, err) != 0)
		return -1;
	metadata->encoding = row != NULL ? row->encoding : DELTA_ENCODING_NONE;
	return parse_number(delta_metadata_find(pairs, count, "model_version"), &metadata->has_step,
		       &metadata->step, path, err) != 0
		? -1
		: parse_number(delta_metadata_find(pairs, count, "base_step"),
			  &metadata->has_base_step, &metadata->base_step, path, err);
}

static int find_encoding(const struct encoding_row *rows, size_t count, struct span name,
	const struct encoding_row **out_row, const char *path, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (span_equal_text(name, rows[i].name)) {
			*out_row = &rows[i];
			return 0;
		}
	}
	return error_set(err, ERROR_UNSUPPORTED, "%s: the delta encoding '%.*s' is not supported",
		path, (int)(name.len < 60 ? name.len : 60), name.data);
}

static int parse_number(
	struct span text, bool *out_has, uint64_t *out, const char *path, struct error *err)
{
	*out_has = text.data != NULL;
	if (text.data != NULL && !span_parse_u64(text, out))
		return error_set(err, ERROR_INVALID,
			"%s: a number in the delta's metadata is malformed", path);
	return 0;
}

static int parse_ulp_class(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	return parse_number(delta_metadata_find(pairs, count, "step"), &metadata->has_step,
		       &metadata->step, path, err) != 0
		? -1
		: parse_number(delta_metadata_find(pairs, count, "base_step"),
			  &metadata->has_base_step, &metadata->base_step, path, err);
}

static int parse_slime(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	const struct span checksum = delta_metadata_find(pairs, count, "checksum_format");
	if (!delta_checksum_parse(checksum, &metadata->checksum))
		return error_set(err, checksum.data == NULL ? ERROR_INVALID : ERROR_UNSUPPORTED,
			"%s: the delta's checksum_format '%.*s' is not known", path,
			(int)(checksum.len < 60 ? checksum.len : 60),
			checksum.data != NULL ? (const char *)checksum.data : "");
	metadata->version = delta_metadata_find(pairs, count, "version");
	metadata->base_version = delta_metadata_find(pairs, count, "base_version");
	if (parse_version(metadata->version, &metadata->has_step, &metadata->step, path, err) != 0)
		return -1;
	return parse_version(
		metadata->base_version, &metadata->has_base_step, &metadata->base_step, path, err);
}

/* slime's versions are numbers. Other programs write ids there, which have no order. */
static int parse_version(
	struct span text, bool *out_has, uint64_t *out, const char *path, struct error *err)
{
	if (text.data == NULL)
		return error_set(err, ERROR_INVALID,
			"%s: the delta's index lacks version or base_version", path);
	if (text.len == 0 || text.len > VERSION_MAX_BYTES)
		return error_set(err, ERROR_INVALID,
			"%s: a version in the delta's index is empty or over %d bytes", path,
			VERSION_MAX_BYTES);
	*out_has = span_parse_u64(text, out);
	return 0;
}

static int parse_digest(struct span text, bool *out_has, struct digest128 *out_digest,
	const char *path, struct error *err)
{
	*out_has = text.data != NULL;
	if (text.data != NULL && !digest128_parse(text, out_digest))
		return error_set(err, ERROR_INVALID,
			"%s: a digest in the delta's metadata is malformed", path);
	return 0;
}

static int parse_result(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	const struct span kind = delta_metadata_find(pairs, count, "result_kind");
	const struct span files = delta_metadata_find(pairs, count, "result_files");
	metadata->has_files = files.data != NULL;
	metadata->result_is_folder = span_equal_text(kind, "folder");
	if ((kind.data != NULL) != metadata->has_files)
		return error_set(err, ERROR_INVALID,
			"%s: the delta has only one of result_kind and result_files", path);
	if (!metadata->has_files)
		return 0;
	if (!metadata->result_is_folder && !span_equal_text(kind, "file"))
		return error_set(err, ERROR_INVALID,
			"%s: the delta's result_kind is neither file nor folder", path);
	return parse_files(metadata, files, path, err) != 0
		? -1
		: bind_headers(metadata, pairs, count, path, err);
}

static int parse_files(
	struct delta_metadata *metadata, struct span text, const char *path, struct error *err)
{
	if (text.len > DELTA_METADATA_FILES_MAX_BYTES || !span_is_utf8(text))
		return error_set(err, ERROR_INVALID,
			"%s: the delta's result_files are too long or not UTF-8", path);
	/* A row takes at least 50 bytes of JSON. */
	buffer_init(&metadata->strings, text.len + 1);
	buffer_init(&metadata->table, (text.len / 50 + 1) * sizeof(struct delta_result_file));
	if (buffer_reserve(&metadata->strings, text.len) == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "%s: no memory for the delta's result_files", path);
	struct json_scan scan;
	json_scan_init(&scan, text);
	if (!scan_files(&scan, metadata))
		return error_set(err, ERROR_INVALID,
			"%s: the delta's result_files are malformed at byte %zu: %s", path,
			json_scan_offset(&scan), scan.fault);
	return buffer_check(&metadata->table, "the delta's result_files", err) != 0
		? -1
		: check_files(metadata, path, err);
}

static bool scan_files(struct json_scan *scan, struct delta_metadata *metadata)
{
	bool first = true;
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first))
		if (!scan_file(scan, metadata))
			return false;
	return json_scan_done(scan) || json_scan_fail(scan, "text behind the list");
}

static bool scan_file(struct json_scan *scan, struct delta_metadata *metadata)
{
	static const struct json_scan_member members[] = {{"path", scan_path, true},
		{"size", scan_size, true}, {"kind", scan_kind, true}, {"from", scan_from, true},
		{"digest", scan_digest, true}};
	const struct json_scan_object object = {
		members, sizeof(members) / sizeof(members[0]), "a file lacks a member"};
	struct file_row row = {.strings = &metadata->strings};
	if (!json_scan_members(scan, &object, &metadata->strings, &row))
		return false;
	buffer_add(&metadata->table, &row.file, sizeof(row.file));
	return true;
}

static bool scan_path(struct json_scan *scan, void *state)
{
	struct file_row *const row = state;
	return json_scan_string(scan, row->strings, &row->file.path) &&
		(relative_path_is_valid(row->file.path) ||
			json_scan_fail(scan, "the path leads elsewhere or is malformed"));
}

static bool scan_size(struct json_scan *scan, void *state)
{
	struct file_row *const row = state;
	return json_scan_u64(scan, &row->file.size);
}

static bool scan_kind(struct json_scan *scan, void *state)
{
	struct file_row *const row = state;
	return scan_choice(scan, row->strings, "file", "shard", &row->file.is_shard);
}

static bool scan_choice(
	struct json_scan *scan, struct buffer *strings, const char *no, const char *yes, bool *out)
{
	struct span text;
	if (!json_scan_string(scan, strings, &text))
		return false;
	*out = span_equal_text(text, yes);
	return *out || span_equal_text(text, no) || json_scan_fail(scan, "unknown word");
}

static bool scan_from(struct json_scan *scan, void *state)
{
	struct file_row *const row = state;
	return scan_choice(scan, row->strings, "base", "delta", &row->file.from_delta);
}

static bool scan_digest(struct json_scan *scan, void *state)
{
	struct file_row *const row = state;
	struct span text;
	return json_scan_string(scan, row->strings, &text) &&
		(digest128_parse(text, &row->file.digest) ||
			json_scan_fail(scan, "malformed digest"));
}

static int check_files(struct delta_metadata *metadata, const char *path, struct error *err)
{
	size_t shards = 0;
	metadata->files = (struct delta_result_file *)metadata->table.data;
	metadata->file_count = metadata->table.len / sizeof(metadata->files[0]);
	if (metadata->file_count > 0)
		qsort(metadata->files, metadata->file_count, sizeof(metadata->files[0]),
			delta_metadata_order_files);
	for (size_t i = 0; i < metadata->file_count; i++) {
		shards += metadata->files[i].is_shard;
		if (i > 0 && span_equal(metadata->files[i - 1].path, metadata->files[i].path))
			return error_set(err, ERROR_INVALID,
				"%s: the delta's result_files name a path twice", path);
	}
	if (shards == 0 || (!metadata->result_is_folder && metadata->file_count != 1))
		return error_set(err, ERROR_INVALID,
			"%s: the delta's result_files do not make a checkpoint", path);
	return 0;
}

static int delta_metadata_order_files(const void *left, const void *right)
{
	return span_compare(((const struct delta_result_file *)left)->path,
		((const struct delta_result_file *)right)->path);
}

/* Gives each shard whose header comes with the delta the text of the header. */
static int bind_headers(struct delta_metadata *metadata, const struct json_scan_pair *pairs,
	size_t count, const char *path, struct error *err)
{
	const struct span prefix = span_text(DELTA_METADATA_HEADER_PREFIX);
	for (size_t i = 0; i < count; i++) {
		if (!span_starts(pairs[i].key, prefix) || metadata->file_count == 0)
			continue;
		const struct delta_result_file wanted = {
			.path = span_slice(pairs[i].key, prefix.len, pairs[i].key.len)};
		struct delta_result_file *const found = bsearch(&wanted, metadata->files,
			metadata->file_count, sizeof(wanted), delta_metadata_order_files);
		if (found != NULL)
			found->header = pairs[i].value;
	}
	for (size_t i = 0; i < metadata->file_count; i++)
		if (metadata->files[i].is_shard && metadata->files[i].from_delta &&
			metadata->files[i].header.data == NULL)
			return error_set(err, ERROR_INVALID,
				"%s: the delta lacks the header of '%.*s'", path,
				(int)metadata->files[i].path.len, metadata->files[i].path.data);
	return 0;
}
