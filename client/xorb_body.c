#include "client/xorb_body.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "chunker/chunk_hash.h"
#include "chunker/codec.h"
#include "chunker/xorb_record.h"

struct xorb_body {
	const struct upload_plan *plan;
	const struct file_chunks *files;
	const char *const *paths;
	struct codec_context *codecs;
	int fd;            /* of the file that was read last; below 0: none */
	uint32_t file;
	uint8_t content[CHUNK_MAX_BYTES];
};

struct xorb_body *xorb_body_new(const struct upload_plan *const plan, const struct file_chunks *const files, const char *const *const paths)
{
	struct xorb_body *const body = memory_new(sizeof *body);
	body->plan = plan;
	body->files = files;
	body->paths = paths;
	body->codecs = codec_context_new();
	body->fd = -1;
	return body;
}

static void close_file(struct xorb_body *const body)
{
	if (body->fd >= 0)
		close(body->fd);
	body->fd = -1;
}

void xorb_body_free(struct xorb_body *const body)
{
	if (body == NULL)
		return;
	close_file(body);
	codec_context_free(body->codecs);
	free(body);
}

static int read_chunk(struct xorb_body *const body, const struct upload_chunk *const chunk, struct error *const err)
{
	const char *const path = body->paths[chunk->file];
	const struct chunk_entry *const entry = &body->files[chunk->file].entries[chunk->index];
	struct error failure = {0};
	if (body->fd >= 0 && body->file != chunk->file)
		close_file(body);
	if (body->fd < 0) {
		body->fd = open(path, O_RDONLY | O_CLOEXEC);
		body->file = chunk->file;
		if (body->fd < 0)
			return error_set_errno(err, "opening %s", path);
	}
	if (file_read_at(file_system(), body->fd, body->content, entry->size, (off_t)chunk->offset, path, &failure) == 0) {
		const struct chunk_id id = chunk_hash(span_of(body->content, entry->size));
		if (chunk_id_equal(&id, &entry->id))
			return 0;
	} else if (failure.kind != ERROR_CORRUPT) {
		*err = failure;
		return -1;
	}
	return error_set(err, ERROR_INVALID, "%s changed while it was uploaded", path);
}

static int add_record(struct xorb_body *const body, const struct span content, struct buffer *const out)
{
	uint8_t *const at = buffer_reserve(out, XORB_RECORD_HEADER_BYTES + codec_bound(content.len));
	if (at == NULL)
		return -1;
	enum codec codec = codec_choose(body->codecs, content);
	size_t stored = 0;
	if (codec != CODEC_RAW)
		stored = codec_encode(body->codecs, codec, content, at + XORB_RECORD_HEADER_BYTES, codec_bound(content.len));
	if (stored == 0)
		codec = CODEC_RAW;
	const struct xorb_record_header header = {
		.codec = (uint8_t)codec,
		.stored = (uint32_t)(stored == 0 ? content.len : stored),
		.size = (uint32_t)content.len,
	};
	xorb_record_put_header(&header, at);
	buffer_commit(out, XORB_RECORD_HEADER_BYTES + stored);
	if (stored == 0)
		buffer_add_span(out, content);
	return 0;
}

int xorb_body_make(struct xorb_body *const body, const size_t xorb, struct buffer *const out, struct error *const err)
{
	const struct upload_xorb *const what = &body->plan->xorbs[xorb];
	for (uint32_t i = 0; i < what->count; i++) {
		const struct upload_chunk *const chunk = &body->plan->chunks[what->first + i];
		if (read_chunk(body, chunk, err) != 0)
			return -1;
		if (add_record(body, span_of(body->content, body->files[chunk->file].entries[chunk->index].size), out) != 0)
			break;
	}
	return buffer_check(out, "a xorb", err);
}
