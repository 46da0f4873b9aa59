/* What an upload consists of: each file as terms over xorbs that the server has and new ones, and
 * the new ones as the chunks they take from the files. Pure: nothing is read or sent. A chunk that
 * several files or places hold is sent once. Few known chunks between new ones are sent again, so
 * that a file does not fall into splinters. */
#ifndef CLIENT_TRANSFER_UPLOAD_PLAN_H
#define CLIENT_TRANSFER_UPLOAD_PLAN_H

#include "client/local/chunk_table.h"
#include "client/local/file_chunks.h"

enum {
	UPLOAD_XORB_MAX_BYTES = 64 * 1024 * 1024,
	UPLOAD_XORB_MAX_CHUNKS = 8192,
	UPLOAD_HOLE_CHUNKS = 4
};

struct upload_chunk { /* of a new xorb: where its bytes are */
	uint32_t file;
	uint32_t index;  /* in the file's chunks */
	uint64_t offset; /* in the file */
};
struct upload_xorb {
	struct chunk_id hash;
	size_t first; /* in plan.chunks */
	uint32_t count;
	uint64_t bytes; /* uncompressed */
};
struct upload_term {
	bool is_new;
	uint32_t xorb;       /* number in plan.xorbs, or in the table */
	uint32_t first, end; /* chunks of the xorb */
	uint32_t bytes;
	/* hash over the ids of its chunks: proves that the sender has them */
	struct chunk_id range;
};
struct upload_terms { /* of one file */
	size_t first; /* in plan.terms */
	size_t count;
};

struct upload_plan {
	struct upload_chunk *chunks;
	size_t chunk_count;
	struct upload_xorb *xorbs;
	size_t xorb_count;
	struct upload_term *terms;
	size_t term_count;
	struct upload_terms *files; /* as many as were given */
	uint64_t new_bytes;         /* of all new xorbs, uncompressed */
};
/* `xorb_bytes`: how large a new xorb may get, at most UPLOAD_XORB_MAX_BYTES. */
void upload_plan_make(const struct file_chunks *files, size_t count, struct chunk_table *table,
	uint64_t xorb_bytes, struct upload_plan *out);
void upload_plan_release(struct upload_plan *plan); /* a zeroed one is fine */

#endif
