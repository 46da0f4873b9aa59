/* The place of an object's bytes: runs of chunk records in packs. docs/FORMAT.md, "Catalog". */
#ifndef STORAGE_PACKS_SEGMENT_H
#define STORAGE_PACKS_SEGMENT_H

#include "base/digest/checksum.h"
#include "base/digest/xxh3.h"
#include "chunker/chunk.h"

enum { PACK_ID_BYTES = 16, VERSION_ID_BYTES = 16, INLINE_MAX_BYTES = 1024 };

struct pack_id { /* random; names the pack file */
	uint8_t bytes[PACK_ID_BYTES];
};
/* The maker of a pack's file, which is in its header. Zeros in packs from before stores had an
 * id. */
enum { PACK_STORE_BYTES = 8 };
struct pack_origin {
	uint8_t store[PACK_STORE_BYTES]; /* the first bytes of the store's id */
	uint32_t life;                   /* the number of the start in which it was made */
};
struct segment {
	struct pack_id pack;
	uint32_t first; /* chunk number in the pack */
	uint32_t count;
	uint64_t bytes; /* uncompressed */
};

/* Everything that the catalog must know about one stored stream (one part). Its maker owns the
 * memory. */
struct stored_part {
	uint64_t size;
	struct chunk_id file_hash; /* Xet */
	struct digest128 digest;   /* XXH3-128 of the bytes */
	uint8_t md5[16];           /* valid when has_md5 */
	bool has_md5;
	/* of the algorithm that was asked for; CHECKSUM_NONE when none was */
	struct checksum checksum;
	struct checksum declared; /* the same for the algorithm that the client declared */
	bool is_inline;
	struct span inline_bytes; /* at most INLINE_MAX_BYTES */
	const struct segment *segments;
	size_t segment_count;
};

/* A pack as the catalog knows it. Condemned: nothing refers to it, and gc is about to remove it. */
enum pack_state { PACK_OPEN = 0, PACK_SEALED = 1, PACK_CONDEMNED = 2 };
struct pack_record {
	struct pack_id id;
	/* the name of its file once it was compacted; zeros: the id is the name */
	struct pack_id file;
	enum pack_state state;
	uint64_t length; /* committed bytes of its file */
	/* Committed records. Chunk numbers are below it, also after gc took some chunks away. */
	uint32_t chunks;
	int64_t created_ms;
};

#endif
