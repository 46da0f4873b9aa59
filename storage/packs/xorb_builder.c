/* Records are serialized as they come, so that the bytes can be written at any time; the entries
 * are kept for the footer. The buffer has one size at first and its final size later
 * (builder_reserve). */
#include "storage/packs/xorb_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chunker/chunk_hash.h"

enum { BUILDER_GROWING_BYTES = 64 * 1024 };

static uint8_t *builder_reserve(struct buffer *bytes, size_t len);
static struct pack_entry *builder_next_entry(struct xorb_builder *builder);
static void builder_put_payload(struct codec_context *codec, enum codec wanted, struct span content,
	uint8_t *at, struct pack_entry *entry);
static void builder_end_record(
	struct xorb_builder *builder, const struct pack_entry *entry, uint8_t *at);

void xorb_builder_init(struct xorb_builder *builder)
{
	*builder = (struct xorb_builder){0};
	xorb_builder_init_bytes(&builder->bytes);
}

void xorb_builder_init_bytes(struct buffer *bytes)
{
	buffer_init(bytes, XORB_BUFFER_BYTES);
}

void xorb_builder_swap_bytes(struct xorb_builder *builder, struct buffer *bytes)
{
	ASSERT(bytes->len == 0 && !buffer_failed(&builder->bytes));
	const struct buffer gathered = builder->bytes;
	builder->bytes = *bytes;
	*bytes = gathered;
}

void xorb_builder_release(struct xorb_builder *builder)
{
	buffer_release(&builder->bytes);
	free(builder->entries);
	builder->entries = NULL;
	builder->capacity = 0;
}

void xorb_builder_reset(struct xorb_builder *builder)
{
	buffer_reset(&builder->bytes);
	builder->count = 0;
	builder->record_bytes = 0;
	builder->content_bytes = 0;
}

bool xorb_builder_fits(const struct xorb_builder *builder, size_t size, uint64_t max_bytes)
{
	return builder->count < XORB_MAX_CHUNKS &&
		builder->content_bytes + size <= XORB_MAX_BYTES &&
		builder->record_bytes + PACK_RECORD_HEADER_BYTES + size <= max_bytes;
}

int xorb_builder_add(struct xorb_builder *builder, struct codec_context *codec,
	const struct chunk_id *id, struct span content, struct error *err)
{
	ASSERT(content.len >= 1 && content.len <= CHUNK_MAX_BYTES &&
		builder->count < XORB_MAX_CHUNKS);
	const enum codec wanted = codec_choose(codec, content);
	const size_t room = wanted == CODEC_RAW || codec_bound(content.len) < content.len
		? content.len
		: codec_bound(content.len);
	uint8_t *const at = builder_reserve(&builder->bytes, PACK_RECORD_HEADER_BYTES + room);
	if (at == NULL)
		return error_set(err, ERROR_NO_MEMORY,
			"A chunk of %zu bytes does not fit into the write buffer.", content.len);
	struct pack_entry *const entry = builder_next_entry(builder);
	entry->id = *id;
	entry->offset = 0;
	entry->size = (uint32_t)content.len;
	builder_put_payload(codec, wanted, content, at + PACK_RECORD_HEADER_BYTES, entry);
	entry->checksum = xxh3_64(span_of(at + PACK_RECORD_HEADER_BYTES, entry->stored));
	builder_end_record(builder, entry, at);
	return 0;
}

uint8_t *xorb_builder_room(struct xorb_builder *builder, size_t len, struct error *err)
{
	uint8_t *const at = builder_reserve(&builder->bytes, len);
	if (at == NULL)
		error_set(err, ERROR_NO_MEMORY,
			"A record of %zu bytes does not fit into the write buffer.", len);
	return at;
}

int xorb_builder_add_record(
	struct xorb_builder *builder, const struct xorb_record *record, struct error *err)
{
	ASSERT(record->payload.len <= PACK_STORED_MAX_BYTES && builder->count < XORB_MAX_CHUNKS);
	uint8_t *const at =
		xorb_builder_room(builder, PACK_RECORD_HEADER_BYTES + record->payload.len, err);
	if (at == NULL)
		return -1;
	struct pack_entry *const entry = builder_next_entry(builder);
	*entry = (struct pack_entry){
		.id = record->id,
		.checksum = xxh3_64(record->payload),
		.stored = (uint32_t)record->payload.len,
		.size = (uint32_t)record->content.len,
		.codec = record->codec,
	};
	if (record->payload.data != at + PACK_RECORD_HEADER_BYTES)
		memcpy(at + PACK_RECORD_HEADER_BYTES, record->payload.data, record->payload.len);
	builder_end_record(builder, entry, at);
	return 0;
}

int xorb_builder_finish(struct xorb_builder *builder, struct chunk_id *out_hash, struct error *err)
{
	ASSERT(builder->count >= 1);
	struct chunk_entry *const chunks = memory_new_array(builder->count, sizeof(*chunks));
	for (uint32_t i = 0; i < builder->count; i++)
		chunks[i] = (struct chunk_entry){
			.id = builder->entries[i].id, .size = builder->entries[i].size};
	*out_hash = chunk_hash_xorb(chunks, builder->count);
	free(chunks);
	const struct pack_footer footer = {.hash = *out_hash,
		.count = builder->count,
		.record_bytes = (uint32_t)builder->record_bytes};
	pack_format_add_footer(&builder->bytes, &footer, builder->entries);
	return buffer_check(&builder->bytes, "the write buffer of a xorb", err);
}

/* Beyond some size the buffer gets its final size at once, because doubling would copy it each
 * time. */
static uint8_t *builder_reserve(struct buffer *bytes, size_t len)
{
	if (bytes->len + len > BUILDER_GROWING_BYTES && bytes->len + len < XORB_DRAIN_BYTES)
		buffer_reserve(bytes, XORB_DRAIN_BYTES + CHUNK_MAX_BYTES - bytes->len);
	return buffer_reserve(bytes, len);
}

static struct pack_entry *builder_next_entry(struct xorb_builder *builder)
{
	builder->entries = memory_make_room(
		builder->entries, builder->count, &builder->capacity, sizeof(*builder->entries));
	return &builder->entries[builder->count];
}

/* Puts the payload at `at`: encoded when that is smaller, else as it is. Sets codec and stored. */
static void builder_put_payload(struct codec_context *codec, enum codec wanted, struct span content,
	uint8_t *at, struct pack_entry *entry)
{
	entry->codec = CODEC_RAW;
	entry->stored = (uint32_t)content.len;
	if (wanted != CODEC_RAW) {
		const size_t encoded =
			codec_encode(codec, wanted, content, at, codec_bound(content.len));
		if (encoded > 0) {
			entry->codec = (uint8_t)wanted;
			entry->stored = (uint32_t)encoded;
			return;
		}
	}
	memcpy(at, content.data, content.len);
}

/* Ends a record whose payload is in place after `at` and whose entry is complete. */
static void builder_end_record(
	struct xorb_builder *builder, const struct pack_entry *entry, uint8_t *at)
{
	const size_t record = PACK_RECORD_HEADER_BYTES + entry->stored;
	pack_format_put_record_header(entry, at);
	buffer_commit(&builder->bytes, record);
	builder->count++;
	builder->record_bytes += record;
	builder->content_bytes += entry->size;
}
