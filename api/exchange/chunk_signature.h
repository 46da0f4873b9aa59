/* The chain of signatures over an aws-chunked body: each chunk's covers the one before, the first
 * covers the request's own (the seed). Any thread; a chain by one at a time. */
#ifndef API_EXCHANGE_CHUNK_SIGNATURE_H
#define API_EXCHANGE_CHUNK_SIGNATURE_H

#include "base/digest/digest.h"

enum { SIGNATURE_V4_CHARACTERS = 2 * SHA256_BYTES };

struct chunk_signature { /* copied by whoever checks a body; spans are the request's */
	/* the signing key of the day: wiped by chunk_signature_wipe */
	uint8_t key[SHA256_BYTES];
	struct span key_id;
	struct span date;                           /* 20130524T000000Z */
	struct span scope;                          /* 20130524/us-east-1/s3/aws4_request */
	char previous[SIGNATURE_V4_CHARACTERS + 1]; /* hex, lower case */
};

/* Is `given` (64 hex digits) the signature of the next chunk, whose bytes have this SHA-256? Moves
 * the chain on when it is. */
bool chunk_signature_check(
	struct chunk_signature *chain, const uint8_t chunk_sha256[SHA256_BYTES], struct span given);
/* The same for the trailer: `lines` as "name:value\n" each. */
bool chunk_signature_check_trailer(
	struct chunk_signature *chain, struct span lines, struct span given);
void chunk_signature_wipe(struct chunk_signature *chain);

#endif
