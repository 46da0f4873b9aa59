/* The footer that old Xet clients write behind the records of a xorb: made anew from the records,
 * to be compared with what came. Two versions, 0 and 1. docs/PROTOCOL.md, "Xorbs". Pure functions;
 * any thread. */
#ifndef CHUNKER_XORB_FOOTER_H
#define CHUNKER_XORB_FOOTER_H

#include "base/buffer.h"
#include "chunker/xorb_record.h"

enum {
	XORB_FOOTER_MARK_BYTES =
		8, /* "XETBLOB" and the version; begins where a record header would */
	XORB_FOOTER_VERSION_MAX = 1,
	XORB_FOOTER_RESERVED_BYTES = 16, /* whatever they say */
	XORB_FOOTER_MAX_BYTES = 96 + 40 * XORB_MAX_CHUNKS
};

struct xorb_footer_chunk {
	struct chunk_entry chunk;
	uint32_t record_end; /* offset in the serialized xorb */
};

bool xorb_footer_begins(const uint8_t mark[XORB_FOOTER_MARK_BYTES]); /* of whatever version */
/* The whole footer with its length behind it; reserved bytes are zeros and begin at
 * *out_reserved. */
void xorb_footer_write(unsigned version, const struct chunk_id *xorb,
	const struct xorb_footer_chunk *chunks, uint32_t count, struct buffer *out,
	size_t *out_reserved);

#endif
