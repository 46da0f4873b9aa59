/* The server's instructions for putting a range of a file together: terms in file order, and
 * requests that fetch the records of their xorbs. docs/protocol/xet.md,
 * "GetReconstructionV2". */
#ifndef CLIENT_REMOTE_FETCH_PLAN_H
#define CLIENT_REMOTE_FETCH_PLAN_H

#include "base/error.h"
#include "chunker/chunk.h"

/* A deltabucket server never reaches these limits for the ranges that this client requests. The
 * limit on terms times fetches bounds the time to check an answer. */
enum {
	FETCH_PLAN_TERMS_MAX = 65536,
	FETCH_PLAN_FETCHES_MAX = 65536,
	FETCH_PLAN_PAIRS_MAX = 1 << 28
};

struct fetch_term {
	struct chunk_id xorb;
	uint32_t first, end; /* chunks of the xorb: [first, end) */
	uint64_t bytes;      /* uncompressed */
};
struct fetch_entry {
	struct chunk_id xorb;
	uint32_t first, end; /* chunks of the xorb: [first, end) */
	uint64_t from, to;   /* bytes of the serialized xorb; `to` is the last byte */
	/* path and query; the host is dropped, because every request goes to the user's endpoint */
	char *target;
};
struct fetch_plan {
	uint64_t skip; /* bytes of the first term before the requested range */
	struct fetch_term *terms;
	size_t term_count;
	struct fetch_entry *fetches;
	size_t fetch_count;
};
/* Fails with upstream when the answer is malformed or exceeds the limits above. Malformed are a
 * term that no fetch covers or that has fewer bytes than chunks, and a range that runs backwards or
 * has more bytes than its chunks can have. */
int fetch_plan_parse(struct span answer, struct fetch_plan *out, struct error *err);
/* Whether the request fetches all chunks of the term. */
bool fetch_plan_covers(const struct fetch_entry *fetch, const struct fetch_term *term);
void fetch_plan_release(struct fetch_plan *plan); /* a zeroed one is fine */

/* The part of an absolute URL that a request line carries; NULL when the URL has none. Borrowed
 * from `url`. */
const char *fetch_plan_target(const char *url);

#endif
