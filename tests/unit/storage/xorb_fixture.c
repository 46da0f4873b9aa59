#include "tests/unit/storage/xorb_fixture.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/xorb_record.h"
#include "storage/packs/pack_store.h"
#include "tests/unit/storage/store_fixture.h"

enum { PIECE_BYTES = 64 * 1024, BODY_MAX_BYTES = 80 * 1024 * 1024 };

uint8_t *xorb_sample_chunk(const struct xorb_sample *sample, unsigned number)
{
	uint8_t *const bytes = fixture_noise(sample->chunk_bytes, sample->seed * 10007 + number);
	if (sample->codec != CODEC_RAW)
		for (size_t i = 0; i < sample->chunk_bytes; i++)
			bytes[i] = bytes[i % 64];
	return bytes;
}

static void add_record(
	struct buffer *out, struct codec_context *codec, enum codec wanted, struct span content)
{
	struct xorb_record_header header = {.codec = (uint8_t)wanted,
		.size = (uint32_t)content.len,
		.stored = (uint32_t)content.len};
	uint8_t *const at =
		buffer_reserve(out, XORB_RECORD_HEADER_BYTES + codec_bound(content.len));
	ck_assert_ptr_nonnull(at);
	if (wanted == CODEC_RAW)
		memcpy(at + XORB_RECORD_HEADER_BYTES, content.data, content.len);
	else
		header.stored = (uint32_t)codec_encode(codec, wanted, content,
			at + XORB_RECORD_HEADER_BYTES, codec_bound(content.len));
	ck_assert_uint_gt(header.stored, 0);
	xorb_record_put_header(&header, at);
	buffer_commit(out, XORB_RECORD_HEADER_BYTES + header.stored);
}

struct chunk_id xorb_sample_write(const struct xorb_sample *sample, struct buffer *out)
{
	struct codec_context *const codec = codec_context_new();
	struct chunk_entry *const chunks = memory_new_array(sample->chunks, sizeof *chunks);
	buffer_init(out, BODY_MAX_BYTES);
	for (unsigned i = 0; i < sample->chunks; i++) {
		uint8_t *const bytes = xorb_sample_chunk(sample, i);
		const struct span content = span_of(bytes, sample->chunk_bytes);
		chunks[i] = (struct chunk_entry){.id = chunk_hash(content), .size = content.len};
		add_record(out, codec, sample->codec, content);
		free(bytes);
	}
	const struct chunk_id hash = chunk_hash_xorb(chunks, sample->chunks);
	free(chunks);
	codec_context_free(codec);
	return hash;
}

struct chunk_id xorb_sample_hash(const struct xorb_sample *sample)
{
	struct buffer body;
	const struct chunk_id hash = xorb_sample_write(sample, &body);
	buffer_release(&body);
	return hash;
}

struct sender {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned rooms;
};

static void has_room(void *owner)
{
	struct sender *const sender = owner;
	pthread_mutex_lock(&sender->mutex);
	sender->rooms++;
	pthread_cond_signal(&sender->changed);
	pthread_mutex_unlock(&sender->mutex);
}

static int write_all(
	struct xorb_put *put, struct sender *sender, struct span body, struct error *err)
{
	unsigned rooms = 0;
	for (size_t at = 0; at < body.len;) {
		const struct span piece = span_slice(body, at, PIECE_BYTES);
		const enum sink_result result = xorb_put_write(put, piece, err);
		if (result == SINK_FAILED)
			return -1;
		if (result == SINK_TAKEN) {
			at += piece.len;
			continue;
		}
		pthread_mutex_lock(&sender->mutex);
		while (sender->rooms == rooms)
			pthread_cond_wait(&sender->changed, &sender->mutex);
		rooms = sender->rooms;
		pthread_mutex_unlock(&sender->mutex);
	}
	return 0;
}

int xorb_fixture_put(struct store *store, const struct chunk_id *hash, struct span body,
	bool private_codecs, bool *out_inserted, struct error *err)
{
	struct sender sender = {
		.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	const struct xorb_put_params params = {.hash = *hash,
		.private_codecs = private_codecs,
		.room = has_room,
		.owner = &sender};
	struct xorb_put *const put = xorb_put_open(store, &params, err);
	if (put == NULL)
		return -1;
	int result = write_all(put, &sender, body, err);
	if (result == 0)
		result = call_run(xorb_put_call(put), err);
	if (result == 0)
		*out_inserted = xorb_put_inserted(put);
	call_free(xorb_put_call(put));
	return result;
}

int xorb_sample_put(struct store *store, const struct xorb_sample *sample, bool *out_inserted,
	struct error *err)
{
	struct buffer body;
	const struct chunk_id hash = xorb_sample_write(sample, &body);
	const int result = xorb_fixture_put(
		store, &hash, buffer_span(&body), codec_private(sample->codec), out_inserted, err);
	buffer_release(&body);
	return result;
}

static bool chunk_is_there(struct store *store, const struct xorb *xorb,
	const struct xorb_sample *sample, unsigned number)
{
	struct error err = {0};
	size_t len = 0;
	uint8_t *const expected = xorb_sample_chunk(sample, number);
	uint8_t *const read = memory_new(CHUNK_MAX_BYTES);
	const struct chunk_place place = {.pack = xorb->pack, .chunk = xorb->first + number};
	const int result =
		pack_store_read_chunk(store_packs(store), &place, NULL, read, &len, &err);
	const bool is_there =
		result == 0 && len == sample->chunk_bytes && memcmp(read, expected, len) == 0;
	free(read);
	free(expected);
	return is_there;
}

bool xorb_sample_is_there(struct store *store, const struct xorb_sample *sample)
{
	struct error err = {0};
	struct xorb xorb;
	const struct chunk_id hash = xorb_sample_hash(sample);
	if (xorb_find(store, &hash, &xorb, &err) != 0 || xorb.count != sample->chunks)
		return false;
	for (unsigned i = 0; i < sample->chunks; i++)
		if (!chunk_is_there(store, &xorb, sample, i))
			return false;
	return true;
}
