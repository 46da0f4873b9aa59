/* Identifies the caller: by the Authorization header (bearer token, SigV4), by a presigned query
 * (SigV4, SigV2), or by the session of the console (session_cookie.h). Without any of them the
 * caller is anonymous. */
#ifndef API_AUTH_IDENTIFY_H
#define API_AUTH_IDENTIFY_H

#include "api/exchange/exchange.h"

/* Sets exchange->principal (NULL: anonymous) and the fields about the body (payload.h). Fails with
 * no_credentials, unknown_key_id, signature, skew, denied, auth_malformed, auth_query, invalid,
 * invalid_request, invalid_token or unsupported. */
int identify(struct exchange *exchange, struct error *err);
/* The key of a bearer token, with or without the prefix that some Hub clients demand; NULL when
 * there is none. */
const struct principal *identify_token(struct exchange *exchange, struct span token);
/* Whether the request has an S3 signature in its header or its query, correct or not. */
bool identify_is_signed(struct exchange *exchange);
/* For requests that last long: reads the key of exchange->principal again, and its session if that
 * named it. Fails with unknown_key_id when the key was revoked or the session has ended, and sets
 * the principal to NULL. */
int identify_again(struct exchange *exchange, struct error *err);

#endif
