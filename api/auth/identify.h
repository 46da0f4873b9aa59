/* Who asks: the Authorization header (bearer tokens, SigV4), else a presigned query (SigV4, SigV2),
 * else anonymous. */
#ifndef API_AUTH_IDENTIFY_H
#define API_AUTH_IDENTIFY_H

#include "api/exchange/exchange.h"

/* 0 and exchange->principal set (NULL: anonymous), with what the request says about its body
 * (payload.h). -1: no_credentials, unknown_key_id, signature, skew, denied, auth_malformed,
 * auth_query, invalid, invalid_request, invalid_token, unsupported. */
int identify(struct exchange *exchange, struct error *err);
/* Whether the request carries a signature of S3's, in its header or its query, right or wrong. */
bool identify_is_signed(struct exchange *exchange);
/* For requests that last: exchange->principal as the key is now. unknown_key_id when it was
 * revoked; then there is no principal. */
int identify_again(struct exchange *exchange, struct error *err);

#endif
