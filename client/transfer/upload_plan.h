/* The plan of an upload: each file as terms over xorbs, both those that the server has and new
 * ones, and the chunks that each new xorb takes from the files. Pure: it reads and sends nothing. A
 * chunk that occurs several times is sent once. A few known chunks between new ones are sent again,
 * so that a file does not have many tiny terms. */
#ifndef CLIENT_TRANSFER_UPLOAD_PLAN_H
#define CLIENT_TRANSFER_UPLOAD_PLAN_H

#include "client/local/chunk_table.h"
#include "client/local/file_chunks.h"

enum {
	UPLOAD_XORB_MAX_BYTES = 64 * 1024 * 1024,
	UPLOAD_XORB_MAX_CHUNKS = 8192,
	UPLOAD_HOLE_CHUNKS = 4
};

struct upload_chunk { /* the source of a chunk of a new xorb */
	uint32_t file;
	uint32_t index;  /* among the file's chunks */
	uint64_t offset; /* in the file */
};
struct upload_xorb {
	struct chunk_id hash;
	size_t first; /* the index of its first chunk in plan.chunks */
	uint32_t count;
	uint64_t bytes; /* uncompressed */
};
struct upload_term {
	bool is_new;
	uint32_t xorb;       /* number in plan.xorbs if is_new, otherwise in the table */
	uint32_t first, end; /* chunks of the xorb: [first, end) */
	uint32_t bytes;
	/* the hash over the ids of its chunks; it proves that the sender has them */
	struct chunk_id range;
};
struct upload_terms { /* of one file */
	size_t first; /* the index of its first term in plan.terms */
	size_t count;
};

struct upload_plan {
	struct upload_chunk *chunks;
	size_t chunk_count;
	struct upload_xorb *xorbs;
	size_t xorb_count;
	struct upload_term *terms;
	size_t term_count;
	struct upload_terms *files; /* one for each given file */
	uint64_t new_bytes;         /* of all new xorbs, uncompressed */
};
/* `xorb_bytes` limits the size of a new xorb; it must not exceed UPLOAD_XORB_MAX_BYTES. `table`
 * knows the chunks that the server has. */
void upload_plan_make(const struct file_chunks *files, size_t count, struct chunk_table *table,
	uint64_t xorb_bytes, struct upload_plan *out);
void upload_plan_release(struct upload_plan *plan); /* a zeroed one is fine */

#endif
