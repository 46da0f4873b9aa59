/* What the headers of a request say about its body: raw or aws-chunked, signed or not, how long,
 * with what trailer (s3.md 1.6, 2.5). Read once, by identify. */
#ifndef API_EXCHANGE_PAYLOAD_H
#define API_EXCHANGE_PAYLOAD_H

#include "api/exchange/exchange.h"

enum payload_rule {
	PAYLOAD_UNSIGNED, /* as it comes */
	PAYLOAD_SHA256,   /* has the SHA-256 in exchange->payload_sha256 */
	PAYLOAD_CHUNKED,  /* aws-chunked, chunks without signatures */
	/* aws-chunked, a chain of signatures from exchange->chunk_seed */
	PAYLOAD_CHUNKED_SIGNED,
	PAYLOAD_CHUNKED_SIGNED_TRAILER /* the same, and over the trailer */
};

/* Sets payload_rule and what follows from it (exchange.h), except chunk_seed. `declared` is the
 * text of x-amz-content-sha256, NULL data when there is none; `signs_chunks` tells whether a
 * signature is there that chunks can be chained to. Framed bodies are for uploads alone: other
 * routes give invalid_request, as does whatever could let framing be stored as content. invalid for
 * a keyword that nobody knows or a length that is no number; unsupported for ECDSA. */
int payload_read(
	struct exchange *exchange, struct span declared, bool signs_chunks, struct error *err);
bool payload_is_chunked(const struct exchange *exchange);

#endif
