/* What the requests about xorbs have in common: the hash in the path,
 * "/xet/v1/xorbs/{prefix}/{hash}". Clients send `default` as the prefix; it means nothing. */
#ifndef API_XET_XORB_REQUEST_H
#define API_XET_XORB_REQUEST_H

#include "api/exchange/exchange.h"
#include "chunker/chunk.h"

/* invalid unless it is 64 digits, in lower case. */
int xorb_request_hash(const struct exchange *exchange, struct chunk_id *out, struct error *err);
/* x-deltabucket-codecs: all. Our own client reads and writes records that others do not. */
bool xorb_request_has_private_codecs(struct exchange *exchange);

#endif
