/* The footer that old Xet clients write behind the records of a xorb, in version 0 or 1. It is made
 * again from the records, to be compared with the one that came. docs/protocol/xet.md, "PostXorb".
 * Pure functions; any thread. */
#ifndef CHUNKER_XORB_FOOTER_H
#define CHUNKER_XORB_FOOTER_H

#include "base/buffer.h"
#include "chunker/xorb_record.h"

enum {
	/* "XETBLOB" and the version, in the place of a record header */
	XORB_FOOTER_MARK_BYTES = 8,
	XORB_FOOTER_VERSION_MAX = 1,
	XORB_FOOTER_RESERVED_BYTES = 16, /* may have any value */
	XORB_FOOTER_MAX_BYTES = 96 + 40 * XORB_MAX_CHUNKS
};

struct xorb_footer_chunk {
	struct chunk_entry chunk;
	uint32_t record_end; /* offset in the serialized xorb */
};

bool xorb_footer_begins(const uint8_t mark[XORB_FOOTER_MARK_BYTES]); /* of any version */
/* Writes the whole footer and its length behind it. `out` must be empty. The reserved bytes are
 * zeros and begin at *out_reserved. */
void xorb_footer_write(unsigned version, const struct chunk_id *xorb,
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out,
	size_t *out_reserved);

#endif
