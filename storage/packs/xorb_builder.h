/* A xorb while its chunks come in: serialized records that wait to be written, and an entry for
 * each chunk. The bytes may be swapped out at any time; the entries stay until the xorb is reset.
 * One thread at a time. */
#ifndef STORAGE_PACKS_XORB_BUILDER_H
#define STORAGE_PACKS_XORB_BUILDER_H

#include "base/buffer.h"
#include "chunker/codec.h"
#include "chunker/xorb_parse.h"
#include "storage/packs/pack_format.h"

struct xorb_builder {
	struct buffer bytes; /* records, and at last the footer, not drained yet */
	struct pack_entry *entries;
	uint32_t count;
	size_t capacity;
	uint64_t record_bytes;
	uint64_t content_bytes;
};

/* Room for the bytes between two swaps at XORB_DRAIN_BYTES, and for the footer. Content for the
 * shared pack (256 KiB and headers) is never drained. */
enum { XORB_DRAIN_BYTES = 320 * 1024, XORB_BUFFER_BYTES = 2 * 1024 * 1024 };

void xorb_builder_init(struct xorb_builder *builder);
void xorb_builder_release(struct xorb_builder *builder);
void xorb_builder_reset(struct xorb_builder *builder); /* keeps the memory */
/* Whether a chunk of this size still fits into this xorb, whose records may take `max_bytes`. */
bool xorb_builder_fits(const struct xorb_builder *builder, size_t size, uint64_t max_bytes);
/* Encodes the chunk as its trial advises and adds its record. */
int xorb_builder_add(struct xorb_builder *builder, struct codec_context *codec,
	const struct chunk_id *id, struct span content, struct error *err);
/* Returns memory where the caller may make the next record, header first, so that adding it needs
 * no copy. NULL with the error set. */
uint8_t *xorb_builder_room(struct xorb_builder *builder, size_t len, struct error *err);
/* Adds a record as it is. */
int xorb_builder_add_record(
	struct xorb_builder *builder, const struct xorb_record *record, struct error *err);
/* Exchanges the gathered bytes for an empty buffer that was made by xorb_builder_init_bytes. */
void xorb_builder_swap_bytes(struct xorb_builder *builder, struct buffer *bytes);
void xorb_builder_init_bytes(struct buffer *bytes);
/* Adds the footer and gives the hash of the xorb, which must have a chunk. */
int xorb_builder_finish(struct xorb_builder *builder, struct chunk_id *out_hash, struct error *err);

#endif
