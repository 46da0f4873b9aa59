/* Checks on a body on its way to its sink: declared length (incomplete_body, too_large) and signed
 * SHA-256 (sha256_mismatch). Takes the aws-chunked framing off (aws_chunked.h) where the request
 * says that there is one. */
#ifndef API_EXCHANGE_BODY_FILTER_H
#define API_EXCHANGE_BODY_FILTER_H

#include "api/exchange/exchange.h"

/* Wraps `inner` (borrowed; aborted and finished through the filter). Made by exchange_accept for
 * every body. In the arena; nothing to free once it was finished or aborted. */
struct body_sink *body_filter_new(struct exchange *exchange, struct body_sink *inner);

#endif
