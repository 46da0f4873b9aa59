/* Takes the aws-chunked framing off a body, for all three keywords of x-amz-content-sha256 that say
 * so (s3.md 2.5), and checks it: sizes, signatures of chunks and trailer, the announced trailer.
 * Resumable at any byte. Content goes on as it comes, without being copied; it is good only when
 * `finish` said so.
 *
 *   chunk    HEX[;chunk-signature=SIG] CRLF bytes CRLF          every chunk but the last with bytes has at least 8 KiB
 *   end      0[;chunk-signature=SIG] CRLF [name:value CRLF] [x-amz-trailer-signature:SIG CRLF] CRLF
 *
 * Older SDKs are met halfway: a trailer line may end with LF alone, an empty line may stand before
 * the trailer's signature, the last line break may be missing. */
#ifndef API_EXCHANGE_AWS_CHUNKED_H
#define API_EXCHANGE_AWS_CHUNKED_H

#include "api/exchange/exchange.h"

enum { AWS_CHUNKED_LINE_MAX_BYTES = 1024, AWS_CHUNKED_CHUNK_LEAST_BYTES = 8192 };

/* By the exchange's payload_rule, chunk_seed, body_length and trailer_algorithm. `inner` is
 * borrowed, finished and aborted through the filter; in the arena. Fails with incomplete_body
 * (framing, or another sum than the declared length), chunk_size, signature, malformed_trailer,
 * invalid_request (the trailer's value is none), too_large. `finish` leaves the trailer's value in
 * exchange->trailer before it finishes `inner`; comparing it with the content is left to whoever
 * has the content's. */
struct body_sink *aws_chunked_new(struct exchange *exchange, struct body_sink *inner);

#endif
