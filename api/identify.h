/* Who asks: bearer tokens and SigV4 header signatures. Order: Authorization header, else anonymous. */
#ifndef API_IDENTIFY_H
#define API_IDENTIFY_H

#include "api/exchange.h"

/* What the signature says about the body (SigV4), for the body filter. */
enum payload_rule { PAYLOAD_UNSIGNED, PAYLOAD_SHA256 };

/* 0 and exchange->principal set (NULL: anonymous); -1: no_credentials, unknown_key_id, signature, skew, auth_malformed, invalid,
 * unsupported. */
int identify(struct exchange *exchange, struct error *err);
/* Valid after identify: the declared SHA-256 when the rule is PAYLOAD_SHA256. */
enum payload_rule identify_payload(const struct exchange *exchange, uint8_t out_sha256[32]);

#endif
