/* Any bytes as a delta of PULSE's upon a base that it was not made from. The first byte's lowest
 * two bits choose the codec: what follows is packed into a frame, in a folder whose hashes are
 * right, and decoded to the end. With both set it is read as either file of JSON. */
#include "fuzz_delta.h"

#include "base/encode.h"
#include "base/format/compress.h"
#include "weights/delta/delta_source.h"
#include "weights/delta/pulse_metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_BYTES = 512, DIGEST_TEXT_BYTES = 2 * SHA256_BYTES + 1 };

static const char *sha256_of(struct span bytes, char out[DIGEST_TEXT_BYTES])
{
	uint8_t digest[SHA256_BYTES];
	sha256(bytes, digest);
	encode_hex(span_of(digest, sizeof(digest)), out);
	return out;
}

static void write_folder(const char *format, struct span frame)
{
	char digests[2][DIGEST_TEXT_BYTES];
	char facts[TEXT_BYTES];
	char text[TEXT_BYTES];
	const int facts_len = snprintf(facts, sizeof(facts), "{\"format\":\"%s\"}", format);
	const int len = snprintf(text, sizeof(text),
		"{\"window\":2,\"checkpoint_type\":\"DELTA\",\"prev_window\":1,"
		"\"weights_hash\":\"%064d\",\"file_manifest\":{\"delta_metadata.json\":\"%s\","
		"\"delta_sparse.bin.zst\":\"%s\"}}",
		0, sha256_of(span_of(facts, (size_t)facts_len), digests[0]),
		sha256_of(frame, digests[1]));
	write_file("delta/delta_sparse.bin.zst", frame);
	write_file("delta/delta_metadata.json", span_of(facts, (size_t)facts_len));
	write_file("delta/metadata.json", span_of(text, (size_t)len));
}

static void read_all(struct tensor_source *source)
{
	struct error err;
	struct span block;
	for (size_t i = 0; i < schema_count(checkpoint_schema(base)); i++) {
		struct tensor_cursor *const cursor = tensor_source_open(source, i, &err);
		uint64_t total = 0;
		int got = -1;
		while (cursor != NULL && (got = tensor_cursor_next(cursor, &block, &err)) == 1)
			total += block.len;
		ASSERT(got == -1 ? err.kind != ERROR_NONE
				 : total == checkpoint_tensor(base, i).len);
		tensor_cursor_close(cursor);
	}
}

static void decode(void)
{
	struct error err = {0};
	char path[2 * PATH_BYTES];
	snprintf(path, sizeof path, "%s/delta", folder);
	struct delta_reader *const reader = delta_reader_open(path, &err);
	struct tensor_source *const source =
		reader != NULL ? delta_source_new(reader, base_source, &err) : NULL;
	ASSERT(source != NULL || err.kind != ERROR_NONE);
	if (source != NULL)
		read_all(source);
	tensor_source_free(source);
	delta_reader_close(reader);
}

static void parse(struct span json)
{
	struct error err = {0};
	struct pulse_metadata metadata;
	enum pulse_codec codec;
	if (pulse_metadata_parse(&metadata, json, "fuzz", &err) != 0)
		ASSERT(err.kind != ERROR_NONE);
	pulse_metadata_release(&metadata);
	(void)pulse_codec_parse(&codec, json, "fuzz", &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = {
		"sparse_codec_v2", "sparse_codec_v3", "sparse_codec_v3.1"};
	if (size == 0)
		return 0;
	const struct span rest = span_of(data + 1, size - 1);
	if ((data[0] & 3) == 3) {
		parse(rest);
		return 0;
	}
	prepare();
	struct compressor *const compressor = compressor_new();
	uint8_t *const frame = memory_new(compress_bound(rest.len));
	const size_t len = compress_zstd(compressor, rest, frame, compress_bound(rest.len), 1);
	write_folder(formats[data[0] & 3], span_of(frame, len));
	decode();
	free(frame);
	compressor_free(compressor);
	return 0;
}
