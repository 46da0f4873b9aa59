/* What the server says of how to put a range of a file together: terms in file order, and requests
 * that bring the records of their xorbs. docs/PROTOCOL.md, "Reconstructions" (version 2). */
#ifndef CLIENT_REMOTE_FETCH_PLAN_H
#define CLIENT_REMOTE_FETCH_PLAN_H

#include "base/error.h"
#include "chunker/chunk.h"

/* More than any server of ours answers for the ranges that are asked for. Terms times fetches
 * bounds the time that the answer takes to go through. */
enum {
	FETCH_PLAN_TERMS_MAX = 65536,
	FETCH_PLAN_FETCHES_MAX = 65536,
	FETCH_PLAN_PAIRS_MAX = 1 << 28
};

struct fetch_term {
	struct chunk_id xorb;
	uint32_t first, end; /* chunks */
	uint64_t bytes;      /* uncompressed */
};
struct fetch_entry {
	struct chunk_id xorb;
	uint32_t first, end; /* chunks */
	uint64_t from, to;   /* bytes of the serialized xorb, `to` the last one */
	/* path and query: every request goes to the one endpoint that the user named */
	char *target;
};
struct fetch_plan {
	uint64_t skip; /* bytes of the first term before the range that was asked for */
	struct fetch_term *terms;
	size_t term_count;
	struct fetch_entry *fetches;
	size_t fetch_count;
};
/* upstream when the answer breaks its form: a term that no fetch covers or that has fewer bytes
 * than chunks, ranges that run backwards or have more bytes than their chunks can; and when it is
 * over the bounds above. */
int fetch_plan_parse(struct span answer, struct fetch_plan *out, struct error *err);
/* Whether the request brings all chunks of the term. */
bool fetch_plan_covers(const struct fetch_entry *fetch, const struct fetch_term *term);
void fetch_plan_release(struct fetch_plan *plan); /* a zeroed one is fine */

/* The part of an absolute URL that a request line carries; NULL when it has none. Borrowed. */
const char *fetch_plan_target(const char *url);

#endif
