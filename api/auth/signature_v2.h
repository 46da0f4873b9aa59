/* AWS Signature Version 2 (HMAC-SHA1) in the query of a URL and over a POST policy. boto3 still
 * makes it by default. Its Authorization header is not accepted. Any thread. */
#ifndef API_AUTH_SIGNATURE_V2_H
#define API_AUTH_SIGNATURE_V2_H

#include "api/exchange/exchange.h"

struct signature_v2 { /* texts in the arena */
	struct span key_id;
	struct span expires;   /* seconds since 1970, as sent */
	struct span signature; /* base64 */
};

/* Whether the query has one of the parameters of such a signature. */
bool signature_v2_is_present(struct exchange *exchange);
/* Fails with denied when the signature is incomplete, malformed or expired, and with
 * invalid_request when version 2 is switched off. */
int signature_v2_parse(struct exchange *exchange, struct signature_v2 *out, struct error *err);
/* The signature covers only the sub-resources of its time, and no other part of the query. Fails
 * with denied when a newer parameter chose the route: adding that parameter to a signed link would
 * turn it into another request. */
int signature_v2_check_route(const struct exchange *exchange, struct error *err);
/* Fails with signature, with details that show a client the difference, and with bad_uri, too_large
 * or no_memory. */
int signature_v2_check(struct exchange *exchange, const struct signature_v2 *signature,
	struct span secret, struct error *err);
/* Whether `signature` is the base64 of the HMAC-SHA1 of `text`. */
bool signature_v2_matches(struct span secret, struct span text, struct span signature);

#endif
