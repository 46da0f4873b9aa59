/* Finds out what kind of delta is at a path, maps its files and reads its metadata. The entries are
 * then listed by the format's own file: delta_reader_trl.c, delta_reader_named.c or
 * delta_reader_pulse.c. A checkpoint that is not a delta takes the same way and ends in
 * open_full. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "weights/delta/delta_reader_internal.h"
#include "weights/model/mapped_file.h"
#include "weights/model/relative_path.h"

enum { SHOWN_NAME_BYTES = 160, SHARDS_MAX = 100000 };

static const char single_name[] = "delta.safetensors";
static const char trl_index_name[] = "delta.safetensors.index.json";
static const char index_name[] = "model.safetensors.index.json";
static const char manifest_name[] = "manifest.json";
static const char checkpoint_name[] = "model.safetensors";

static int shown_len(struct span name);
static struct delta_reader *reader_new(const char *path);
static int open_folder(struct delta_reader *reader, const char *folder, struct error *err);
static int open_single(struct delta_reader *reader, const char *path, struct error *err);
static int parse_single(struct delta_reader *reader, const char *path, struct error *err);
static int open_file(struct delta_reader *reader, const char *path, struct error *err);
static int parse_file(
	struct delta_reader *reader, struct span bytes, const char *path, struct error *err);
static void pairs_from_header(const struct safetensors *header, struct buffer *out);
static const struct json_scan_pair *pair_table(const struct delta_reader *reader);
static size_t pair_count(const struct delta_reader *reader);
static int open_full(struct delta_reader *reader, const char *path, struct error *err);
static int read_single(struct delta_reader *reader, const char *path, struct error *err);
static int list_entries(struct delta_reader *reader, struct error *err);
static int open_with(
	struct delta_reader *reader, const char *folder, const char *name, struct error *err);
static int parse_index(struct delta_reader *reader, const char *path, struct error *err);
static void pairs_from_index(const struct shard_index *index, struct buffer *out);
static int open_indexed(
	struct delta_reader *reader, const char *folder, const char *path, struct error *err);
static int open_shards(struct delta_reader *reader, const char *folder, struct error *err);
static int check_shard(const struct delta_reader *reader, const struct delta_reader_file *file,
	const char *path, struct error *err);
static int check_index(const struct delta_reader *reader, struct error *err);
static int open_manifest(struct delta_reader *reader, const char *folder, struct error *err);
static int read_manifest(
	struct delta_reader *reader, const char *folder, const char *path, struct error *err);

int delta_reader_refuse(struct span name, const char *what, struct error *err)
{
	return error_set(err, ERROR_INVALID, "the delta's tensor '%.*s' %s", shown_len(name),
		name.data, what);
}

bool delta_reader_has_file(const char *folder, const char *name)
{
	char *const path = relative_path_join(folder, span_text(name));
	const bool found = file_exists(path);
	free(path);
	return found;
}

struct delta_reader *delta_reader_open(const char *path, struct error *err)
{
	struct stat facts;
	ASSERT(path != NULL);
	if (stat(path, &facts) != 0) {
		error_set_errno(err, "cannot open '%s'", path);
		return NULL;
	}
	struct delta_reader *const reader = reader_new(path);
	reader->is_folder = S_ISDIR(facts.st_mode);
	if ((reader->is_folder ? open_folder(reader, path, err) : open_single(reader, path, err)) ==
		0)
		return reader;
	delta_reader_close(reader);
	return NULL;
}

struct delta_reader *delta_reader_from_bytes(struct span bytes, const char *path, struct error *err)
{
	struct delta_reader *const reader = reader_new(path);
	reader->borrowed = true;
	reader->files = memory_new_array(1, sizeof(reader->files[0]));
	int result = parse_file(reader, bytes, path, err);
	if (result == 0) {
		pairs_from_header(reader->files[0].header, &reader->pairs);
		result = read_single(reader, path, err);
	}
	if (result == 0)
		return reader;
	delta_reader_close(reader);
	return NULL;
}

int delta_reader_blame(const struct delta_reader *reader, struct error *err)
{
	const struct delta_metadata *const metadata = &reader->metadata;
	if (strstr(err->text, reader->path) != NULL)
		return -1;
	if (metadata->has_step && metadata->step > 0)
		return error_wrap(
			err, "the delta '%s' (step %" PRIu64 ")", reader->path, metadata->step);
	return error_wrap(err, "the delta '%s'", reader->path);
}

void delta_reader_close(struct delta_reader *reader)
{
	if (reader == NULL)
		return;
	for (size_t i = 0; i < reader->file_count; i++) {
		safetensors_free(reader->files[i].header);
		name_list_release(&reader->files[i].whole);
		if (!reader->borrowed)
			mapped_file_close(reader->files[i].bytes);
	}
	free(reader->path);
	delta_metadata_release(&reader->metadata);
	shard_index_free(reader->index);
	delta_manifest_free(reader->manifest);
	pulse_payload_free(reader->pulse);
	mapped_file_close(reader->pulse_bytes);
	free(reader->folder);
	mapped_file_close(reader->index_bytes);
	checkpoint_close(reader->checkpoint);
	buffer_release(&reader->pairs);
	buffer_release(&reader->parts);
	buffer_release(&reader->entries);
	free(reader->files);
	free(reader);
}

const struct delta_metadata *delta_reader_metadata(const struct delta_reader *reader)
{
	return &reader->metadata;
}

bool delta_reader_is_folder(const struct delta_reader *reader)
{
	return reader->is_folder;
}

enum delta_format delta_reader_format(const struct delta_reader *reader)
{
	static const enum delta_format formats[] = {
		[DELTA_ENCODING_NONE] = DELTA_TRL_V1,
		[DELTA_ENCODING_RAW] = DELTA_TRL_RAW,
		[DELTA_ENCODING_GAP] = DELTA_TRL_GAP,
		[DELTA_ENCODING_ULP_CLASS] = DELTA_ULP_CLASS,
		[DELTA_ENCODING_XOR] = DELTA_SLIME_XOR,
		[DELTA_ENCODING_OVERWRITE] = DELTA_SLIME_OVERWRITE,
		[DELTA_ENCODING_FULL] = DELTA_FULL,
		[DELTA_ENCODING_PULSE] = DELTA_PULSE,
	};
	if (reader->manifest != NULL)
		return DELTA_SKYRL_XOR;
	return reader->is_v1 ? DELTA_TRL_V1 : formats[reader->metadata.encoding];
}

uint64_t delta_reader_bytes(const struct delta_reader *reader)
{
	return reader->bytes;
}

const struct checkpoint *delta_reader_checkpoint(const struct delta_reader *reader)
{
	return reader->checkpoint;
}

size_t delta_reader_file_count(const struct delta_reader *reader)
{
	return reader->file_count;
}

struct span delta_reader_file_name(const struct delta_reader *reader, size_t file)
{
	ASSERT(file < reader->file_count);
	return reader->files[file].name.data != NULL ? reader->files[file].name
						     : span_text(single_name);
}

size_t delta_reader_count(const struct delta_reader *reader)
{
	return reader->entries.len / sizeof(struct delta_entry);
}

const struct delta_entry *delta_reader_entry(const struct delta_reader *reader, size_t index)
{
	ASSERT(index < delta_reader_count(reader));
	return (const struct delta_entry *)reader->entries.data + index;
}

static int shown_len(struct span name)
{
	return (int)(name.len < SHOWN_NAME_BYTES ? name.len : SHOWN_NAME_BYTES);
}

static struct delta_reader *reader_new(const char *path)
{
	struct delta_reader *const reader = memory_new(sizeof(*reader));
	reader->path = memory_copy_text(path);
	buffer_init(&reader->pairs, DELTA_READER_TABLE_BYTES);
	buffer_init(&reader->parts, DELTA_READER_TABLE_BYTES);
	buffer_init(&reader->entries, DELTA_READER_TABLE_BYTES);
	return reader;
}

static int open_folder(struct delta_reader *reader, const char *folder, struct error *err)
{
	const bool single = delta_reader_has_file(folder, single_name);
	const bool indexed = delta_reader_has_file(folder, trl_index_name);
	if (single && indexed)
		return error_set(err, ERROR_INVALID, "'%s' has both %s and %s", folder, single_name,
			trl_index_name);
	if (single) {
		char *const path = relative_path_join(folder, span_text(single_name));
		const int result = open_single(reader, path, err);
		free(path);
		return result;
	}
	if (indexed || delta_reader_has_file(folder, index_name))
		return open_with(reader, folder, indexed ? trl_index_name : index_name, err);
	if (delta_reader_has_file(folder, manifest_name) &&
		!delta_reader_has_file(folder, checkpoint_name))
		return open_manifest(reader, folder, err);
	return delta_reader_is_pulse(folder) ? delta_reader_open_pulse(reader, folder, err)
					     : open_full(reader, folder, err);
}

static int open_single(struct delta_reader *reader, const char *path, struct error *err)
{
	if (parse_single(reader, path, err) != 0)
		return -1;
	if (!reader->is_folder && !delta_metadata_is_delta(pair_table(reader), pair_count(reader)))
		return open_full(reader, path, err);
	return read_single(reader, path, err);
}

static int parse_single(struct delta_reader *reader, const char *path, struct error *err)
{
	reader->files = memory_new_array(1, sizeof(reader->files[0]));
	if (open_file(reader, path, err) != 0)
		return -1;
	pairs_from_header(reader->files[0].header, &reader->pairs);
	return buffer_check(&reader->pairs, "the delta's metadata", err);
}

static int open_file(struct delta_reader *reader, const char *path, struct error *err)
{
	struct span bytes = {0};
	return mapped_file_open(path, &bytes, err) != 0 ? -1 : parse_file(reader, bytes, path, err);
}

/* Takes over `bytes`, which are unmapped when the reader closes. */
static int parse_file(
	struct delta_reader *reader, struct span bytes, const char *path, struct error *err)
{
	ASSERT(reader->files != NULL);
	struct delta_reader_file *const file = &reader->files[reader->file_count++];
	struct span header;
	file->bytes = bytes;
	reader->bytes += bytes.len;
	file->header = mapped_file_safetensors(bytes, path, &header, &file->data, err);
	return file->header != NULL ? 0 : -1;
}

static void pairs_from_header(const struct safetensors *header, struct buffer *out)
{
	buffer_reset(out);
	for (size_t i = 0; i < safetensors_metadata_count(header); i++) {
		const struct safetensors_metadata *const item = safetensors_metadata(header, i);
		const struct json_scan_pair pair = {.key = item->key, .value = item->value};
		buffer_add(out, &pair, sizeof(pair));
	}
}

static const struct json_scan_pair *pair_table(const struct delta_reader *reader)
{
	return (const struct json_scan_pair *)reader->pairs.data;
}

static size_t pair_count(const struct delta_reader *reader)
{
	return reader->pairs.len / sizeof(struct json_scan_pair);
}

static int open_full(struct delta_reader *reader, const char *path, struct error *err)
{
	reader->metadata = (struct delta_metadata){.encoding = DELTA_ENCODING_FULL};
	reader->checkpoint = checkpoint_open(path, err);
	if (reader->checkpoint == NULL)
		return -1;
	reader->bytes = checkpoint_bytes(reader->checkpoint);
	delta_reader_list_full(reader);
	return buffer_check(&reader->entries, "the table of the delta's entries", err);
}

/* Reads the kind first, so that a file that is not a delta is refused for that reason and not for
 * its first tensor. */
static int read_single(struct delta_reader *reader, const char *path, struct error *err)
{
	if (delta_metadata_parse(
		    &reader->metadata, pair_table(reader), pair_count(reader), path, err) != 0)
		return -1;
	if (reader->metadata.encoding == DELTA_ENCODING_XOR ||
		reader->metadata.encoding == DELTA_ENCODING_OVERWRITE)
		return error_set(err, ERROR_INVALID,
			"%s: a delta of this encoding must be a folder with an index", path);
	return list_entries(reader, err);
}

static int list_entries(struct delta_reader *reader, struct error *err)
{
	const bool is_trl = reader->metadata.encoding <= DELTA_ENCODING_GAP;
	return is_trl ? delta_reader_list_trl(reader, err) : delta_reader_list_named(reader, err);
}

static int open_with(
	struct delta_reader *reader, const char *folder, const char *name, struct error *err)
{
	char *const path = relative_path_join(folder, span_text(name));
	int result = parse_index(reader, path, err);
	if (result == 0 && name == index_name &&
		!delta_metadata_is_delta(pair_table(reader), pair_count(reader)))
		result = open_full(reader, folder, err);
	else if (result == 0)
		result = open_indexed(reader, folder, path, err);
	free(path);
	return result;
}

static int parse_index(struct delta_reader *reader, const char *path, struct error *err)
{
	if (mapped_file_open(path, &reader->index_bytes, err) != 0)
		return -1;
	reader->index = shard_index_parse(reader->index_bytes, path, err);
	if (reader->index == NULL)
		return -1;
	pairs_from_index(reader->index, &reader->pairs);
	return buffer_check(&reader->pairs, "the delta's metadata", err);
}

static void pairs_from_index(const struct shard_index *index, struct buffer *out)
{
	buffer_reset(out);
	for (size_t i = 0; i < shard_index_metadata_count(index); i++)
		buffer_add(out, shard_index_metadata(index, i), sizeof(struct json_scan_pair));
}

/* The index has been parsed. */
static int open_indexed(
	struct delta_reader *reader, const char *folder, const char *path, struct error *err)
{
	reader->bytes += reader->index_bytes.len;
	if (delta_metadata_parse(
		    &reader->metadata, pair_table(reader), pair_count(reader), path, err) != 0)
		return -1;
	return open_shards(reader, folder, err) != 0 || check_index(reader, err) != 0
		? -1
		: list_entries(reader, err);
}

static int open_shards(struct delta_reader *reader, const char *folder, struct error *err)
{
	const size_t count = shard_index_file_count(reader->index);
	if (count > SHARDS_MAX)
		return error_set(err, ERROR_TOO_LARGE, "the delta '%s' has over %d shards", folder,
			SHARDS_MAX);
	reader->files = memory_new_array(count > 0 ? count : 1, sizeof(reader->files[0]));
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++) {
		const struct span name = shard_index_file(reader->index, i);
		char *const path = relative_path_join(folder, name);
		if (!file_exists(path))
			result = error_set(err, ERROR_INVALID,
				"the delta's index names the file '%s', which is missing", path);
		if (result == 0)
			result = open_file(reader, path, err);
		reader->files[i].name = name;
		if (result == 0)
			result = check_shard(reader, &reader->files[i], path, err);
		free(path);
	}
	return result;
}

/* The shards must belong to the delta that the index describes: the same kind, encoding, base and
 * result. Slime's shards have only checksums. */
static int check_shard(const struct delta_reader *reader, const struct delta_reader_file *file,
	const char *path, struct error *err)
{
	static const char *const keys[] = {"format", "version", "encoding", "delta_encoding",
		"compression_format", "base_digest", "result_digest"};
	const bool is_slime = reader->metadata.encoding == DELTA_ENCODING_XOR ||
		reader->metadata.encoding == DELTA_ENCODING_OVERWRITE;
	for (size_t i = 0; !is_slime && i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct span ours = safetensors_metadata_find(file->header, keys[i]);
		const struct span whole =
			delta_metadata_find(pair_table(reader), pair_count(reader), keys[i]);
		if ((ours.data == NULL) != (whole.data == NULL) || !span_equal(ours, whole))
			return error_set(err, ERROR_INVALID,
				"%s: the delta's shard and index differ in %s", path, keys[i]);
	}
	return 0;
}

/* Every tensor of the index must be in its shard. Otherwise a shard that lost tensors would look
 * like one that changed less. */
static int check_index(const struct delta_reader *reader, struct error *err)
{
	size_t tensors = 0;
	for (size_t i = 0; i < reader->file_count; i++)
		tensors += safetensors_count(reader->files[i].header);
	for (size_t i = 0; i < shard_index_count(reader->index); i++) {
		const struct json_scan_pair *const pair = shard_index_pair(reader->index, i);
		const struct delta_reader_file *const file =
			&reader->files[shard_index_find_file(reader->index, pair->value)];
		if (safetensors_find(file->header, pair->key) == NULL)
			return delta_reader_refuse(
				pair->key, "is placed by the index in a shard that lacks it", err);
	}
	if (tensors != shard_index_count(reader->index))
		return error_set(err, ERROR_INVALID,
			"the delta's shards have %zu tensors, and its index has %zu", tensors,
			shard_index_count(reader->index));
	return 0;
}

static int open_manifest(struct delta_reader *reader, const char *folder, struct error *err)
{
	char *const path = relative_path_join(folder, span_text(manifest_name));
	const int result = read_manifest(reader, folder, path, err);
	free(path);
	return result;
}

/* SkyRL's tensors are those of slime. The manifest has the facts that slime keeps in its index and
 * shards. */
static int read_manifest(
	struct delta_reader *reader, const char *folder, const char *path, struct error *err)
{
	if (mapped_file_open(path, &reader->index_bytes, err) != 0)
		return -1;
	reader->bytes += reader->index_bytes.len;
	reader->manifest = delta_manifest_parse(reader->index_bytes, path, err);
	if (reader->manifest == NULL)
		return -1;
	reader->metadata = (struct delta_metadata){
		.encoding = DELTA_ENCODING_XOR,
		.checksum = DELTA_XXH3_128,
		.has_step = true,
		.step = delta_manifest_version(reader->manifest),
		.has_base_step = true,
		.base_step = delta_manifest_base_version(reader->manifest),
	};
	reader->index = shard_index_of(delta_manifest_files(reader->manifest),
		delta_manifest_count(reader->manifest), path, err);
	if (reader->index == NULL)
		return -1;
	if (open_shards(reader, folder, err) != 0 || check_index(reader, err) != 0)
		return -1;
	return list_entries(reader, err);
}
