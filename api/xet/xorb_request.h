/* The common parts of requests about xorbs and chunks: the hash in the path,
 * "/xet/v1/xorbs/{prefix}/{hash}". Clients send `default` as the prefix; it has no meaning. */
#ifndef API_XET_XORB_REQUEST_H
#define API_XET_XORB_REQUEST_H

#include "api/exchange/exchange.h"
#include "chunker/chunk.h"

/* invalid unless the hash has 64 digits in lower case. */
int xorb_request_hash(const struct exchange *exchange, struct chunk_id *out, struct error *err);
/* Whether the header `x-deltabucket-codecs: all` is there: only our own client reads and writes
 * records with private codecs. */
bool xorb_request_has_private_codecs(struct exchange *exchange);

#endif
