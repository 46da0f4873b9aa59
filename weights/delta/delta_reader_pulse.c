/* PULSE's deltas: a folder with delta_sparse.bin.zst and two files of JSON, which grail's uploader
 * gzips. metadata.json has the SHA-256 of the others, which is proven before they are read. */
#include <stdlib.h>
#include <string.h>

#include "base/format/gunzip.h"
#include "base/memory.h"
#include "weights/delta/delta_reader_internal.h"
#include "weights/model/mapped_file.h"
#include "weights/model/relative_path.h"

static const char payload_name[] = "delta_sparse.bin.zst";
static const char checkpoint_name[] = "metadata.json";
static const char checkpoint_packed[] = "metadata.json.gz";
static const char delta_name[] = "delta_metadata.json";
static const char delta_packed[] = "delta_metadata.json.gz";

static const char *const older_names[] = {
	"delta_sparse.safetensors", "delta_sparse.safetensors.zst"};
enum { OLDER_NAMES = sizeof(older_names) / sizeof(older_names[0]) };

static bool is_older(const char *folder);
static int open_files(struct delta_reader *reader, const char *folder,
	struct pulse_metadata *metadata, struct buffer *json, struct error *err);
static int read_json(const char *folder, const char *name, const char *packed_name,
	struct buffer *out, struct error *err);
static int read_file(const char *path, bool is_packed, struct buffer *out, struct error *err);
static int take_metadata(struct delta_reader *reader, const struct pulse_metadata *metadata,
	const char *folder, struct error *err);
static int prove(const struct pulse_metadata *metadata, const char *name, struct span bytes,
	struct error *err);
static int open_payload(struct delta_reader *reader, const char *folder,
	const struct pulse_metadata *metadata, enum pulse_codec codec, struct error *err);
static int list_entries(struct delta_reader *reader, struct error *err);

bool delta_reader_is_pulse(const char *folder)
{
	return delta_reader_has_file(folder, payload_name) || is_older(folder);
}

int delta_reader_open_pulse(struct delta_reader *reader, const char *folder, struct error *err)
{
	struct pulse_metadata metadata = {0};
	struct buffer json;
	if (is_older(folder))
		return error_set(err, ERROR_UNSUPPORTED,
			"'%s' is a PULSE delta in safetensors (sparse_coo), which is not read, because"
			" its values may be differences; sparse_codec_v2, sparse_codec_v3 and"
			" sparse_codec_v3.1 are read",
			folder);
	reader->folder = memory_copy_text(folder);
	buffer_init(&json, PULSE_METADATA_MAX_BYTES);
	int result = open_files(reader, folder, &metadata, &json, err);
	pulse_metadata_release(&metadata);
	buffer_release(&json);
	if (result == 0)
		return list_entries(reader, err);
	return -1;
}

int delta_reader_unpack_pulse(const struct delta_reader *reader, struct error *err)
{
	struct delta_entry *const entries = (struct delta_entry *)reader->entries.data;
	ASSERT(reader->pulse != NULL && reader->folder != NULL);
	if (pulse_payload_unpack(reader->pulse, reader->folder, err) != 0)
		return -1;
	for (size_t i = 0; i < delta_reader_count(reader); i++) {
		entries[i].index = pulse_payload_index(reader->pulse, (size_t)entries[i].at);
		entries[i].values = pulse_payload_values(reader->pulse, (size_t)entries[i].at);
	}
	return 0;
}

static bool is_older(const char *folder)
{
	for (size_t i = 0; i < OLDER_NAMES; i++)
		if (delta_reader_has_file(folder, older_names[i]))
			return true;
	return false;
}

static int open_files(struct delta_reader *reader, const char *folder,
	struct pulse_metadata *metadata, struct buffer *json, struct error *err)
{
	enum pulse_codec codec;
	if (read_json(folder, checkpoint_name, checkpoint_packed, json, err) != 0)
		return -1;
	reader->bytes += json->len;
	if (pulse_metadata_parse(metadata, buffer_span(json), checkpoint_name, err) != 0 ||
		take_metadata(reader, metadata, folder, err) != 0)
		return -1;
	buffer_reset(json);
	if (read_json(folder, delta_name, delta_packed, json, err) != 0 ||
		prove(metadata, delta_name, buffer_span(json), err) != 0 ||
		pulse_codec_parse(&codec, buffer_span(json), delta_name, err) != 0)
		return -1;
	reader->bytes += json->len;
	return open_payload(reader, folder, metadata, codec, err);
}

/* Reads a file of JSON, or the packed file with ".gz" behind its name. */
static int read_json(const char *folder, const char *name, const char *packed_name,
	struct buffer *out, struct error *err)
{
	char *const path = relative_path_join(folder, span_text(name));
	char *const packed = relative_path_join(folder, span_text(packed_name));
	const bool is_packed = !file_exists(path) && file_exists(packed);
	const int result = read_file(is_packed ? packed : path, is_packed, out, err);
	free(packed);
	free(path);
	return result;
}

static int read_file(const char *path, bool is_packed, struct buffer *out, struct error *err)
{
	struct span bytes;
	if (mapped_file_open(path, &bytes, err) != 0)
		return -1;
	int result = 0;
	if (!is_packed) {
		buffer_add_span(out, bytes);
		result = buffer_check(out, path, err);
	} else if (gunzip(bytes, out, err) != 0) {
		result = error_wrap(err, "'%s'", path);
	}
	mapped_file_close(bytes);
	return result;
}

static int take_metadata(struct delta_reader *reader, const struct pulse_metadata *metadata,
	const char *folder, struct error *err)
{
	if (!metadata->is_delta)
		return error_set(err, ERROR_INVALID,
			"'%s': the checkpoint_type is FULL, but the folder has a %s", folder,
			payload_name);
	reader->metadata = (struct delta_metadata){
		.encoding = DELTA_ENCODING_PULSE,
		.has_step = true,
		.step = metadata->window,
		.has_base_step = true,
		.base_step = metadata->prev_window,
		.has_hash = true,
	};
	memcpy(reader->metadata.hash, metadata->hash, SHA256_BYTES);
	return 0;
}

static int prove(const struct pulse_metadata *metadata, const char *name, struct span bytes,
	struct error *err)
{
	uint8_t digest[SHA256_BYTES];
	sha256(bytes, digest);
	return pulse_metadata_prove(metadata, span_text(name), digest, name, err);
}

static int open_payload(struct delta_reader *reader, const char *folder,
	const struct pulse_metadata *metadata, enum pulse_codec codec, struct error *err)
{
	char *const path = relative_path_join(folder, span_text(payload_name));
	int result = mapped_file_open(path, &reader->pulse_bytes, err);
	if (result == 0)
		result = prove(metadata, payload_name, reader->pulse_bytes, err);
	if (result == 0) {
		reader->bytes += reader->pulse_bytes.len;
		reader->pulse = pulse_payload_open(reader->pulse_bytes, codec, path, err);
		result = reader->pulse != NULL ? 0 : -1;
	}
	free(path);
	return result;
}

static int list_entries(struct delta_reader *reader, struct error *err)
{
	for (size_t i = 0; i < pulse_payload_count(reader->pulse); i++) {
		const struct pulse_tensor *const tensor = pulse_payload_tensor(reader->pulse, i);
		const struct delta_entry entry = {
			.name = tensor->name,
			.kind = DELTA_ENTRY_SPARSE,
			.dtype = tensor->dtype,
			.rank = tensor->rank,
			.shape = tensor->shape,
			.code = tensor->index,
			.count = tensor->count,
			.at = i,
		};
		buffer_add(&reader->entries, &entry, sizeof(entry));
	}
	return delta_reader_sort(reader, err);
}
