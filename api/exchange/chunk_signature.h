/* The chain of signatures over an aws-chunked body: the signature of each chunk covers the one
 * before it, and the first covers the signature of the request (the seed). Any thread; one thread
 * at a time per chain. */
#ifndef API_EXCHANGE_CHUNK_SIGNATURE_H
#define API_EXCHANGE_CHUNK_SIGNATURE_H

#include "base/digest/digest.h"

enum { SIGNATURE_V4_CHARACTERS = 2 * SHA256_BYTES };

struct chunk_signature { /* its spans belong to the request */
	/* the signing key of the day; chunk_signature_wipe wipes it */
	uint8_t key[SHA256_BYTES];
	struct span key_id;
	struct span date;                           /* 20130524T000000Z */
	struct span scope;                          /* 20130524/us-east-1/s3/aws4_request */
	char previous[SIGNATURE_V4_CHARACTERS + 1]; /* hex, lower case */
};

/* Whether `given` (64 hex digits) is the signature of the next chunk, whose bytes have this
 * SHA-256. If so, the chain advances. */
bool chunk_signature_check(
	struct chunk_signature *chain, const uint8_t chunk_sha256[SHA256_BYTES], struct span given);
/* The same for the trailer. Each of its `lines` has the form "name:value\n". */
bool chunk_signature_check_trailer(
	struct chunk_signature *chain, struct span lines, struct span given);
void chunk_signature_wipe(struct chunk_signature *chain);

#endif
