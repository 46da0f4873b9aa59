/* What the server says of how to put a range of a file together: terms in file order, and requests that bring the records of their xorbs.
 * docs/PROTOCOL.md, "Reconstructions" (version 2). */
#ifndef CLIENT_RECONSTRUCTION_H
#define CLIENT_RECONSTRUCTION_H

#include "base/error.h"
#include "chunker/chunk.h"

struct reconstruction_term {
	struct chunk_id xorb;
	uint32_t first, end;  /* chunks */
	uint64_t bytes;       /* uncompressed */
};
struct reconstruction_fetch {
	struct chunk_id xorb;
	uint32_t first, end;  /* chunks */
	uint64_t from, to;    /* bytes of the serialized xorb, `to` the last one */
	char *target;         /* path and query: every request goes to the one endpoint that the user named */
};
struct reconstruction {
	uint64_t skip;        /* bytes of the first term before the range that was asked for */
	struct reconstruction_term *terms;
	size_t term_count;
	struct reconstruction_fetch *fetches;
	size_t fetch_count;
};
/* upstream when the answer breaks its form: a term that no fetch covers, ranges that run backwards. */
int reconstruction_parse(struct span answer, struct reconstruction *out, struct error *err);
void reconstruction_release(struct reconstruction *reconstruction); /* a zeroed one is fine */

/* The part of an absolute URL that a request line carries; NULL when it has none. Borrowed. */
const char *reconstruction_target(const char *url);

#endif
