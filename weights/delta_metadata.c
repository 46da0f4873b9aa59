#include "weights/delta_metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "weights/relative_path.h"

/* A safetensors header may have 100 MB, so no list of values worth writing is larger. */
enum { LIST_CAP_BYTES = 256 << 20, FILES_TEXT_MAX_BYTES = 96 << 20 };
static const char header_prefix[] = "header:";

struct span delta_metadata_find(const struct json_scan_pair *const pairs, const size_t count, const char *const key)
{
	for (size_t i = 0; i < count; i++)
		if (span_equal_text(pairs[i].key, key))
			return pairs[i].value;
	return (struct span){0};
}

bool delta_metadata_is_delta(const struct json_scan_pair *const pairs, const size_t count)
{
	return span_equal_text(delta_metadata_find(pairs, count, "format"), "sparse_weight_patch");
}

static int parse_encoding(const struct span text, enum delta_encoding *const out_encoding, const char *const path, struct error *const err)
{
	static const struct {
		const char *name;
		enum delta_encoding encoding;
	} rows[] = {{"raw", DELTA_ENCODING_RAW}, {"gap_delta", DELTA_ENCODING_GAP}};
	if (text.data == NULL) {
		*out_encoding = DELTA_ENCODING_NONE;
		return 0;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (span_equal_text(text, rows[i].name)) {
			*out_encoding = rows[i].encoding;
			return 0;
		}
	}
	return error_set(err, ERROR_UNSUPPORTED, "%s: the delta encoding '%.*s' is not supported", path, (int)(text.len < 60 ? text.len : 60),
		text.data);
}

static int parse_digest(const struct span text, bool *const out_has, struct digest128 *const out_digest, const char *const path,
	struct error *const err)
{
	*out_has = text.data != NULL;
	if (text.data != NULL && !digest128_parse(text, out_digest))
		return error_set(err, ERROR_INVALID, "%s: a digest in the delta's metadata is malformed", path);
	return 0;
}

/* The members of one row of result_files; each fills its part. */
struct file_row {
	struct delta_result_file file;
	unsigned seen;
};

static bool scan_choice(struct json_scan *const scan, struct buffer *const strings, const char *const no, const char *const yes,
	bool *const out)
{
	struct span text;
	if (!json_scan_string(scan, strings, &text))
		return false;
	*out = span_equal_text(text, yes);
	return *out || span_equal_text(text, no) || json_scan_fail(scan, "unknown word");
}

static bool scan_path(struct json_scan *const scan, struct buffer *const strings, struct delta_result_file *const file)
{
	return json_scan_string(scan, strings, &file->path) &&
		(relative_path_is_valid(file->path) || json_scan_fail(scan, "the path leads elsewhere or is malformed"));
}

static bool scan_size(struct json_scan *const scan, struct buffer *const strings, struct delta_result_file *const file)
{
	(void)strings;
	return json_scan_u64(scan, &file->size);
}

static bool scan_digest(struct json_scan *const scan, struct buffer *const strings, struct delta_result_file *const file)
{
	struct span text;
	return json_scan_string(scan, strings, &text) && (digest128_parse(text, &file->digest) || json_scan_fail(scan, "malformed digest"));
}

static bool scan_kind(struct json_scan *const scan, struct buffer *const strings, struct delta_result_file *const file)
{
	return scan_choice(scan, strings, "file", "shard", &file->is_shard);
}

static bool scan_from(struct json_scan *const scan, struct buffer *const strings, struct delta_result_file *const file)
{
	return scan_choice(scan, strings, "base", "delta", &file->from_delta);
}

static const struct {
	const char *name;
	bool (*scan)(struct json_scan *scan, struct buffer *strings, struct delta_result_file *file);
} file_members[] = {{"path", scan_path}, {"size", scan_size}, {"kind", scan_kind}, {"from", scan_from}, {"digest", scan_digest}};
enum { FILE_MEMBER_COUNT = sizeof(file_members) / sizeof(file_members[0]) };

static bool scan_member(struct json_scan *const scan, struct buffer *const strings, struct file_row *const row)
{
	struct span name;
	if (!json_scan_name(scan, strings, &name))
		return false;
	for (unsigned i = 0; i < FILE_MEMBER_COUNT; i++) {
		if (!span_equal_text(name, file_members[i].name))
			continue;
		if ((row->seen & 1u << i) != 0)
			return json_scan_fail(scan, "a member is given twice");
		row->seen |= 1u << i;
		return file_members[i].scan(scan, strings, &row->file);
	}
	return json_scan_skip(scan);
}

static bool scan_file(struct json_scan *const scan, struct delta_metadata *const metadata)
{
	struct file_row row = {0};
	bool first = true;
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first))
		if (!scan_member(scan, &metadata->strings, &row))
			return false;
	if (scan->fault == NULL && row.seen != (1u << FILE_MEMBER_COUNT) - 1)
		return json_scan_fail(scan, "a file lacks a member");
	buffer_add(&metadata->table, &row.file, sizeof(row.file));
	return scan->fault == NULL;
}

static bool scan_files(struct json_scan *const scan, struct delta_metadata *const metadata)
{
	bool first = true;
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first))
		if (!scan_file(scan, metadata))
			return false;
	return json_scan_done(scan) || json_scan_fail(scan, "text behind the list");
}

static int order_by_path(const void *const left, const void *const right)
{
	return span_compare(((const struct delta_result_file *)left)->path, ((const struct delta_result_file *)right)->path);
}

static int check_files(struct delta_metadata *const metadata, const char *const path, struct error *const err)
{
	size_t shards = 0;
	metadata->files = (struct delta_result_file *)metadata->table.data;
	metadata->file_count = metadata->table.len / sizeof(metadata->files[0]);
	if (metadata->file_count > 0)
		qsort(metadata->files, metadata->file_count, sizeof(metadata->files[0]), order_by_path);
	for (size_t i = 0; i < metadata->file_count; i++) {
		shards += metadata->files[i].is_shard;
		if (i > 0 && span_equal(metadata->files[i - 1].path, metadata->files[i].path))
			return error_set(err, ERROR_INVALID, "%s: the delta's result_files name a path twice", path);
	}
	if (shards == 0 || (!metadata->result_is_folder && metadata->file_count != 1))
		return error_set(err, ERROR_INVALID, "%s: the delta's result_files do not make a checkpoint", path);
	return 0;
}

static int parse_files(struct delta_metadata *const metadata, const struct span text, const char *const path, struct error *const err)
{
	if (text.len > FILES_TEXT_MAX_BYTES || !span_is_utf8(text))
		return error_set(err, ERROR_INVALID, "%s: the delta's result_files are too long or not UTF-8", path);
	/* 50 bytes at least make a row. */
	buffer_init(&metadata->strings, text.len + 1);
	buffer_init(&metadata->table, (text.len / 50 + 1) * sizeof(struct delta_result_file));
	if (buffer_reserve(&metadata->strings, text.len) == NULL)
		return error_set(err, ERROR_NO_MEMORY, "%s: no memory for the delta's result_files", path);
	struct json_scan scan;
	json_scan_init(&scan, text);
	if (!scan_files(&scan, metadata))
		return error_set(err, ERROR_INVALID, "%s: the delta's result_files are malformed at byte %zu: %s", path, json_scan_offset(&scan),
			scan.fault);
	return buffer_check(&metadata->table, "the delta's result_files", err) != 0 ? -1 : check_files(metadata, path, err);
}

/* Gives each shard whose header comes with the delta its text. */
static int bind_headers(struct delta_metadata *const metadata, const struct json_scan_pair *const pairs, const size_t count,
	const char *const path, struct error *const err)
{
	const struct span prefix = span_text(header_prefix);
	for (size_t i = 0; i < count; i++) {
		if (!span_starts(pairs[i].key, prefix) || metadata->file_count == 0)
			continue;
		const struct delta_result_file wanted = {.path = span_slice(pairs[i].key, prefix.len, pairs[i].key.len)};
		struct delta_result_file *const found =
			bsearch(&wanted, metadata->files, metadata->file_count, sizeof(wanted), order_by_path);
		if (found != NULL)
			found->header = pairs[i].value;
	}
	for (size_t i = 0; i < metadata->file_count; i++)
		if (metadata->files[i].is_shard && metadata->files[i].from_delta && metadata->files[i].header.data == NULL)
			return error_set(err, ERROR_INVALID, "%s: the delta lacks the header of '%.*s'", path, (int)metadata->files[i].path.len,
				metadata->files[i].path.data);
	return 0;
}

static int parse_result(struct delta_metadata *const metadata, const struct json_scan_pair *const pairs, const size_t count,
	const char *const path, struct error *const err)
{
	const struct span kind = delta_metadata_find(pairs, count, "result_kind");
	const struct span files = delta_metadata_find(pairs, count, "result_files");
	metadata->has_files = files.data != NULL;
	metadata->result_is_folder = span_equal_text(kind, "folder");
	if ((kind.data != NULL) != metadata->has_files)
		return error_set(err, ERROR_INVALID, "%s: the delta has only one of result_kind and result_files", path);
	if (!metadata->has_files)
		return 0;
	if (!metadata->result_is_folder && !span_equal_text(kind, "file"))
		return error_set(err, ERROR_INVALID, "%s: the delta's result_kind is neither file nor folder", path);
	return parse_files(metadata, files, path, err) != 0 ? -1 : bind_headers(metadata, pairs, count, path, err);
}

int delta_metadata_parse(struct delta_metadata *const metadata, const struct json_scan_pair *const pairs, const size_t count,
	const char *const path, struct error *const err)
{
	*metadata = (struct delta_metadata){0};
	const struct span version = delta_metadata_find(pairs, count, "version");
	const struct span sparse = delta_metadata_find(pairs, count, "sparse");
	if (!delta_metadata_is_delta(pairs, count))
		return error_set(err, ERROR_INVALID, "%s is not a delta: its metadata has no format sparse_weight_patch", path);
	if (!span_equal_text(version, "1"))
		return error_set(err, ERROR_UNSUPPORTED, "%s: the delta has no version or another one than 1", path);
	if (sparse.data != NULL && !span_equal_text(sparse, "True") && !span_equal_text(sparse, "False"))
		return error_set(err, ERROR_INVALID, "%s: the delta's sparse is neither True nor False", path);
	if (parse_encoding(delta_metadata_find(pairs, count, "encoding"), &metadata->encoding, path, err) != 0 ||
		parse_digest(delta_metadata_find(pairs, count, "base_digest"), &metadata->has_base_digest, &metadata->base_digest, path, err) != 0)
		return -1;
	if (parse_digest(delta_metadata_find(pairs, count, "result_digest"), &metadata->has_result_digest, &metadata->result_digest, path,
		    err) != 0)
		return -1;
	return parse_result(metadata, pairs, count, path, err);
}

void delta_metadata_release(struct delta_metadata *const metadata)
{
	buffer_release(&metadata->strings);
	buffer_release(&metadata->table);
	*metadata = (struct delta_metadata){0};
}

void delta_metadata_list_init(struct delta_metadata_list *const list)
{
	list->arena = arena_new(LIST_CAP_BYTES);
	buffer_init(&list->items, LIST_CAP_BYTES);
}

void delta_metadata_list_release(struct delta_metadata_list *const list)
{
	arena_free(list->arena);
	buffer_release(&list->items);
	list->arena = NULL;
}

void delta_metadata_list_add(struct delta_metadata_list *const list, const char *const key, const struct span value)
{
	const struct safetensors_metadata item = {
		.key = arena_copy(list->arena, span_text(key)),
		.value = arena_copy(list->arena, value),
	};
	buffer_add(&list->items, &item, sizeof(item));
}

size_t delta_metadata_list_count(const struct delta_metadata_list *const list)
{
	return list->items.len / sizeof(struct safetensors_metadata);
}

const struct safetensors_metadata *delta_metadata_list_items(const struct delta_metadata_list *const list)
{
	return (const struct safetensors_metadata *)list->items.data;
}

int delta_metadata_list_check(const struct delta_metadata_list *const list, struct error *const err)
{
	if (arena_overflowed(list->arena))
		return error_set(err, ERROR_TOO_LARGE, "the delta's metadata would have over %d bytes", LIST_CAP_BYTES);
	return buffer_check(&list->items, "the delta's metadata", err);
}

static void add_text(struct delta_metadata_list *const list, const char *const key, const char *const value)
{
	delta_metadata_list_add(list, key, span_text(value));
}

static void add_u64(struct delta_metadata_list *const list, const char *const key, const uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	add_text(list, key, text);
}

static void add_digest(struct delta_metadata_list *const list, const char *const key, const struct digest128 *const digest)
{
	char text[DIGEST128_TEXT_BYTES];
	digest128_format(digest, text);
	add_text(list, key, text);
}

/* The shortest decimal that reads back as the same double, with ".0" where Python would put it: what str(float) gives from 1e-16 to 1. */
static void add_python_float(struct delta_metadata_list *const list, const char *const key, const double value)
{
	char text[40];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) >= value && strtod(text, NULL) <= value)
			break;
	}
	char whole[sizeof(text) + 2];
	snprintf(whole, sizeof(whole), "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
	add_text(list, key, whole);
}

static double sparsity(const struct delta_stats *const stats)
{
	return stats->elements > 0 ? 1.0 - (double)stats->changed_elements / (double)stats->elements : 1.0;
}

void delta_metadata_print(struct delta_metadata_list *const list, const enum delta_format format, const uint64_t model_version,
	const struct delta_stats *const stats)
{
	static const char *const encodings[] = {[DELTA_TRL_GAP] = "gap_delta", [DELTA_TRL_RAW] = "raw", [DELTA_TRL_V1] = NULL};
	add_text(list, "format", "sparse_weight_patch");
	add_text(list, "version", "1");
	add_text(list, "sparse", "True");
	add_u64(list, "model_version", model_version);
	if (encodings[format] != NULL)
		add_text(list, "encoding", encodings[format]);
	add_u64(list, "num_changed_params", stats->changed_tensors);
	add_u64(list, "total_changed_elements", stats->changed_elements);
	add_u64(list, "total_elements", stats->elements);
	add_python_float(list, "sparsity", sparsity(stats));
	add_digest(list, "base_digest", &stats->base_digest);
	add_digest(list, "result_digest", &stats->result_digest);
}

static void print_file(const struct delta_result_file *const file, struct buffer *const out)
{
	char digest[DIGEST128_TEXT_BYTES];
	digest128_format(&file->digest, digest);
	buffer_add_text(out, "{\"path\":");
	json_scan_quote(file->path, out);
	buffer_format(out, ",\"size\":%llu,\"kind\":\"%s\",\"from\":\"%s\",\"digest\":\"%s\"}", (unsigned long long)file->size,
		file->is_shard ? "shard" : "file", file->from_delta ? "delta" : "base", digest);
}

void delta_metadata_print_files(struct delta_metadata_list *const list, const bool result_is_folder,
	const struct delta_result_file *const files, const size_t count)
{
	struct buffer text;
	buffer_init(&text, FILES_TEXT_MAX_BYTES);
	buffer_add_byte(&text, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_add_byte(&text, ',');
		print_file(&files[i], &text);
	}
	buffer_add_byte(&text, ']');
	/* 30,000 files with paths of 1 KiB are within the cap. */
	ASSERT(!buffer_failed(&text));
	add_text(list, "result_kind", result_is_folder ? "folder" : "file");
	delta_metadata_list_add(list, "result_files", buffer_span(&text));
	buffer_release(&text);
	for (size_t i = 0; i < count; i++) {
		if (!files[i].is_shard || !files[i].from_delta)
			continue;
		char key[sizeof(header_prefix) + RELATIVE_PATH_MAX_BYTES];
		snprintf(key, sizeof(key), "%s%.*s", header_prefix, (int)files[i].path.len, files[i].path.data);
		delta_metadata_list_add(list, key, files[i].header);
	}
}
