/* The manifest is read from front to back. Each tensor's record is checked when it ends and leaves
 * two pairs: its file and its checksum. The texts lie in one buffer that is reserved before the
 * parse, so the pairs can point into it. */
#include "weights/delta/delta_manifest.h"

#include <stdlib.h>

#include "base/memory.h"

#define MANIFEST_MAX_BYTES (UINT64_C(1) << 30)
enum { RECORD_LEAST_BYTES = 40 }; /* JSON bytes of a record, with the names of its members */

struct delta_manifest {
	uint64_t version;
	uint64_t base_version;
	struct buffer strings;
	struct buffer files;     /* struct json_scan_pair */
	struct buffer checksums; /* the same */
};

/* The members of one tensor that are used. */
struct record {
	struct span name;
	struct span payload_file;
	struct span payload_key;
	struct span checksum;
	struct span algorithm; /* {NULL,0}: xxh3-128 */
};

static const struct {
	const char *name;
	size_t offset;
	bool is_needed;
} members[] = {
	{"name", offsetof(struct record, name), true},
	{"payload_file", offsetof(struct record, payload_file), true},
	{"payload_key", offsetof(struct record, payload_key), true},
	{"checksum", offsetof(struct record, checksum), true},
	{"checksum_algorithm", offsetof(struct record, algorithm), false},
};
enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

static int parse(
	struct delta_manifest *manifest, struct span json, const char *path, struct error *err);
static bool scan_manifest(struct json_scan *scan, struct delta_manifest *manifest);
static bool scan_version(struct json_scan *scan, void *manifest);
static bool scan_base_version(struct json_scan *scan, void *manifest);
static bool scan_tensors(struct json_scan *scan, void *manifest);
static bool scan_record(struct json_scan *scan, struct delta_manifest *manifest);
static bool scan_member(struct json_scan *scan, struct buffer *strings, struct record *record);
static struct span *member_of(struct record *record, size_t number);
static bool check_record(struct json_scan *scan, struct record *record);

struct delta_manifest *delta_manifest_parse(struct span json, const char *path, struct error *err)
{
	ASSERT(path != NULL);
	struct delta_manifest *const manifest = memory_new(sizeof(*manifest));
	if (parse(manifest, json, path, err) == 0)
		return manifest;
	delta_manifest_free(manifest);
	return NULL;
}

void delta_manifest_free(struct delta_manifest *manifest)
{
	if (manifest == NULL)
		return;
	buffer_release(&manifest->strings);
	buffer_release(&manifest->files);
	buffer_release(&manifest->checksums);
	free(manifest);
}

uint64_t delta_manifest_version(const struct delta_manifest *manifest)
{
	return manifest->version;
}

uint64_t delta_manifest_base_version(const struct delta_manifest *manifest)
{
	return manifest->base_version;
}

size_t delta_manifest_count(const struct delta_manifest *manifest)
{
	return manifest->files.len / sizeof(struct json_scan_pair);
}

const struct json_scan_pair *delta_manifest_files(const struct delta_manifest *manifest)
{
	return (const struct json_scan_pair *)manifest->files.data;
}

const struct json_scan_pair *delta_manifest_checksums(const struct delta_manifest *manifest)
{
	return (const struct json_scan_pair *)manifest->checksums.data;
}

static int parse(
	struct delta_manifest *manifest, struct span json, const char *path, struct error *err)
{
	if (json.len > MANIFEST_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE,
			"%s: the manifest has %zu bytes, over the limit", path, json.len);
	if (!span_is_utf8(json))
		return error_set(err, ERROR_INVALID, "%s: the manifest is not UTF-8", path);
	const size_t most = json.len / RECORD_LEAST_BYTES + 1;
	buffer_init(&manifest->strings, json.len + 1);
	buffer_init(&manifest->files, most * sizeof(struct json_scan_pair));
	buffer_init(&manifest->checksums, most * sizeof(struct json_scan_pair));
	if (buffer_reserve(&manifest->strings, json.len) == NULL)
		return error_set(err, ERROR_NO_MEMORY, "%s: no memory for a manifest of %zu bytes",
			path, json.len);
	struct json_scan scan;
	json_scan_init(&scan, json);
	if (!scan_manifest(&scan, manifest))
		return error_set(err, ERROR_INVALID,
			"%s: the manifest is malformed at byte %zu: %s", path,
			json_scan_offset(&scan), scan.fault);
	return buffer_check(&manifest->files, "the manifest", err) != 0
		? -1
		: buffer_check(&manifest->checksums, "the manifest", err);
}

static bool scan_manifest(struct json_scan *scan, struct delta_manifest *manifest)
{
	static const struct json_scan_member parts[] = {
		{"version", scan_version, true},
		{"base_version", scan_base_version, true},
		{"tensors", scan_tensors, true},
	};
	const struct json_scan_object object = {parts, sizeof(parts) / sizeof(parts[0]),
		"version, base_version or tensors is missing"};
	return json_scan_members(scan, &object, &manifest->strings, manifest) &&
		(json_scan_done(scan) || json_scan_fail(scan, "text behind the object"));
}

static bool scan_version(struct json_scan *scan, void *manifest)
{
	return json_scan_u64(scan, &((struct delta_manifest *)manifest)->version);
}

static bool scan_base_version(struct json_scan *scan, void *manifest)
{
	return json_scan_u64(scan, &((struct delta_manifest *)manifest)->base_version);
}

static bool scan_tensors(struct json_scan *scan, void *manifest)
{
	bool first = true;
	if (!json_scan_expect(scan, '['))
		return false;
	while (json_scan_next(scan, ']', &first))
		if (!scan_record(scan, manifest))
			return false;
	return scan->fault == NULL;
}

static bool scan_record(struct json_scan *scan, struct delta_manifest *manifest)
{
	struct record record = {0};
	bool first = true;
	if (!json_scan_expect(scan, '{'))
		return false;
	while (json_scan_next(scan, '}', &first))
		if (!scan_member(scan, &manifest->strings, &record))
			return false;
	if (scan->fault != NULL || !check_record(scan, &record))
		return false;
	const struct json_scan_pair file = {.key = record.name, .value = record.payload_file};
	const struct json_scan_pair checksum = {.key = record.name, .value = record.checksum};
	buffer_add(&manifest->files, &file, sizeof(file));
	buffer_add(&manifest->checksums, &checksum, sizeof(checksum));
	return true;
}

static bool scan_member(struct json_scan *scan, struct buffer *strings, struct record *record)
{
	struct span name;
	if (!json_scan_name(scan, strings, &name))
		return false;
	for (size_t i = 0; i < MEMBER_COUNT; i++) {
		if (!span_equal_text(name, members[i].name))
			continue;
		if (member_of(record, i)->data != NULL)
			return json_scan_fail(scan, "a member is given twice");
		return json_scan_string(scan, strings, member_of(record, i));
	}
	return json_scan_skip(scan);
}

static struct span *member_of(struct record *record, size_t number)
{
	return (struct span *)((char *)record + members[number].offset);
}

static bool check_record(struct json_scan *scan, struct record *record)
{
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (members[i].is_needed && member_of(record, i)->data == NULL)
			return json_scan_fail(scan, "a tensor lacks a member");
	if (record->algorithm.data != NULL && !span_equal_text(record->algorithm, "xxh3-128"))
		return json_scan_fail(scan, "the checksum_algorithm is not xxh3-128");
	return span_equal(record->payload_key, record->name) ||
		json_scan_fail(scan, "the payload_key is not the tensor's name");
}
