/* Removes the aws-chunked framing from a body and checks it: sizes, signatures of chunks and
 * trailer, the announced trailer. It serves all keywords of x-amz-content-sha256 that announce the
 * framing (payload.h). The body may be cut at any byte. Content is passed on as it arrives, without
 * a copy, and is valid only after `finish` succeeded.
 *
 *   chunk    HEX[;chunk-signature=SIG] CRLF bytes CRLF          every chunk but the last with bytes has at least 8 KiB
 *   end      0[;chunk-signature=SIG] CRLF [name:value CRLF] [x-amz-trailer-signature:SIG CRLF] CRLF
 *
 * For older SDKs, a trailer line may end with LF alone, an empty line may stand before the
 * trailer's signature, and the last line break may be missing. */
#ifndef API_EXCHANGE_AWS_CHUNKED_H
#define API_EXCHANGE_AWS_CHUNKED_H

#include "api/exchange/exchange.h"

enum { AWS_CHUNKED_LINE_MAX_BYTES = 1024, AWS_CHUNKED_CHUNK_LEAST_BYTES = 8192 };

/* Reads the exchange's payload_rule, chunk_seed, body_length and trailer_algorithm. The filter lies
 * in the arena. It borrows `inner`, and finishes and aborts it. Fails with incomplete_body (bad
 * framing, or the content's length differs from the declared one), chunk_size, signature,
 * malformed_trailer, invalid_request (the trailer's value is not a checksum) or too_large. `finish`
 * stores the trailer's value in exchange->trailer before it finishes `inner`, which compares it
 * with the checksum of the content. */
struct body_sink *aws_chunked_new(struct exchange *exchange, struct body_sink *inner);

#endif
