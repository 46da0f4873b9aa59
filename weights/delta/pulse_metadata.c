/* Two files of JSON, read with two tables of members. Scans put texts into a target; the judgement
 * comes afterwards, when all members are known. */
#include "weights/delta/pulse_metadata.h"

#include <string.h>

#include "base/encode.h"

enum { FILE_LEAST_BYTES = 5 /* JSON bytes of a pair of empty texts */, SHOWN_BYTES = 60 };

/* The results of a scan. */
struct target {
	struct pulse_metadata *metadata;
	struct span type;
	struct span hash;
	struct span format;
};

static int scan_text(struct target *target, struct span json, const struct json_scan_object *object,
	const char *path, struct error *err);
static bool scan_whole(
	struct json_scan *scan, const struct json_scan_object *object, struct target *target);
static bool scan_window(struct json_scan *scan, void *state);
static bool scan_files(struct json_scan *scan, void *state);
static bool scan_type(struct json_scan *scan, void *state);
static bool scan_prev(struct json_scan *scan, void *state);
static bool scan_hash(struct json_scan *scan, void *state);
static int judge(struct pulse_metadata *metadata, const struct target *target, const char *path,
	struct error *err);
static bool scan_format(struct json_scan *scan, void *state);
static int find_codec(
	enum pulse_codec *out, struct span format, const char *path, struct error *err);

static const struct json_scan_member checkpoint_members[] = {
	{"window", scan_window, true},
	{"file_manifest", scan_files, true},
	{"checkpoint_type", scan_type, true},
	{"prev_window", scan_prev, false},
	{"weights_hash", scan_hash, false},
};

static const struct json_scan_object checkpoint_object = {checkpoint_members,
	sizeof(checkpoint_members) / sizeof(checkpoint_members[0]), "a member is missing"};

static const struct json_scan_member delta_members[] = {{"format", scan_format, true}};

static const struct json_scan_object delta_object = {
	delta_members, sizeof(delta_members) / sizeof(delta_members[0]), "a member is missing"};

int pulse_metadata_parse(
	struct pulse_metadata *out, struct span json, const char *path, struct error *err)
{
	*out = (struct pulse_metadata){0};
	struct target target = {.metadata = out};
	if (scan_text(&target, json, &checkpoint_object, path, err) != 0)
		return -1;
	return judge(out, &target, path, err);
}

void pulse_metadata_release(struct pulse_metadata *metadata)
{
	buffer_release(&metadata->strings);
	buffer_release(&metadata->files);
}

size_t pulse_metadata_file_count(const struct pulse_metadata *metadata)
{
	return metadata->files.len / sizeof(struct json_scan_pair);
}

const struct json_scan_pair *pulse_metadata_file(
	const struct pulse_metadata *metadata, size_t index)
{
	ASSERT(index < pulse_metadata_file_count(metadata));
	return (const struct json_scan_pair *)metadata->files.data + index;
}

int pulse_metadata_prove(const struct pulse_metadata *metadata, struct span name,
	const uint8_t sha256[SHA256_BYTES], const char *path, struct error *err)
{
	uint8_t wanted[SHA256_BYTES];
	size_t i = 0;
	while (i < pulse_metadata_file_count(metadata) &&
		!span_equal(pulse_metadata_file(metadata, i)->key, name))
		i++;
	if (i == pulse_metadata_file_count(metadata) ||
		!decode_hex(pulse_metadata_file(metadata, i)->value, wanted, sizeof(wanted)))
		return error_set(
			err, ERROR_INVALID, "the file_manifest has no SHA-256 of '%s'", path);
	if (memcmp(wanted, sha256, sizeof(wanted)) != 0)
		return error_set(err, ERROR_DIGEST_MISMATCH,
			"'%s' does not have the SHA-256 that the file_manifest says", path);
	return 0;
}

int pulse_codec_parse(enum pulse_codec *out, struct span json, const char *path, struct error *err)
{
	struct pulse_metadata strings = {0};
	struct target target = {.metadata = &strings};
	int result = scan_text(&target, json, &delta_object, path, err);
	if (result == 0)
		result = find_codec(out, target.format, path, err);
	pulse_metadata_release(&strings);
	return result;
}

static int scan_text(struct target *target, struct span json, const struct json_scan_object *object,
	const char *path, struct error *err)
{
	struct pulse_metadata *const metadata = target->metadata;
	if (json.len > PULSE_METADATA_MAX_BYTES)
		return error_set(err, ERROR_TOO_LARGE, "%s has %zu bytes, over the limit of %d",
			path, json.len, PULSE_METADATA_MAX_BYTES);
	if (!span_is_utf8(json))
		return error_set(err, ERROR_INVALID, "%s is not UTF-8", path);
	buffer_init(&metadata->strings, json.len + 1);
	buffer_init(&metadata->files,
		(json.len / FILE_LEAST_BYTES + 1) * sizeof(struct json_scan_pair));
	if (buffer_reserve(&metadata->strings, json.len) == NULL)
		return error_set(
			err, ERROR_NO_MEMORY, "no memory for the %zu bytes of %s", json.len, path);
	struct json_scan scan;
	json_scan_init(&scan, json);
	if (!scan_whole(&scan, object, target))
		return error_set(err, ERROR_INVALID, "%s is malformed at byte %zu: %s", path,
			json_scan_offset(&scan), scan.fault);
	return buffer_check(&metadata->files, "the file_manifest", err);
}

static bool scan_whole(
	struct json_scan *scan, const struct json_scan_object *object, struct target *target)
{
	return json_scan_members(scan, object, &target->metadata->strings, target) &&
		(json_scan_done(scan) || json_scan_fail(scan, "text behind the object"));
}

static bool scan_window(struct json_scan *scan, void *state)
{
	const struct target *const target = state;
	return json_scan_u64(scan, &target->metadata->window);
}

static bool scan_files(struct json_scan *scan, void *state)
{
	const struct target *const target = state;
	return json_scan_pairs(scan, &target->metadata->strings, &target->metadata->files);
}

static bool scan_type(struct json_scan *scan, void *state)
{
	struct target *const target = state;
	return json_scan_string(scan, &target->metadata->strings, &target->type);
}

static bool scan_prev(struct json_scan *scan, void *state)
{
	const struct target *const target = state;
	if (json_scan_accept_null(scan))
		return true;
	target->metadata->has_prev = true;
	return json_scan_u64(scan, &target->metadata->prev_window);
}

static bool scan_hash(struct json_scan *scan, void *state)
{
	struct target *const target = state;
	return json_scan_accept_null(scan) ||
		json_scan_string(scan, &target->metadata->strings, &target->hash);
}

static int judge(struct pulse_metadata *metadata, const struct target *target, const char *path,
	struct error *err)
{
	metadata->is_delta = span_equal_text(target->type, "DELTA");
	metadata->has_hash = target->hash.data != NULL;
	if (!metadata->is_delta && !span_equal_text(target->type, "FULL"))
		return error_set(err, ERROR_UNSUPPORTED,
			"%s: the checkpoint_type must be FULL or DELTA", path);
	if (metadata->has_hash && !decode_hex(target->hash, metadata->hash, SHA256_BYTES))
		return error_set(err, ERROR_UNSUPPORTED,
			"%s: the weights_hash is not the 64 hex digits of a SHA-256", path);
	if (metadata->is_delta && !(metadata->has_prev && metadata->has_hash))
		return error_set(err, ERROR_INVALID,
			"%s: the delta lacks prev_window or weights_hash", path);
	if (metadata->has_prev && metadata->prev_window >= metadata->window)
		return error_set(
			err, ERROR_INVALID, "%s: the prev_window is not before the window", path);
	ASSERT(!metadata->is_delta || (metadata->has_prev && metadata->has_hash));
	return 0;
}

static bool scan_format(struct json_scan *scan, void *state)
{
	struct target *const target = state;
	return json_scan_string(scan, &target->metadata->strings, &target->format);
}

static int find_codec(
	enum pulse_codec *out, struct span format, const char *path, struct error *err)
{
	static const struct {
		const char *name;
		enum pulse_codec codec;
	} codecs[] = {{"sparse_codec_v2", PULSE_CODEC_2}, {"sparse_codec_v3", PULSE_CODEC_3},
		{"sparse_codec_v3.1", PULSE_CODEC_3_1}};
	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
		if (span_equal_text(format, codecs[i].name)) {
			*out = codecs[i].codec;
			return 0;
		}
	}
	return error_set(err, ERROR_UNSUPPORTED,
		"%s: the delta's format '%.*s' is not read;"
		" sparse_codec_v2, sparse_codec_v3 and sparse_codec_v3.1 are",
		path, (int)(format.len < SHOWN_BYTES ? format.len : SHOWN_BYTES),
		(const char *)format.data);
}
