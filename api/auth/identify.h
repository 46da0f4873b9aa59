/* Identifies the caller: by the Authorization header (bearer token, SigV4) or by a presigned query
 * (SigV4, SigV2). Without either the caller is anonymous. */
#ifndef API_AUTH_IDENTIFY_H
#define API_AUTH_IDENTIFY_H

#include "api/exchange/exchange.h"

/* Sets exchange->principal (NULL: anonymous) and the fields about the body (payload.h). Fails with
 * no_credentials, unknown_key_id, signature, skew, denied, auth_malformed, auth_query, invalid,
 * invalid_request, invalid_token or unsupported. */
int identify(struct exchange *exchange, struct error *err);
/* Whether the request has an S3 signature in its header or its query, correct or not. */
bool identify_is_signed(struct exchange *exchange);
/* For requests that last long: reads the key of exchange->principal again. Fails with
 * unknown_key_id when it was revoked, and sets the principal to NULL. */
int identify_again(struct exchange *exchange, struct error *err);

#endif
