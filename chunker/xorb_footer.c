#include "chunker/xorb_footer.h"

#include <string.h>

static const uint8_t mark[7] = "XETBLOB";
static const uint8_t hashes_mark[8] = {'X', 'B', 'L', 'B', 'H', 'S', 'H', 0};
static const uint8_t bounds_mark[8] = {'X', 'B', 'L', 'B', 'B', 'N', 'D', 1};

static void add_32(struct buffer *out, uint32_t value);
static void add_record_ends(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out);
static void add_hashes(const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out);
static void write_sections(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out);
static void add_content_ends(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out);
static void add_reserved(struct buffer *out, size_t *out_reserved);

bool xorb_footer_begins(const uint8_t bytes[XORB_FOOTER_MARK_BYTES])
{
	return memcmp(bytes, mark, sizeof(mark)) == 0;
}

void xorb_footer_write(unsigned version, const struct chunk_id *xorb,
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out,
	size_t *out_reserved)
{
	ASSERT(version <= XORB_FOOTER_VERSION_MAX);
	ASSERT(count <= XORB_MAX_CHUNKS);
	ASSERT(out->len == 0);
	buffer_add(out, mark, sizeof(mark));
	buffer_add_byte(out, (uint8_t)version);
	buffer_add(out, xorb->bytes, CHUNK_ID_BYTES);
	if (version == 0) {
		add_32(out, count);
		add_record_ends(chunks, count, out);
		add_hashes(chunks, count, out);
	} else {
		write_sections(chunks, count, out);
	}
	add_reserved(out, out_reserved);
	add_32(out, (uint32_t)out->len);
}

static void add_32(struct buffer *out, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		buffer_add_byte(out, (uint8_t)(value >> (8 * i)));
}

static void add_record_ends(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out)
{
	for (uint32_t i = 0; i < count; i++)
		add_32(out, chunks[i].record_end);
}

static void add_hashes(const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out)
{
	for (uint32_t i = 0; i < count; i++)
		buffer_add(out, chunks[i].chunk.id.bytes, CHUNK_ID_BYTES);
}

static void write_sections(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out)
{
	buffer_add(out, hashes_mark, sizeof(hashes_mark));
	add_32(out, count);
	add_hashes(chunks, count, out);
	buffer_add(out, bounds_mark, sizeof(bounds_mark));
	add_32(out, count);
	add_record_ends(chunks, count, out);
	add_content_ends(chunks, count, out);
	add_32(out, count);
	add_32(out, 52 + 40 * count); /* distances from the footer's end back to the two sections */
	add_32(out, 40 + 8 * count);
}

static void add_content_ends(
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < count; i++) {
		end += chunks[i].chunk.size;
		add_32(out, (uint32_t)end);
	}
}

static void add_reserved(struct buffer *out, size_t *out_reserved)
{
	static const uint8_t zeros[XORB_FOOTER_RESERVED_BYTES];
	*out_reserved = out->len;
	buffer_add(out, zeros, sizeof(zeros));
}
