/* A chunk is read directly into its record in the body, because most chunks are stored raw. Only a
 * chunk that a codec makes smaller is encoded, into scratch memory, and copied over the raw bytes.
 * The last file stays open, because neighbouring chunks usually come from the same file. */
#include "client/transfer/xorb_body.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_parse.h"
#include "chunker/xorb_record.h"

struct xorb_body {
	const struct upload_plan *plan;
	const struct file_chunks *files;
	const char *const *paths;
	struct codec_context *codecs;
	int fd;        /* of the file that was read last; below 0: none */
	uint32_t file; /* its number */
	struct buffer records;
	uint8_t *scratch; /* of codec_bound(CHUNK_MAX_BYTES) bytes */
};

static void close_file(struct xorb_body *body);
static int add_record(struct xorb_body *body, const struct upload_chunk *chunk, struct error *err);
static const struct chunk_entry *entry_of(
	const struct xorb_body *body, const struct upload_chunk *chunk);
static int read_chunk(
	struct xorb_body *body, const struct upload_chunk *chunk, uint8_t *into, struct error *err);
static int open_file(struct xorb_body *body, uint32_t file, struct error *err);
static int refuse_changed(
	const struct xorb_body *body, const struct upload_chunk *chunk, struct error *err);

struct xorb_body *xorb_body_new(
	const struct upload_plan *plan, const struct file_chunks *files, const char *const *paths)
{
	struct xorb_body *const body = memory_new(sizeof(*body));
	body->plan = plan;
	body->files = files;
	body->paths = paths;
	body->codecs = codec_context_new();
	body->fd = -1;
	body->scratch = memory_new(codec_bound(CHUNK_MAX_BYTES));
	buffer_init(&body->records, XORB_BODY_MAX_BYTES);
	return body;
}

void xorb_body_free(struct xorb_body *body)
{
	if (body == NULL)
		return;
	close_file(body);
	codec_context_free(body->codecs);
	buffer_release(&body->records);
	free(body->scratch);
	free(body);
}

int xorb_body_make(struct xorb_body *body, size_t xorb, struct span *out, struct error *err)
{
	ASSERT(xorb < body->plan->xorb_count);
	const struct upload_xorb *const what = &body->plan->xorbs[xorb];
	buffer_reset(&body->records);
	for (uint32_t i = 0; i < what->count; i++)
		if (add_record(body, &body->plan->chunks[what->first + i], err) != 0)
			return -1;
	*out = buffer_span(&body->records);
	return 0;
}

int xorb_body_check(struct xorb_body *body, size_t xorb, struct error *err)
{
	ASSERT(xorb < body->plan->xorb_count);
	const struct upload_xorb *const what = &body->plan->xorbs[xorb];
	for (uint32_t i = 0; i < what->count; i++) {
		const struct upload_chunk *const chunk = &body->plan->chunks[what->first + i];
		const struct chunk_entry *const entry = entry_of(body, chunk);
		if (read_chunk(body, chunk, body->scratch, err) != 0)
			return -1;
		const struct chunk_id id = chunk_hash(span_of(body->scratch, entry->size));
		if (!chunk_id_equal(&id, &entry->id))
			return refuse_changed(body, chunk, err);
	}
	return 0;
}

static void close_file(struct xorb_body *body)
{
	if (body->fd >= 0)
		close(body->fd);
	body->fd = -1;
}

static int add_record(struct xorb_body *body, const struct upload_chunk *chunk, struct error *err)
{
	const size_t size = entry_of(body, chunk)->size;
	ASSERT(size <= CHUNK_MAX_BYTES);
	uint8_t *const at = buffer_reserve(&body->records, XORB_RECORD_HEADER_BYTES + size);
	if (at == NULL)
		return buffer_check(&body->records, "a xorb", err);
	uint8_t *const payload = at + XORB_RECORD_HEADER_BYTES;
	if (read_chunk(body, chunk, payload, err) != 0)
		return -1;
	enum codec codec = codec_choose(body->codecs, span_of(payload, size));
	size_t stored = codec == CODEC_RAW
		? 0
		: codec_encode(body->codecs, codec, span_of(payload, size), body->scratch,
			  codec_bound(CHUNK_MAX_BYTES));
	ASSERT(stored <= size);
	if (stored > 0) {
		memcpy(payload, body->scratch, stored);
	} else {
		codec = CODEC_RAW;
		stored = size;
	}
	const struct xorb_record_header header = {
		.codec = (uint8_t)codec, .stored = (uint32_t)stored, .size = (uint32_t)size};
	xorb_record_put_header(&header, at);
	buffer_commit(&body->records, XORB_RECORD_HEADER_BYTES + stored);
	return 0;
}

static const struct chunk_entry *entry_of(
	const struct xorb_body *body, const struct upload_chunk *chunk)
{
	return &body->files[chunk->file].entries[chunk->index];
}

static int read_chunk(
	struct xorb_body *body, const struct upload_chunk *chunk, uint8_t *into, struct error *err)
{
	if (open_file(body, chunk->file, err) != 0)
		return -1;
	const struct iovec content = {.iov_base = into, .iov_len = entry_of(body, chunk)->size};
	if (file_read_at(file_system(), body->fd, content, (off_t)chunk->offset,
		    body->paths[chunk->file], err) == 0)
		return 0;
	return err->kind == ERROR_CORRUPT ? refuse_changed(body, chunk, err) : -1;
}

static int open_file(struct xorb_body *body, uint32_t file, struct error *err)
{
	if (body->fd >= 0 && body->file == file)
		return 0;
	close_file(body);
	body->fd = open(body->paths[file], O_RDONLY | O_CLOEXEC);
	body->file = file;
	return body->fd >= 0 ? 0 : error_set_errno(err, "opening %s", body->paths[file]);
}

static int refuse_changed(
	const struct xorb_body *body, const struct upload_chunk *chunk, struct error *err)
{
	return error_set(
		err, ERROR_INVALID, "%s changed while it was uploaded", body->paths[chunk->file]);
}
