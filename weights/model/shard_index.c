/* Texts go into one buffer that is reserved before the parse, so pairs can point into it. An index
 * from pairs has no texts of its own. Both kinds then pass the same checks, and the files are the
 * sorted values of the pairs without repeats. */
#include "weights/model/shard_index.h"

#include <stdlib.h>

#include "base/memory.h"
#include "weights/model/relative_path.h"

/* Enough for ten million tensors with long names. */
#define INDEX_MAX_BYTES (UINT64_C(1) << 30)

struct shard_index {
	struct buffer strings;
	struct buffer pairs;    /* struct json_scan_pair */
	struct buffer files;    /* struct span */
	struct buffer metadata; /* struct json_scan_pair */
};

static int parse(struct shard_index *index, struct span json, const char *path, struct error *err);
static bool scan_index(struct json_scan *scan, struct shard_index *index);
static bool scan_metadata(struct json_scan *scan, struct shard_index *index);
static int check_tensors(struct shard_index *index, const char *path, struct error *err);
static int shard_index_order_pairs(const void *left, const void *right);
static const struct span *find_file(const struct shard_index *index, const struct span *file);
static void unite_files(struct shard_index *index);
static int shard_index_order_files(const void *left, const void *right);

struct shard_index *shard_index_parse(struct span json, const char *path, struct error *err)
{
	ASSERT(path != NULL);
	struct shard_index *const index = memory_new(sizeof(*index));
	if (parse(index, json, path, err) == 0)
		return index;
	shard_index_free(index);
	return NULL;
}

struct shard_index *shard_index_of(
	const struct json_scan_pair *pairs, size_t count, const char *path, struct error *err)
{
	ASSERT(path != NULL && (pairs != NULL || count == 0));
	struct shard_index *const index = memory_new(sizeof(*index));
	buffer_init(&index->pairs, (count + 1) * sizeof(pairs[0]));
	buffer_init(&index->files, (count + 1) * sizeof(struct span));
	if (count > 0)
		buffer_add(&index->pairs, pairs, count * sizeof(pairs[0]));
	if (buffer_check(&index->pairs, "the index", err) == 0 &&
		check_tensors(index, path, err) == 0) {
		unite_files(index);
		return index;
	}
	shard_index_free(index);
	return NULL;
}

void shard_index_free(struct shard_index *index)
{
	if (index == NULL)
		return;
	buffer_release(&index->strings);
	buffer_release(&index->pairs);
	buffer_release(&index->files);
	buffer_release(&index->metadata);
	free(index);
}

size_t shard_index_count(const struct shard_index *index)
{
	return index->pairs.len / sizeof(struct json_scan_pair);
}

const struct json_scan_pair *shard_index_pair(const struct shard_index *index, size_t at)
{
	ASSERT(at < shard_index_count(index));
	return (const struct json_scan_pair *)index->pairs.data + at;
}

size_t shard_index_file_count(const struct shard_index *index)
{
	return index->files.len / sizeof(struct span);
}

struct span shard_index_file(const struct shard_index *index, size_t at)
{
	ASSERT(at < shard_index_file_count(index));
	return ((const struct span *)index->files.data)[at];
}

bool shard_index_names(const struct shard_index *index, struct span file)
{
	return find_file(index, &file) != NULL;
}

size_t shard_index_find_file(const struct shard_index *index, struct span file)
{
	const struct span *const found = find_file(index, &file);
	ASSERT(found != NULL);
	return (size_t)(found - (const struct span *)index->files.data);
}

size_t shard_index_metadata_count(const struct shard_index *index)
{
	return index->metadata.len / sizeof(struct json_scan_pair);
}

const struct json_scan_pair *shard_index_metadata(const struct shard_index *index, size_t at)
{
	ASSERT(at < shard_index_metadata_count(index));
	return (const struct json_scan_pair *)index->metadata.data + at;
}

static int parse(struct shard_index *index, struct span json, const char *path, struct error *err)
{
	if (json.len > INDEX_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE,
			"%s: the index has %zu bytes, over the limit", path, json.len);
	if (!span_is_utf8(json))
		return error_set(err, ERROR_INVALID, "%s: the index is not UTF-8", path);
	/* A pair takes at least six bytes of JSON. */
	const size_t most = json.len / 5 + 1;
	buffer_init(&index->strings, json.len + 1);
	buffer_init(&index->pairs, most * sizeof(struct json_scan_pair));
	buffer_init(&index->files, most * sizeof(struct span));
	buffer_init(&index->metadata, most * sizeof(struct json_scan_pair));
	if (buffer_reserve(&index->strings, json.len) == NULL)
		return error_set(err, ERROR_NO_MEMORY, "%s: no memory for an index of %zu bytes",
			path, json.len);
	struct json_scan scan;
	json_scan_init(&scan, json);
	if (!scan_index(&scan, index))
		return error_set(err, ERROR_INVALID, "%s: the index is malformed at byte %zu: %s",
			path, json_scan_offset(&scan), scan.fault);
	if (buffer_check(&index->pairs, "the index", err) != 0 ||
		buffer_check(&index->metadata, "the index's metadata", err) != 0)
		return -1;
	if (check_tensors(index, path, err) != 0)
		return -1;
	unite_files(index);
	return 0;
}

static bool scan_index(struct json_scan *scan, struct shard_index *index)
{
	bool metadata_seen = false;
	bool map_seen = false;
	bool first = true;
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first)) {
		struct span name;
		if (!json_scan_name(scan, &index->strings, &name))
			return false;
		bool *const seen = span_equal_text(name, "weight_map") ? &map_seen
			: span_equal_text(name, "metadata")            ? &metadata_seen
								       : NULL;
		if (seen != NULL && *seen)
			return json_scan_fail(scan, "a member is given twice");
		const bool scanned = seen == &map_seen
			? json_scan_pairs(scan, &index->strings, &index->pairs)
			: seen != NULL ? scan_metadata(scan, index)
				       : json_scan_skip(scan);
		if (!scanned)
			return false;
		if (seen != NULL)
			*seen = true;
	}
	if (scan->fault == NULL && !map_seen)
		return json_scan_fail(scan, "weight_map is missing");
	return scan->fault == NULL &&
		(json_scan_done(scan) || json_scan_fail(scan, "text behind the index object"));
}

static bool scan_metadata(struct json_scan *scan, struct shard_index *index)
{
	if (!json_scan_accept(scan, '{'))
		return json_scan_skip(scan);
	bool first = true;
	while (json_scan_next(scan, '}', &first)) {
		struct json_scan_pair pair;
		if (!json_scan_name(scan, &index->strings, &pair.key))
			return false;
		if (!json_scan_at_string(scan)) {
			if (!json_scan_skip(scan))
				return false;
			continue;
		}
		if (!json_scan_string(scan, &index->strings, &pair.value))
			return false;
		buffer_add(&index->metadata, &pair, sizeof(pair));
	}
	return scan->fault == NULL;
}

static int check_tensors(struct shard_index *index, const char *path, struct error *err)
{
	struct json_scan_pair *const pairs = (struct json_scan_pair *)index->pairs.data;
	const size_t count = shard_index_count(index);
	if (count > 0)
		qsort(pairs, count, sizeof(pairs[0]), shard_index_order_pairs);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && span_equal(pairs[i - 1].key, pairs[i].key))
			return error_set(err, ERROR_INVALID,
				"%s: the index names a tensor twice: '%.*s'", path,
				(int)(pairs[i].key.len < 160 ? pairs[i].key.len : 160),
				pairs[i].key.data);
		if (!relative_path_is_valid(pairs[i].value))
			return error_set(err, ERROR_INVALID,
				"%s: the index names a file outside of its folder: '%.*s'", path,
				(int)(pairs[i].value.len < 160 ? pairs[i].value.len : 160),
				pairs[i].value.data);
		buffer_add_span(&index->files, span_of(&pairs[i].value, sizeof(pairs[i].value)));
	}
	return buffer_check(&index->files, "the table of files", err);
}

static int shard_index_order_pairs(const void *left, const void *right)
{
	return span_compare(((const struct json_scan_pair *)left)->key,
		((const struct json_scan_pair *)right)->key);
}

static const struct span *find_file(const struct shard_index *index, const struct span *file)
{
	const struct span *const files = (const struct span *)index->files.data;
	return files == NULL ? NULL
			     : bsearch(file, files, shard_index_file_count(index), sizeof(*file),
				       shard_index_order_files);
}

static void unite_files(struct shard_index *index)
{
	struct span *const files = (struct span *)index->files.data;
	const size_t count = shard_index_file_count(index);
	size_t kept = 0;
	if (count > 0)
		qsort(files, count, sizeof(files[0]), shard_index_order_files);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !span_equal(files[kept - 1], files[i]))
			files[kept++] = files[i];
	index->files.len = kept * sizeof(files[0]);
}

static int shard_index_order_files(const void *left, const void *right)
{
	return span_compare(*(const struct span *)left, *(const struct span *)right);
}
