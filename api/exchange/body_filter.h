/* Checks a body on its way to its sink: the declared length (incomplete_body, too_large) and the
 * signed SHA-256 (sha256_mismatch). Removes the aws-chunked framing (aws_chunked.h) where the
 * request announces one. */
#ifndef API_EXCHANGE_BODY_FILTER_H
#define API_EXCHANGE_BODY_FILTER_H

#include "api/exchange/exchange.h"

/* Wraps `inner`, which is borrowed, and finished and aborted through the filter. exchange_accept
 * makes a filter for every body. It lies in the arena; once finished or aborted it holds nothing
 * that must be freed. */
struct body_sink *body_filter_new(struct exchange *exchange, struct body_sink *inner);

#endif
