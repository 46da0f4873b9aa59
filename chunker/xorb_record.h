/* The header of a chunk record. Serialized xorbs and packs consist of such records: version 0, C,
 * codec, U, then C bytes of payload. docs/FORMAT.md, "Packs". Pure functions; any thread. */
#ifndef CHUNKER_XORB_RECORD_H
#define CHUNKER_XORB_RECORD_H

#include "chunker/chunk.h"

enum {
	XORB_MAX_CHUNKS = 8192,
	XORB_MAX_BYTES = 64 * 1024 * 1024, /* uncompressed */
	XORB_RECORD_HEADER_BYTES = 8,
	XORB_STORED_MAX_BYTES = 2 * CHUNK_MAX_BYTES /* a payload */
};

struct xorb_record_header {
	uint8_t codec;
	uint32_t stored; /* C: bytes of payload */
	uint32_t size;   /* U: bytes of the decoded chunk */
};

void xorb_record_put_header(
	const struct xorb_record_header *header, uint8_t out[XORB_RECORD_HEADER_BYTES]);
/* False when the version is not 0. The other fields are not checked. */
bool xorb_record_get_header(
	const uint8_t from[XORB_RECORD_HEADER_BYTES], struct xorb_record_header *out);

#endif
