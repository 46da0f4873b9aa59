/* AWS Signature Version 2 (HMAC-SHA1) in the query of a URL, and over a POST policy: what boto3
 * still makes when nothing else was asked for (s3.md 2.4). Its Authorization header is not taken.
 * Any thread. */
#ifndef API_AUTH_SIGNATURE_V2_H
#define API_AUTH_SIGNATURE_V2_H

#include "api/exchange/exchange.h"

struct signature_v2 { /* texts in the arena */
	struct span key_id;
	struct span expires;   /* seconds since 1970, as sent */
	struct span signature; /* base64 */
};

bool signature_v2_is_meant(struct exchange *exchange); /* the query has one of its parameters */
/* denied: incomplete, malformed, or expired; invalid_request when it is switched off. */
int signature_v2_parse(struct exchange *exchange, struct signature_v2 *out, struct error *err);
/* The signature covers the sub-resources that it knew of, nothing else of the query. denied for a
 * route that a later one chooses: with such a parameter added, a link to an object would become
 * another request. */
int signature_v2_check_route(const struct exchange *exchange, struct error *err);
/* signature, with the details that show a client where it differs; bad_uri. */
int signature_v2_check(struct exchange *exchange, const struct signature_v2 *signature,
	struct span secret, struct error *err);
/* Is `signature` the base64 of the HMAC-SHA1 of `text`? */
bool signature_v2_matches(struct span secret, struct span text, struct span signature);

#endif
