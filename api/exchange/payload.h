/* The headers of a request that describe its body: raw or aws-chunked, signed or not, its length
 * and its trailer (docs/protocol/s3.md). identify reads them once. */
#ifndef API_EXCHANGE_PAYLOAD_H
#define API_EXCHANGE_PAYLOAD_H

#include "api/exchange/exchange.h"

enum payload_rule {
	PAYLOAD_UNSIGNED, /* raw, without a digest */
	PAYLOAD_SHA256,   /* raw, with the SHA-256 in exchange->payload_sha256 */
	PAYLOAD_CHUNKED,  /* aws-chunked, chunks without signatures */
	/* aws-chunked, a chain of signatures that begins with exchange->chunk_seed */
	PAYLOAD_CHUNKED_SIGNED,
	PAYLOAD_CHUNKED_SIGNED_TRAILER /* the same, and the chain covers the trailer */
};

/* Sets payload_rule and the fields that follow from it (exchange.h), except chunk_seed. `declared`
 * is the text of x-amz-content-sha256, with NULL data when that is absent. `signs_chunks`: the
 * request has a signature that can start a chain. Fails with invalid for an unknown keyword or a
 * length that is not a number, with unsupported for ECDSA, and with invalid_request for a framed
 * body on a route that is not an upload and for headers that could let framing be stored as
 * content. */
int payload_read(
	struct exchange *exchange, struct span declared, bool signs_chunks, struct error *err);
bool payload_is_chunked(const struct exchange *exchange);

#endif
